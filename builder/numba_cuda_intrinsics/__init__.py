"""The words of generated CUDA source: what they mean to numba-cuda, written with LLVM instructions and inline PTX."""

from typing import Any

from mlirt.builder.numba_cuda_intrinsics import (
    accumulators,
    async_copy,
    clusters,
    flagged_words,
    fragment_maps,
    fragments,
    functions,
    matrix_unit,
    scalars,
    tensor_copies,
    threads,
    transaction_barriers,
    warpgroups,
)
from mlirt.builder.numba_cuda_intrinsics.untyped import types

_CONVERSIONS = {
    name: getattr(types, name)
    for name in (
        *("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    )
}
_MAKERS: dict[str, Any] = {
    maker.__name__: maker
    for maker in (
        *(fragments.fill_fragment, fragments.fragment, fragments.outer_product),
        *(fragments.load_fragment, fragments.store_fragment, matrix_unit.mma, matrix_unit.load_matrix),
        *(accumulators.reduce_rows, accumulators.scale_rows, accumulators.exponential_rows),
        *(accumulators.limit_columns, accumulators.pack_accumulators),
        *(async_copy.copy_async, async_copy.wait_async, threads.shuffle, threads.shared),
        *(
            fragment_maps.fragment_part,
            fragment_maps.map_fragment,
            fragment_maps.saturate_fragment,
            fragment_maps.float_fragment,
            clusters.remote_shared,
        ),
        *(transaction_barriers.mbarrier_init, transaction_barriers.mbarrier_expect),
        *(tensor_copies.load_box, tensor_copies.load_window),
        *(
            warpgroups.warpgroup_mma_registers,
            warpgroups.warpgroup_mma,
            warpgroups.warpgroup_wait,
            warpgroups.warpgroup_accumulators,
        ),
        *(warpgroups.set_registers, warpgroups.join_columns),
        *(flagged_words.send_flagged, flagged_words.receive_flagged, flagged_words.dot_product),
    )
}
_FOUND = {
    name: value
    for module in (async_copy, clusters, functions, scalars, threads, transaction_barriers, warpgroups)
    for name, value in vars(module).items()
    if type(value).__name__ == "_Intrinsic"
}
WORDS: dict[str, Any] = {
    **_CONVERSIONS,
    "bool_": types.boolean,
    **_FOUND,
    **_MAKERS,
    "inf": float("inf"),
    "nan": float("nan"),
}
globals().update(WORDS)

__all__ = sorted(WORDS)  # pyright: ignore[reportUnsupportedDunderAll]
