"""Parts of tensors and tensors from parts: slice, select, split, cat, pad, unfold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.slice_bounds import window
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op

_END = (1 << 63) - 1


def _window(call: Call, length: Dim) -> tuple[Dim, Dim, int]:
    """First position, count and step of the arguments start, end and step."""
    start: Dim = call.arguments["start"] if call.given("start") else 0
    end: Dim = call.arguments["end"] if call.given("end") else _END
    step = call.integer("step")
    return *window(length, start, end, step), step


@aten_op("slice.Tensor")
def slice_(net: Network, call: Call) -> Value:
    x = call.value("self")
    axis = call.axis("dim", x.rank)
    first, count, step = _window(call, x.dims[axis])
    return layers.along(net, x, axis, first, count, step)


@aten_op("select.int")
def select(net: Network, call: Call) -> Value:
    x = call.value("self")
    axis = call.axis("dim", x.rank)
    return layers.squeeze(net, layers.along(net, x, axis, _place(call, x, axis), 1), [axis])


def _place(call: Call, x: Value, axis: int) -> Dim:
    index: Dim = call.arguments["index"]
    return index + x.dims[axis] if isinstance(index, int) and index < 0 else index


@aten_op("narrow.default")
def narrow(net: Network, call: Call) -> Value:
    x = call.value("self")
    axis = call.axis("dim", x.rank)
    start: Dim = call.arguments["start"]
    return layers.along(net, x, axis, start, call.arguments["length"])


@aten_op("split_with_sizes.default", "split.Tensor", "chunk.default", "unbind.int")
def split(net: Network, call: Call) -> Sequence[Value]:
    """Parts along an axis, as long as PyTorch inferred them."""
    x = call.value("self")
    axis = call.axis("dim", x.rank)
    parts: list[Value] = []
    start: Dim = 0
    for result in call.results:
        single = len(result.dims) < x.rank
        size = 1 if single else result.dims[axis]
        part = layers.along(net, x, axis, start, size)
        parts.append(layers.squeeze(net, part, [axis]) if single else part)
        start = start + size
    return parts


@aten_op("cat.default", "concat.default")
def cat(net: Network, call: Call) -> Value:
    # An empty tensor of one dimension goes with tensors of any rank.
    values = [value for value in call.values("tensors") if value.dims != (0,)]
    if not values:
        return call.values("tensors")[0]
    values = [layers.cast(net, value, call.element) for value in values]
    return layers.concatenate(net, values, call.axis("dim", values[0].rank))


@aten_op("stack.default")
def stack(net: Network, call: Call) -> Value:
    values = [layers.cast(net, value, call.element) for value in call.values("tensors")]
    axis = call.axis("dim", values[0].rank + 1)
    return layers.concatenate(net, [layers.unsqueeze(net, value, [axis]) for value in values], axis)


@aten_op("select_scatter.default", "slice_scatter.default")
def written_part(net: Network, call: Call) -> Value:
    """A copy with a part replaced: what stands before it, the new part, what stands behind."""
    x, part = call.value("self"), call.operand("src", call.element)
    axis = call.axis("dim", x.rank)
    if call.operator == "aten.select_scatter.default":
        first, count, step = _place(call, x, axis), 1, 1
        part = layers.unsqueeze(net, part, [axis])
    else:
        first, count, step = _window(call, x.dims[axis])
        part = layers.expand(net, part, [*x.dims[:axis], count, *x.dims[axis + 1 :]])
    if step != 1:
        return _written_apart(net, x, part, axis, (first, count, step))
    behind = first + count
    parts = [layers.along(net, x, axis, 0, first), part, layers.along(net, x, axis, behind, x.dims[axis] - behind)]
    return layers.concatenate(net, [one for one in parts if one.dims[axis] != 0], axis)


def _written_apart(net: Network, x: Value, part: Value, axis: int, where: tuple[Dim, Dim, int]) -> Value:
    first, count, step = where
    line = layers.counting(net, "int64", count, first, step)
    places = layers.reshape(net, line, [count if k == axis else 1 for k in range(x.rank)])
    places = layers.expand(net, places, part.dims)
    return net.emit("scatter", [x, places, part], mode="element", axis=axis, reduction="none")


@aten_op("constant_pad_nd.default")
def constant_pad(net: Network, call: Call) -> Value:
    x, value = call.value("self"), call.arguments["value"]
    filling = net.constant(np.array(value).astype(layers.numpy_dtype(x.element)))
    return _padded(net, call, x, call.dims("pad"), "constant", filling)


@aten_op(
    *(f"{kind}_pad{count}d.default" for kind in ("reflection", "replication") for count in (1, 2, 3)),
)
def edge_pad(net: Network, call: Call) -> Value:
    mode = "reflect" if "reflection" in call.operator else "edge"
    return _padded(net, call, call.value("self"), call.dims("padding"), mode, None)


@aten_op("pad.default")
def pad(net: Network, call: Call) -> Value:
    x, mode = call.value("self"), call.text("mode")
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in modes:
        raise call.unsupported(f"there is no mode {mode!r}")
    value = call.arguments.get("value") or 0
    filling = net.constant(np.array(value).astype(layers.numpy_dtype(x.element))) if mode == "constant" else None
    return _padded(net, call, x, call.dims("pad"), modes[mode], filling)


def _padded(net: Network, call: Call, x: Value, pads: Sequence[Dim], mode: str, value: Value | None) -> Value:
    """Pads come in pairs, those of the last axis first."""
    pre: list[Dim] = [0] * x.rank
    post: list[Dim] = [0] * x.rank
    for k in range(len(pads) // 2):
        pre[x.rank - 1 - k], post[x.rank - 1 - k] = pads[2 * k], pads[2 * k + 1]
    return layers.pad(net, x, pre, post, mode, value)


@aten_op("unfold.default")
def unfold(net: Network, call: Call) -> Value:
    """Windows along an axis, whose cells become the last axis."""
    x = call.value("self")
    axis, size, step = call.axis("dimension", x.rank), call.integer("size"), call.integer("step")
    count = call.result_dims[axis]
    cells = [layers.along(net, x, axis, offset, count, step) for offset in range(size)]
    return layers.concatenate(net, [layers.unsqueeze(net, cell, [x.rank]) for cell in cells], x.rank)
