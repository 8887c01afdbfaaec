"""The words that generated CUDA source may use; the library that it imports gives each its meaning."""

from mlirt.codegen.instruction_text import instruction_words

VOCABULARY = frozenset(
    """
    float16 bfloat16 float32 float64 bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 inf nan
    bits_as_float16 bits_as_float32 bits_as_float64 bits_as_int8 bits_as_int16 bits_as_int32 bits_as_int64
    bits_as_uint8 bits_as_uint16 bits_as_uint32 bits_as_uint64 float32_of_bfloat16
    maximum minimum maxnum minnum select absolute logical_not fma copysign divide divide_closely rounded_product
    div rem truncated_div truncated_rem floor_div ceil_div power power_of_half integer_power power_of_integer
    remainder nan_as_zero
    exp exp_closely exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt erf erf_closely
    sin cos tan asin acos atan atan2 sinh cosh tanh tanh_closely asinh acosh atanh
    ceil floor trunc round roundeven
    shared fragment map_fragment ptx_instruction
    """.split()
) | instruction_words("cuda")
ASYNCHRONOUS = instruction_words("cuda", are_asynchronous=True)
"""The words that start what goes on behind them, or wait for it."""
