"""PyTorch's core ATen set: the operators that handlers take, those written with others, and why the rest is refused."""

from __future__ import annotations

_TRAINING = "training only: export under eval() and no_grad()"
_SIZES = "a size, which the importer takes from the tensor's shape"
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
    "aten.resize_.default": "a tensor that changes its size in place",
    "aten.sym_is_contiguous.default": "how a tensor lies in memory; engines choose that",
    "aten.sym_storage_offset.default": "how a tensor lies in memory; engines choose that",
    "aten.sym_stride.int": "how a tensor lies in memory; engines choose that",
}

# What stands in a program, but never comes to a handler.
WRITTEN_OTHERWISE: dict[str, str] = {
    "aten.atan2.out": "export writes it as `aten.atan2.default`",
    "aten.sym_numel.default": _SIZES,
    "aten.sym_size.int": _SIZES,
}

# Overloads of the set as PyTorch 2.13 tags it (torch.Tag.core) that have a handler; a test compares them with its tags.
TAKEN: tuple[str, ...] = tuple(
    f"aten.{name}"
    for name in """
    _adaptive_avg_pool2d.default _adaptive_avg_pool3d.default _cdist_forward.default _embedding_bag.default
    _log_softmax.default _native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training.default
    _pdist_forward.default _softmax.default _to_copy.default abs.default acos.default acosh.default
    adaptive_avg_pool1d.default add.Scalar add.Tensor addmm.default alias.default amax.default amin.default
    any.default any.dim any.dims arange.start_step argmax.default argmin.default as_strided.default asin.default
    asinh.default atan.default atan2.default atanh.default avg_pool1d.default avg_pool2d.default avg_pool3d.default
    bitwise_and.Scalar bitwise_and.Tensor bitwise_not.default bitwise_or.Scalar bitwise_or.Tensor bitwise_xor.Scalar
    bitwise_xor.Tensor bmm.default cat.default ceil.default clamp.Tensor clamp.default clone.default col2im.default
    constant_pad_nd.default convolution.default copy.default cos.default cosh.default cumsum.default
    diagonal.default div.Scalar div.Scalar_mode div.Tensor div.Tensor_mode elu.default embedding.default
    empty.memory_format empty_strided.default eq.Scalar eq.Tensor erf.default exp.default expand.default
    expm1.default fill.Scalar flip.default floor.default fmod.Scalar fmod.Tensor full.default full_like.default
    gather.default ge.Scalar ge.Tensor gelu.default grid_sampler_2d.default gt.Scalar gt.Tensor hardtanh.default
    index.Tensor index_put.default index_select.default isinf.default isnan.default le.Scalar le.Tensor
    leaky_relu.default log.default log10.default log1p.default log2.default logical_and.default logical_not.default
    logical_or.default logical_xor.default lt.Scalar lt.Tensor masked_scatter.default max.dim
    max_pool2d_with_indices.default max_pool3d_with_indices.default maximum.default mean.default mean.dim min.dim
    minimum.default mm.default mul.Scalar mul.Tensor native_group_norm.default native_layer_norm.default ne.Scalar
    ne.Tensor neg.default nonzero.default permute.default pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor
    prod.default prod.dim_int rand.default randn.default randperm.default reciprocal.default
    reflection_pad1d.default reflection_pad2d.default reflection_pad3d.default relu.default remainder.Scalar
    remainder.Tensor repeat.default replication_pad2d.default replication_pad3d.default round.default rsqrt.default
    scalar_tensor.default scatter.src scatter.value scatter_add.default scatter_reduce.two select.int
    select_scatter.default sigmoid.default sign.default sin.default sinh.default slice.Tensor slice_scatter.default
    sort.default split_with_sizes.default sqrt.default squeeze.dim squeeze.dims sub.Scalar sub.Tensor
    sum.dim_IntList tan.default tanh.default topk.default trunc.default unsqueeze.default upsample_bilinear2d.vec
    upsample_nearest2d.vec var.correction var.dim view.default where.self
    """.split()
)
