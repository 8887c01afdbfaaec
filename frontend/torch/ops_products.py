"""Products of matrices and vectors, and attention."""

from __future__ import annotations

import math

import numpy as np

from mlirt.dialects.tensor_types import element_type, is_bool
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.products import product
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op


@aten_op("mm.default", "bmm.default", "mv.default", "dot.default")
def plain_product(net: Network, call: Call) -> Value:
    other = next(name for name in ("mat2", "vec", "tensor") if name in call.arguments)
    return product(net, call, call.value("self"), call.value(other))


@aten_op("matmul.default")
def matmul(net: Network, call: Call) -> Value:
    return product(net, call, call.value("self"), call.value("other"))


@aten_op("linear.default")
def linear(net: Network, call: Call) -> Value:
    """x W' + b, with x of any rank."""
    x, weight, bias = call.value("input"), call.value("weight"), call.optional("bias")
    if weight.rank == 1:
        return _plus(net, product(net, call, x, weight), bias)
    flat = layers.reshape(net, x, [1, *x.dims]) if x.rank == 1 else x
    weight = layers.with_rank(net, weight, flat.rank)
    result = layers.matrix_multiply(net, flat, weight, rhs_op="transpose")
    return _plus(net, layers.reshape(net, result, call.result_dims), bias)


def _plus(net: Network, x: Value, bias: Value | None) -> Value:
    return x if bias is None else layers.binary(net, "sum", x, bias)


@aten_op("addmm.default", "baddbmm.default", "addmv.default", "addbmm.default")
def product_and_sum(net: Network, call: Call) -> Value:
    """beta self + alpha (a b)."""
    names = next(pair for pair in (("mat1", "mat2"), ("batch1", "batch2"), ("mat", "vec")) if pair[0] in call.arguments)
    factors = [call.value(name) for name in names]
    if call.operator == "aten.addbmm.default":  # products of halves that are added up are not halves in between
        result = product(net, call, *(layers.widened(net, one) for one in factors))
        result = layers.cast(net, layers.reduce(net, "sum", result, [0], keep_dims=False), element_type(call.element))
    else:
        result = product(net, call, *factors)
    alpha, beta = call.real("alpha"), call.real("beta")
    if alpha != 1.0:
        result = layers.binary(net, "prod", result, layers.scalar_like(net, alpha, result))
    if beta == 0.0:
        return result
    added = call.value("self")
    if beta != 1.0:
        added = layers.binary(net, "prod", added, layers.scalar_like(net, beta, added))
    return layers.binary(net, "sum", result, layers.broadcast_to(net, added, result.dims))


@aten_op("einsum.default")
def einsum(net: Network, call: Call) -> Value:
    equation = call.text("equation").replace(" ", "")
    return net.emit("einsum", [call.values("tensors")], equation=equation)


@aten_op("scaled_dot_product_attention.default")
def attention(net: Network, call: Call) -> Value:
    """softmax(q k' scale + mask) v, over the last two axes; with `is_causal` a query sees no key behind it."""
    query, key, value = (call.value(name) for name in ("query", "key", "value"))
    if call.real("dropout_p") != 0.0:
        raise call.unsupported("it is in training mode (dropout_p); call eval() on the module")
    if call.flag("enable_gqa"):
        key, value = (_for_all_heads(net, part, query) for part in (key, value))
    width = query.dims[-1]
    if not isinstance(width, int):
        raise call.unsupported("the width of its heads must be known when the engine is built")
    scale = call.real("scale") if call.given("scale") else 1 / math.sqrt(width)
    left, right = layers.aligned(net, [query, key])
    scores = layers.matrix_multiply(net, left, right, rhs_op="transpose")
    scores = layers.binary(net, "prod", scores, layers.scalar_like(net, scale, scores))
    mask = call.optional("attn_mask")
    if call.flag("is_causal"):
        mask = _causal(net, scores)
    if mask is not None:
        scores = _masked(net, scores, mask)
    weights = net.emit("softmax", [scores], axis=scores.rank - 1)
    if mask is not None and is_bool(mask.element):
        # A query that sees nothing gets zeros.
        nothing = layers.unary(net, "isnan", weights)
        weights = layers.select(net, nothing, layers.scalar_like(net, 0.0, weights), weights)
    left, right = layers.aligned(net, [weights, value])
    mixed = layers.matrix_multiply(net, left, right)
    return layers.reshape(net, mixed, call.result_dims)


