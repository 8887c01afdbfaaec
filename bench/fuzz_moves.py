"""Operators of random graphs that move, join, reduce and sort elements."""

from __future__ import annotations

import numpy as np
from fuzz_graphs import DoesNotFit, Graph
from fuzz_operators import NUMBERS, bounded, emits, has_rank, static
from onnx import TensorProto


@emits("Transpose")
def transposes(g: Graph, kind: str) -> None:
    x = g.pick((*NUMBERS, "bool"), lambda value: value.rank > 1)
    order = [int(axis) for axis in g.random.permutation(x.rank)]
    g.emit(kind, [x.name], x.type, tuple(x.dims[axis] for axis in order), exact=x.exact, perm=order)


@emits("Unsqueeze")
def new_axes(g: Graph, kind: str) -> None:
    x = g.pick((*NUMBERS, "bool"), has_rank(0, 1, 2, 3))
    axis = g.integer(0, x.rank)
    g.emit(kind, [x.name, g.ints(axis)], x.type, (*x.dims[:axis], 1, *x.dims[axis:]), exact=x.exact)


@emits("Squeeze")
def fewer_axes(g: Graph, kind: str) -> None:
    x = g.pick((*NUMBERS, "bool"), lambda value: 1 in value.dims)
    axis = x.dims.index(1)
    g.emit(kind, [x.name, g.ints(axis)], x.type, (*x.dims[:axis], *x.dims[axis + 1 :]), exact=x.exact)


@emits("Flatten")
def flat(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS, lambda value: value.rank > 1)
    g.emit(kind, [x.name], x.type, (x.dims[0], g.new_dim()), exact=x.exact, axis=1)


