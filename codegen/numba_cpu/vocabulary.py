"""The words that generated CPU source imports from `mlirt.builder.numba_cpu_intrinsics`."""

from mlirt.codegen.instruction_text import instruction_words
from mlirt.dialects.scalar_ops import scalar_words

_ELEMENTS = (
    *("float16", "bfloat16", "float32", "float64"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)

VOCABULARY = (
    frozenset(
        {
            *("inlined", "inf", "nan"),
            *(f"{prefix}{name}_pointer" for name in (*_ELEMENTS, "bool") for prefix in ("", "const_")),
            *(*_ELEMENTS, "bool_"),
            *(f"bits_as_{name}" for name in _ELEMENTS if name not in ("float16", "bfloat16")),
            *(
                "load",
                "load_first",
                "gather",
                "gather_first",
                "load_steps",
                "load_steps_first",
                "load_at",
                "load_at_first",
                "load_repeated",
                "store",
                "store_first",
                "splat",
                "keep_first",
                "lane_indices",
            ),
            *("load_bytes", "byte_of", "store_bytes_4", "store_bytes_8", "saturated_int8", "saturated_uint8"),
            *("rounded_product", "int32_in_range", "logical_not", "power_of_quarters", "exp_as_summand"),
            *("sum_of_lanes", "product_of_lanes", "maximum_of_lanes", "minimum_of_lanes", "all_lanes", "any_lane"),
            *(f"fold_{name}" for name in ("sum", "product", "maximum", "minimum", "all", "any")),
            *("tile_load_transposed", "tile_load_transposed_first", "tile_for_each", "tile_for_each_rows", "tile_map"),
            *("llvm_function_1", "llvm_function_2", "llvm_function_3"),
        }
    )
    | scalar_words("cpu")
    | instruction_words("cpu")
)
