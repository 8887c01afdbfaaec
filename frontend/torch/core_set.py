"""The operators of PyTorch's core ATen set that engines do not have, and why; all others of the set have a handler."""

from __future__ import annotations

_TRAINING = "training only: export under eval() and no_grad()"
_SIZES = "a size, computed from shapes and no layer"
_COMPLEX = "complex numbers are none of a network's element types"

# By the name of the overload, as torch.ops prints it.
WITHOUT_HANDLER: dict[str, str] = {
    "aten._adaptive_avg_pool2d_backward.default": _TRAINING,
    "aten.avg_pool2d_backward.default": _TRAINING,
    "aten.convolution_backward.default": _TRAINING,
    "aten.embedding_dense_backward.default": _TRAINING,
    "aten.max_pool2d_with_indices_backward.default": _TRAINING,
    "aten.native_group_norm_backward.default": _TRAINING,
    "aten.native_layer_norm_backward.default": _TRAINING,
    "aten.native_dropout.default": _TRAINING,
    "aten._native_batch_norm_legit.default": _TRAINING,
    "aten._fft_c2r.default": _COMPLEX,
    "aten._fft_r2c.default": _COMPLEX,
    "aten._local_scalar_dense.default": "a Python number read from data; keep it a tensor",
    "aten._pdist_forward.default": "distances of all pairs; write it as torch.cdist",
    "aten.randperm.default": "draw it outside and pass it as an input",
    "aten.resize_.default": "a tensor that changes its size in place",
    "aten.empty_strided.default": "memory by strides; use torch.empty",
    "aten.atan2.out": "writes into an argument; export replaces it by atan2.default",
    "aten.sym_is_contiguous.default": _SIZES,
    "aten.sym_numel.default": _SIZES,
    "aten.sym_size.int": _SIZES,
    "aten.sym_storage_offset.default": _SIZES,
    "aten.sym_stride.int": _SIZES,
}
