"""The words that generated CUDA source may use; the library that it imports gives each its meaning."""

from mlirt.codegen.instruction_text import instruction_words
from mlirt.dialects.scalar_ops import scalar_words

VOCABULARY = (
    frozenset(
        """
    float16 bfloat16 float32 float64 bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 inf nan
    bits_as_float16 bits_as_float32 bits_as_float64 bits_as_int8 bits_as_int16 bits_as_int32 bits_as_int64
    bits_as_uint8 bits_as_uint16 bits_as_uint32 bits_as_uint64 float32_of_bfloat16
    logical_not divide_closely rounded_product div rem power_of_half nan_as_zero exp_closely erf_closely tanh_closely
    expm1_closely log1p_closely
    shared fragment map_fragment ptx_instruction
    """.split()
    )
    | scalar_words("cuda")
    | instruction_words("cuda")
)
ASYNCHRONOUS = instruction_words("cuda", are_asynchronous=True)
"""The words that start what goes on behind them, or wait for it."""