def _masked(net: Network, scores: Value, mask: Value) -> Value:
    if is_bool(mask.element):
        return layers.select(net, mask, scores, layers.scalar_like(net, -np.inf, scores))
    mask = layers.cast(net, mask, scores.element)
    return layers.binary(net, "sum", scores, layers.broadcast_to(net, mask, scores.dims))


def _causal(net: Network, scores: Value) -> Value:
    """Which keys each query sees: those up to its own place."""
    rows, columns = scores.dims[-2:]
    if isinstance(rows, int) and isinstance(columns, int):
        return net.constant(np.tri(rows, columns, dtype=np.bool_))
    own = layers.reshape(net, layers.counting(net, "int64", rows), [rows, 1])
    other = layers.reshape(net, layers.counting(net, "int64", columns), [1, columns])
    return layers.binary(net, "less_equal", other, own)


def _for_all_heads(net: Network, x: Value, query: Value) -> Value:
    """Each head of keys or values once for every query head that shares it."""
    heads, wanted = x.dims[-3], query.dims[-3]
    if heads == wanted:
        return x
    times = wanted // heads
    apart = layers.unsqueeze(net, x, [x.rank - 2])
    shape = [*apart.dims[:-3], times, *apart.dims[-2:]]
    return layers.reshape(net, layers.expand(net, apart, shape), [*x.dims[:-3], wanted, *x.dims[-2:]])


@aten_op("_cdist_forward.default")
def distances(net: Network, call: Call) -> Value:
    """The p-norm of the difference of each row of the first and each row of the second."""
    a, b, p = call.value("x1"), call.value("x2"), call.real("p")
    rows, columns = layers.unsqueeze(net, a, [a.rank - 1]), layers.unsqueeze(net, b, [b.rank - 2])
    return _norm_of_last(net, layers.binary(net, "sub", rows, columns), p)


@aten_op("_pdist_forward.default")
def distances_of_pairs(net: Network, call: Call) -> Value:
    """The p-norm of the difference of each two rows of a matrix, each pair once."""
    x, p = call.value("self"), call.real("p")
    if not isinstance(x.dims[0], int):
        raise call.unsupported("the number of its rows must be known when the engine is built")
    left, right = (
        net.emit("gather", [x, net.constant(places.astype(np.int64))], mode="default", axis=0)
        for places in np.triu_indices(x.dims[0], 1)
    )
    return _norm_of_last(net, layers.binary(net, "sub", left, right), p)


def _norm_of_last(net: Network, difference: Value, p: float) -> Value:
    """The p-norm along the last axis, which is left out; p = 0 counts what is not 0."""
    axis, absolute = [difference.rank - 1], layers.unary(net, "abs", difference)
    if p == math.inf:
        return layers.reduce(net, "max", absolute, axis, keep_dims=False)
    if p == 0.0:
        nothing = layers.scalar_like(net, 0.0, absolute)
        absolute = layers.cast(net, layers.binary(net, "greater", absolute, nothing), absolute.element)
    exponent = layers.scalar_like(net, p, absolute)
    powers = absolute if p in (0.0, 1.0) else layers.binary(net, "pow", absolute, exponent)
    if p == 2.0:
        powers = layers.binary(net, "prod", difference, difference)
    total = layers.reduce(net, "sum", powers, axis, keep_dims=False)
    if p in (0.0, 1.0):
        return total
    root = layers.scalar_like(net, 1 / p, total)
    return layers.unary(net, "sqrt", total) if p == 2.0 else layers.binary(net, "pow", total, root)


@aten_op("_trilinear.default")
def trilinear(net: Network, call: Call) -> Value:
    """The sum over some axes of the product of three tensors, each repeated along axes of its own."""
    factors = [
        layers.widened(net, layers.unsqueeze(net, call.operand(name, call.element), call.integers(f"expand{k}")))
        for k, name in enumerate(("i1", "i2", "i3"), 1)
    ]
    product = layers.binary(net, "prod", layers.binary(net, "prod", *layers.aligned(net, factors[:2])), factors[2])
    total = layers.reduce(net, "sum", product, call.integers("sumdim"), keep_dims=False)
    return layers.cast(net, total, element_type(call.element))