@emits("Reshape")
def reshapes(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS, lambda value: value.rank > 1)
    if g.chance(0.5) and x.rank < 4 and isinstance(x.dims[-1], int) and x.dims[-1] % 2 == 0:
        shape, dims = [0] * (x.rank - 1) + [2, -1], (*x.dims[:-1], 2, x.dims[-1] // 2)
    else:
        at = g.integer(0, x.rank - 2)
        pair = x.dims[at : at + 2]
        joined = pair[0] * pair[1] if isinstance(pair[0], int) and isinstance(pair[1], int) else g.new_dim()
        dims = (*x.dims[:at], joined, *x.dims[at + 2 :])
        # A 0 copies a length of the same place, which stays right in front of what is joined.
        if any(isinstance(dim, str) for dim in dims[at + 1 :]):
            raise DoesNotFit("a dynamic length behind the joined ones")
        shape = [0] * at + [-1] + [int(dim) for dim in dims[at + 1 :]]
    g.emit(kind, [x.name, g.ints(*shape)], x.type, dims, exact=x.exact)


@emits("Shape", "Size")
def lengths(g: Graph, kind: str) -> None:
    x = g.pick((*NUMBERS, "bool"), has_rank(1, 2, 3, 4))
    g.emit(kind, [x.name], "i64", (x.rank,) if kind == "Shape" else (), exact=True)


@emits("Expand")
def expansions(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS, lambda value: value.rank > 0)
    like = g.pick((*NUMBERS, "bool"), lambda value: value.rank >= x.rank)
    dims = like.dims[: like.rank - x.rank] + x.dims
    if not all(mine in (theirs, 1) for mine, theirs in zip(x.dims, like.dims[like.rank - x.rank :], strict=True)):
        raise DoesNotFit("lengths that do not broadcast")
    dims = like.dims
    g.emit(kind, [x.name, g.node("Shape", [like.name])[0]], x.type, dims, exact=x.exact)


@emits("Tile")
def repetitions(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS, has_rank(1, 2, 3))
    times = [g.integer(1, 3) for _ in x.dims]
    pairs = zip(x.dims, times, strict=True)
    dims = tuple(dim if n == 1 else dim * n if isinstance(dim, int) else g.new_dim() for dim, n in pairs)
    g.emit(kind, [x.name, g.ints(*times)], x.type, dims, exact=x.exact)


@emits("Concat")
def joins(g: Graph, kind: str) -> None:
    x = g.pick((*NUMBERS, "bool"), lambda value: value.rank > 0)
    axis = g.integer(0, x.rank - 1)
    fits = [
        value
        for value in g.values
        if value.type == x.type
        and value.rank == x.rank
        and all(a == b or at == axis for at, (a, b) in enumerate(zip(x.dims, value.dims, strict=True)))
    ]
    parts = [x, *(g.one_of(fits) for _ in range(g.integer(1, 2)))]
    along = [part.dims[axis] for part in parts]
    total = sum(dim for dim in along if isinstance(dim, int)) if all(isinstance(d, int) for d in along) else g.new_dim()
    dims = (*x.dims[:axis], total, *x.dims[axis + 1 :])
    g.emit(kind, [part.name for part in parts], x.type, dims, exact=all(part.exact for part in parts), axis=axis)


@emits("Slice")
def slices(g: Graph, kind: str) -> None:
    x = g.pick((*NUMBERS, "bool"), lambda value: value.rank > 0)
    axis = g.integer(0, x.rank - 1)
    far = 2**62
    begin, end, step = g.one_of([(0, 1, 1), (1, far, 1), (0, -1, 1), (0, far, 2), (-1, -far, -1), (-2, far, 1)])
    dims = (*x.dims[:axis], g.new_dim(), *x.dims[axis + 1 :])
    if (begin, end) == (0, 1):
        dims = (*x.dims[:axis], 1, *x.dims[axis + 1 :])
    if step == -1:
        dims = x.dims
    names = [x.name, g.ints(begin), g.ints(end), g.ints(axis), g.ints(step)]
    g.emit(kind, names, x.type, dims, exact=x.exact)


@emits("Split")
def splits(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS, lambda value: any(isinstance(dim, int) and dim >= 2 for dim in value.dims))
    axis = g.one_of([at for at, dim in enumerate(x.dims) if isinstance(dim, int) and dim >= 2])
    length = static(x, axis)
    first = g.integer(1, length - 1)
    names = g.node(kind, [x.name, g.ints(first, length - first)], 2, axis=axis)
    for name, part in zip(names, (first, length - first), strict=True):
        g.put(name, x.type, (*x.dims[:axis], part, *x.dims[axis + 1 :]), exact=x.exact)


@emits("Pad")
def pads(g: Graph, kind: str) -> None:
    x = g.pick("f32", has_rank(1, 2, 3, 4))
    mode = g.one_of(["constant", "edge"])
    amounts = [g.integer(0, 2) if g.chance(0.5) else 0 for _ in range(2 * x.rank)]
    added = zip(x.dims, (amounts[at] + amounts[at + x.rank] for at in range(x.rank)), strict=True)
    dims = tuple(dim + more if isinstance(dim, int) else g.new_dim() if more else dim for dim, more in added)
    names = [x.name, g.ints(*amounts)]
    if mode == "constant" and g.chance(0.5):
        names.append(g.eighths())
    g.emit(kind, names, "f32", dims, exact=x.exact, mode=mode)


@emits("Gather")
def gathers(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS, lambda value: any(isinstance(dim, int) for dim in value.dims))
    axis = g.one_of([at for at, dim in enumerate(x.dims) if isinstance(dim, int)])
    length = static(x, axis)
    count = g.integer(1, 4)
    which = g.weight(g.random.integers(-length, length, (count,)).astype(np.int64))
    g.emit(kind, [x.name, which], x.type, (*x.dims[:axis], count, *x.dims[axis + 1 :]), exact=x.exact, axis=axis)


@emits("GatherElements")
def element_gathers(g: Graph, kind: str) -> None:
    x = g.pick("f32", lambda value: value.rank > 0 and isinstance(value.dims[-1], int))
    index = g.exact("i64", lambda value: value.dims == x.dims)
    length = static(x, -1)
    inside = g.node("Mod", [index.name, g.scalar("i64", length)])[0]
    g.emit(kind, [x.name, inside], "f32", x.dims, exact=x.exact, axis=-1)


@emits("ScatterElements")
def element_scatters(g: Graph, kind: str) -> None:
    x = g.pick("f32", lambda value: value.rank > 0 and isinstance(value.dims[-1], int) and value.dims[-1] > 1)
    length = static(x, -1)
    first = g.node("Slice", [x.name, g.ints(0), g.ints(1), g.ints(-1)])[0]
    zero = g.node("Mul", [g.node("Cast", [first], to=TensorProto.INT64)[0], g.scalar("i64", 0)])[0]
    index = g.node("Add", [zero, g.scalar("i64", g.integer(-length, length - 1))])[0]
    g.emit(kind, [x.name, index, first], "f32", x.dims, exact=x.exact, axis=-1)


@emits("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin")
@emits("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp")
def reductions(g: Graph, kind: str) -> None:
    can_be_integer = kind in ("ReduceSum", "ReduceMax", "ReduceMin")
    x = g.pick(("f32", "i32", "i64") if can_be_integer else "f32", lambda value: value.rank > 0)
    axes = sorted({g.integer(0, x.rank - 1) for _ in range(g.integer(1, 2))})
    keeps = g.integer(0, 1)
    dims = tuple(1 if at in axes else dim for at, dim in enumerate(x.dims) if keeps or at not in axes)
    exact = x.exact and (x.type != "f32" or kind in ("ReduceMax", "ReduceMin", "ReduceSum"))
    source = bounded(g, x, -16, 16) if x.type == "f32" and kind == "ReduceLogSumExp" else x.name
    g.emit(kind, [source, g.ints(*axes)], x.type, dims, exact=exact, keepdims=keeps)


@emits("ArgMax", "ArgMin")
def places_of_extremes(g: Graph, kind: str) -> None:
    x = g.exact("f32", lambda value: value.rank > 0)
    axis, keeps = g.integer(0, x.rank - 1), g.integer(0, 1)
    dims = tuple(1 if at == axis else dim for at, dim in enumerate(x.dims) if keeps or at != axis)
    last = g.integer(0, 1)
    g.emit(kind, [x.name], "i64", dims, exact=True, axis=axis, keepdims=keeps, select_last_index=last)


@emits("TopK")
def largest(g: Graph, kind: str) -> None:
    x = g.exact("f32", lambda value: value.rank > 0 and isinstance(value.dims[-1], int))
    k = g.integer(1, static(x, -1))
    names = g.node(kind, [x.name, g.ints(k)], 2, axis=-1, largest=g.integer(0, 1))
    g.put(names[0], "f32", (*x.dims[:-1], k), exact=True)
    g.put(names[1], "i64", (*x.dims[:-1], k), exact=True)


@emits("CumSum")
def running_sums(g: Graph, kind: str) -> None:
    x = g.pick(NUMBERS, lambda value: value.rank > 0)
    axis = g.scalar("i64", g.integer(0, x.rank - 1))
    flags = {"exclusive": g.integer(0, 1), "reverse": g.integer(0, 1)}
    g.emit(kind, [x.name, axis], x.type, x.dims, exact=x.exact, **flags)


@emits("NonZero")
def places_of_nonzero(g: Graph, kind: str) -> None:
    x = g.exact(("f32", "bool", "i64"), lambda value: value.rank > 0)
    g.emit(kind, [x.name], "i64", (x.rank, g.new_dim()), exact=True)


@emits("OneHot")
def one_hot(g: Graph, kind: str) -> None:
    x = g.exact("i64", lambda value: value.rank < 4)
    depth = g.integer(2, 6)
    names = [x.name, g.scalar("i64", depth), g.eighths(2)]
    g.emit(kind, names, "f32", (*x.dims, depth), exact=True, axis=-1)


@emits("Trilu")
def triangles(g: Graph, kind: str) -> None:
    x = g.pick("f32", lambda value: value.rank > 1)
    g.emit(kind, [x.name, g.scalar("i64", g.integer(-1, 1))], "f32", x.dims, exact=x.exact, upper=g.integer(0, 1))


def ints_scalar(g: Graph, low: int, high: int) -> str:
    return g.scalar("i64", g.integer(low, high))
