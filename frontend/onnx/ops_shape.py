"""Ops that move no element, or only ask for a shape: Reshape and its kin, Transpose, Shape, Size, Expand, Tile."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from mlirt.dialects.broadcasting import common_length, is_repeated, repeated_to
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import is_unknown, tensor
from mlirt.dialects.trt.require import RequireOp
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.data_dependent_sizes import elements_of, number, require_lengths, size_of, sizes_of
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.number_arrays import numbers_from
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.run_time_axes import (
    are_of_run,
    axes_of_run,
    count_of_axes,
    lengths_of,
    require_ones,
    shaped,
    with_ones,
    without,
)
from mlirt.frontend.onnx.squeezed_outputs import squeezed_for_certain


@onnx_op("Identity", "Dropout")
def identity(net: Network, node: Node) -> Sequence[Value]:
    """Dropout does nothing at inference; its mask then is true everywhere."""
    x = node.input(0)
    if node.op_type == "Dropout" and node.opset >= 12:
        mode = node.optional(2)
        if mode is not None and (mode.array is None or mode.array.any()):
            raise node.unsupported("it is in training mode; export the model for inference")
    if net.keeps_layers and node.op_type == "Identity" and not x.is_constant and x.numbers is None:
        return [net.emit_as(x.type, "identity", [x])]
    if not node.wants(1):
        return [x]
    kind = np.bool_ if node.opset >= 10 else x.element_name
    return [x, layers.expand(net, net.constant(np.ones([1] * x.rank, kind)), x.dims)]


@onnx_op("Reshape")
def reshape(net: Network, node: Node) -> Value:
    x = node.input(0)
    if node.opset < 5:
        return layers.reshape(net, x, _resolved(node, x, list(node.integers("shape")), True))
    keeps_zeros = bool(node.integer("allowzero", 0))
    dims = node.known_dims(1)
    unknown = 0 if dims is None else dims.count(None)
    if dims is None or unknown > 1 or (unknown and -1 in dims):
        return layers.reshape(net, x, _computed(net, node, x, places=not keeps_zeros))
    # The one length that only the run can tell is the one that keeps the number of elements.
    return layers.reshape(net, x, _resolved(node, x, [-1 if dim is None else dim for dim in dims], not keeps_zeros))


def _computed(net: Network, node: Node, x: Value, *, places: bool) -> list[Dim]:
    """The dimensions that a shape stands for which is known only at run time, with 0 copied and -1 computed."""
    if product(x.dims) == 0:
        raise node.needed(1, "the shape of no elements")  # their number says nothing about it
    lengths = elements_of(net, node, node.input(1))
    if places:
        own = [layers.length_of(net, x, axis) for axis in range(min(x.rank, len(lengths)))]
        lengths[: len(own)] = [
            layers.select(net, layers.binary(net, "equal", length, number(net, 0)), copied, length)
            for length, copied in zip(lengths, own, strict=False)
        ]
    missing = [layers.binary(net, "equal", length, number(net, -1)) for length in lengths]
    rest, total = number(net, 1), number(net, 1)
    for length, is_missing in zip(lengths, missing, strict=True):
        rest = layers.binary(net, "prod", rest, layers.select(net, is_missing, number(net, 1), length))
    for axis in range(x.rank):
        total = layers.binary(net, "prod", total, layers.length_of(net, x, axis))
    left = layers.binary(net, "div", total, layers.binary(net, "max", rest, number(net, 1)))
    found = [layers.select(net, is_missing, left, length) for length, is_missing in zip(lengths, missing, strict=True)]
    count = number(net, 1)
    for length in found:
        count = layers.binary(net, "prod", count, length)
    message = f"{node.label}: the shape asks for another number of elements than there are"
    net.append_at(RequireOp(net.ssa(layers.binary(net, "equal", count, total)), message))
    return [size_of(net, length, node.name) for length in found]


def _resolved(node: Node, x: Value, dims: list[Dim], places: bool) -> list[Dim]:
    """The dimensions that a written shape stands for, with 0 copied and -1 computed."""
    text = [str(dim) for dim in dims]
    for axis, dim in enumerate(dims):
        if dim == 0 and places:
            if axis >= x.rank:
                raise node.invalid(f"the 0 on axis {axis} of the shape {text} copies a dimension that the input lacks")
            dims[axis] = x.dims[axis]
    if dims.count(-1) > 1 or any(isinstance(dim, int) and dim < -1 for dim in dims):
        raise node.invalid(f"the shape {text} needs lengths and at most one -1")
    if -1 not in dims:
        return dims
    rest = product([dim for dim in dims if dim != -1])
    total = product(x.dims)
    if rest == 0 or (isinstance(rest, int) and isinstance(total, int) and total % rest):
        raise node.invalid(f"{total} elements cannot take the shape {text}")
    dims[dims.index(-1)] = total // rest
    return dims


@onnx_op("Flatten")
def flatten(net: Network, node: Node) -> Value:
    x = node.input(0)
    axis = node.integer("axis", 1)
    if not -x.rank <= axis <= x.rank:
        raise node.invalid(f"axis {axis} does not exist; its input has {x.rank} dimensions")
    axis += x.rank if axis < 0 else 0
    return layers.reshape(net, x, [product(x.dims[:axis]), product(x.dims[axis:])])


@onnx_op("Squeeze")
def squeeze(net: Network, node: Node) -> Value:
    x = node.input(0)
    if not node.has("axes") and are_of_run(node, 1):
        return _squeezed_at_run_time(net, node, x)
    given = node.integers("axes") if node.has("axes") else node.known_integers(1, "the axes")
    if given is None:
        given = [axis for axis, dim in enumerate(x.dims) if dim == 1]
        unsure = [str(dim) for dim in x.dims if not isinstance(dim, int)]
        if unsure and node.name in net.assumed:
            return squeezed_for_certain(net, node, x, are_one=net.assumed[node.name])
        if unsure:
            # Only the run knows the rank: the engine's caller may get an array of any rank, a layer may not.
            result = layers.squeeze(net, x, given)
            what = f"{node.label}: without axes, whether the dimensions {unsure} are 1"
            net.squeezed.append((node.name, result, net.needed(x, what)))
            return result
    axes = [node.from_front(axis, x.rank) for axis in given]
    for axis in axes:
        if isinstance(x.dims[axis], int) and x.dims[axis] != 1:
            raise node.invalid(f"dimension {axis} has the length {x.dims[axis]}, expected 1")
    return layers.squeeze(net, x, axes)


def _squeezed_at_run_time(net: Network, node: Node, x: Value) -> Value:
    axes, lengths = axes_of_run(net, node, 1, x.rank, distinct=True), lengths_of(net, x)
    require_ones(net, node, lengths, axes)
    return shaped(net, node, x, without(net, lengths, axes))


@onnx_op("Unsqueeze")
def unsqueeze(net: Network, node: Node) -> Value:
    x = node.input(0)
    if not node.has("axes") and are_of_run(node, 1):
        axes = axes_of_run(net, node, 1, x.rank + count_of_axes(node, 1), distinct=True)
        return shaped(net, node, x, with_ones(net, lengths_of(net, x), axes))
    given = node.integers("axes") if node.has("axes") else node.known_integers(1, "the axes")
    if given is None:
        raise node.invalid("expected axes, but there are none")
    rank = x.rank + len(given)
    axes = [node.from_front(axis, rank) for axis in given]
    if len(set(axes)) != len(axes):
        raise node.invalid(f"expected different axes, got {given}")
    return layers.unsqueeze(net, x, axes)


@onnx_op("Transpose")
def transpose(net: Network, node: Node) -> Value:
    x = node.input(0)
    permutation = node.integers("perm", list(range(x.rank))[::-1])
    if sorted(permutation) != list(range(x.rank)):
        raise node.invalid(f"perm {permutation} is no permutation of {x.rank} dimensions")
    return layers.transpose(net, x, permutation)


@onnx_op("Shape")
def shape(net: Network, node: Node) -> Value:
    x = node.input(0)
    start, end = (_clamped(node.integer(name, default), x.rank) for name, default in (("start", 0), ("end", x.rank)))
    end = max(start, end)
    wanted = x.dims[start:end]
    if all(isinstance(dim, int) for dim in wanted):
        return net.constant(np.array(wanted, np.int64))

    def make() -> SSAValue:
        whole = net.emit("shape", [x])
        return net.ssa(layers.along(net, whole, 0, start, end - start))

    return net.deferred(tensor(layers.element_type("int64"), [len(wanted)]), make, numbers_from(wanted))


def _clamped(axis: int, rank: int) -> int:
    return min(max(axis + rank if axis < 0 else axis, 0), rank)


@onnx_op("Size")
def size(net: Network, node: Node) -> Value:
    x = node.input(0)
    count = product(x.dims)
    if isinstance(count, int):
        return net.constant(np.array(count, np.int64))

    def make() -> SSAValue:
        return net.ssa(layers.reduce(net, "prod", net.emit("shape", [x]), [0], keep_dims=False))

    numbers = numbers_from([count]).reshape(())
    return net.deferred(tensor(layers.element_type("int64"), []), make, numbers)


@onnx_op("Expand")
def expand(net: Network, node: Node) -> Value:
    x = node.input(0)
    dims = node.known_dims(1)
    if dims is None or None in dims:
        dims = list(sizes_of(net, node, node.input(1)))
    rank = max(len(dims), x.rank)
    own: list[Dim] = [*[1] * (rank - x.rank), *x.dims]
    wanted: list[Dim] = [*[1] * (rank - len(dims)), *(dim for dim in dims if dim is not None)]
    target: list[Dim] = []
    for axis, (have, want) in enumerate(zip(own, wanted, strict=True)):
        if isinstance(have, int) and isinstance(want, int) and have != want and 1 not in (have, want):
            raise node.invalid(f"dimension {axis} of length {have} cannot be expanded to {want}")
        is_known = not is_unknown(have) and not is_unknown(want)
        target.append(common_length([have, want]) if is_known or is_repeated(have) else have)
        if not is_known and not is_repeated(have) and want != 1:
            _require_length(net, node, x, axis - (rank - x.rank), axis - (rank - len(dims)))
        elif is_known and want not in (1, target[axis]):
            for one in repeated_to("", want, target[axis]):
                require_lengths(net, node, one)
    return layers.expand(net, layers.with_rank(net, x, rank), target)


def _require_length(net: Network, node: Node, x: Value, axis: int, place: int) -> None:
    """A run goes on only where an axis, whose length has no name, is as long as the shape asks, or the shape asks 1."""
    wanted = elements_of(net, node, node.input(1))[place]
    fits = layers.binary(net, "equal", wanted, layers.length_of(net, x, axis))
    fits = layers.binary(net, "or", fits, layers.binary(net, "equal", wanted, number(net, 1)))
    message = f"{node.label}: dimension {axis} has another length than the shape asks for"
    net.append_at(RequireOp(net.ssa(fits), message))


@onnx_op("Tile")
def tile(net: Network, node: Node) -> Value:
    x = node.input(0)
    if node.opset < 6:
        raise node.unsupported("its first version has another meaning; convert the model to opset 6 or newer")
    repeats = node.known_dims(1)
    if repeats is None or None in repeats:
        repeats = list(sizes_of(net, node, node.input(1)))
    if len(repeats) != x.rank:
        raise node.invalid(f"expected {x.rank} repeats, got {len(repeats)}")
    counts = [count for count in repeats if count is not None]
    return layers.tile(net, x, counts)
