"""Resampling: Resize in all its versions, Upsample, GridSample."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.symbolic import Dim
from mlirt.frontend.importing.data_dependent_sizes import sizes_of
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

_ROUNDINGS = {"round_prefer_floor": "half_down", "round_prefer_ceil": "half_up", "floor": "floor", "ceil": "ceil"}
_COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)
_KINDS = {"nearest": "nearest", "linear": "linear", "cubic": "cubic", "bilinear": "linear"}


@onnx_op("Upsample")
@onnx_op("Resize", since=10)
def scaled(net: Network, node: Node) -> Value:
    """The old forms: scales only, positions i / scale, rounded down."""
    x = node.input(0)
    scales = node.reals("scales") if node.has("scales") else _known_scales(node, 1)
    if scales is None:
        raise node.invalid("expected scales, but there are none")
    return net.emit("resize", [x, None], kind=_kind(node), scales=_for_all(node, x, scales, None, 1.0))


@onnx_op("Resize", since=11)
def resize(net: Network, node: Node) -> Value:
    x = node.input(0)
    axes = [node.from_front(axis, x.rank) for axis in node.integers("axes", range(x.rank))]
    scales = _known_scales(node, 2)
    factors = _for_all(node, x, scales, axes, 1.0) if scales else None
    sizes = None if factors else _sizes(net, node, x, axes)
    coordinate = _one_of(node, "coordinate_transformation_mode", "half_pixel", _COORDINATES)
    if factors and coordinate == "align_corners":
        coordinate, factors, sizes = _aligned(x, factors)
    return net.emit(
        "resize",
        [x, None],
        kind=_kind(node),
        scales=factors,
        output_dims=sizes,
        coordinate=coordinate,
        rounding=_ROUNDINGS[_one_of(node, "nearest_mode", "round_prefer_floor", tuple(_ROUNDINGS))],
        cubic_coeff=node.real("cubic_coeff_a", -0.75),
        exclude_outside=bool(node.integer("exclude_outside", 0)),
        antialias=bool(node.integer("antialias", 0)),
        extrapolation_value=node.real("extrapolation_value", 0.0),
        roi=_roi(node, x, axes) if coordinate == "tf_crop_and_resize" else None,
    )


def _aligned(x: Value, factors: list[float]) -> tuple[str, list[float], list[Dim] | None]:
    """`align_corners` with scales: ONNX's formula takes length * scale for the new length, also where it is no integer.

    Then position i (m - 1) / (m scale - 1) is what `asymmetric` gives with the scale (m scale - 1) / (m - 1).
    """
    lengths = [dim for dim in x.dims if isinstance(dim, int)]
    whole = len(lengths) < x.rank or all(
        (length * factor).is_integer() for length, factor in zip(lengths, factors, strict=True)
    )
    if whole:
        return "align_corners", factors, None
    corrected = [
        (length * factor - 1) / (length - 1) if length > 1 and length * factor > 1 else 1.0
        for length, factor in zip(lengths, factors, strict=True)
    ]
    return "asymmetric", corrected, [int(length * factor) for length, factor in zip(lengths, factors, strict=True)]


def _known_scales(node: Node, k: int) -> list[float] | None:
    value = node.optional(k)
    if value is None or value.dims == (0,):
        return None
    array = node.known(k, "the scales")
    return None if array is None else [float(scale) for scale in array.reshape(-1)]


def _for_all(node: Node, x: Value, given: Sequence[float], axes: Sequence[int] | None, default: float) -> list[float]:
    """One entry per dimension, from entries for some."""
    axes = range(x.rank) if axes is None else axes
    if len(given) != len(axes):
        raise node.invalid(f"expected {len(axes)} entries, one per resized dimension, got {len(given)}")
    chosen = dict(zip(axes, given, strict=True))
    return [chosen.get(axis, default) for axis in range(x.rank)]


def _sizes(net: Network, node: Node, x: Value, axes: Sequence[int]) -> list[Dim]:
    shape = node.optional(3)
    if shape is None:
        raise node.invalid("expected scales or sizes, but there are none")
    given = sizes_of(net, node, shape)
    if len(given) != len(axes):
        raise node.invalid(f"expected {len(axes)} sizes, one per resized dimension, got {len(given)}")
    result = list(x.dims)
    for axis, size in zip(axes, given, strict=True):
        result[axis] = size
    policy = _one_of(node, "keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    return result if policy == "stretch" else _with_one_ratio(node, x, result, axes, policy)


def _with_one_ratio(node: Node, x: Value, sizes: list[Dim], axes: Sequence[int], policy: str) -> list[Dim]:
    numbers = [
        (size, length)
        for axis in axes
        if isinstance(size := sizes[axis], int) and isinstance(length := x.dims[axis], int)
    ]
    if len(numbers) != len(axes):
        raise node.unsupported("keep_aspect_ratio_policy needs lengths that are known when the engine is built")
    ratios = [size / length for size, length in numbers]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    for axis, (_, length) in zip(axes, numbers, strict=True):
        sizes[axis] = int(ratio * length + 0.5)
    return sizes


def _roi(node: Node, x: Value, axes: Sequence[int]) -> list[float]:
    array = node.known(1, "the region of interest")
    if array is None or array.size != 2 * len(axes):
        raise node.invalid(f"expected roi with {2 * len(axes)} entries for tf_crop_and_resize")
    edges = [float(edge) for edge in array.reshape(-1)]
    return [*_for_all(node, x, edges[: len(axes)], axes, 0.0), *_for_all(node, x, edges[len(axes) :], axes, 1.0)]


def _kind(node: Node) -> str:
    return _KINDS[_one_of(node, "mode", "nearest", tuple(_KINDS))]


def _one_of(node: Node, name: str, default: str, choices: Sequence[str]) -> str:
    value = node.text(name, default)
    if value not in choices:
        raise node.invalid(f"expected {name} as one of {', '.join(choices)}, got {value!r}")
    return value


_SAMPLE_KINDS = {"bilinear": "linear", "linear": "linear", "bicubic": "cubic", "cubic": "cubic", "nearest": "nearest"}
_BORDERS = {"zeros": "fill", "border": "clamp", "reflection": "reflect"}


@onnx_op("GridSample", since=16)
def grid_sample(net: Network, node: Node) -> Value:
    return net.emit(
        "grid_sample",
        [node.input(0), node.input(1)],
        kind=_SAMPLE_KINDS[_one_of(node, "mode", "linear", tuple(_SAMPLE_KINDS))],
        mode=_BORDERS[_one_of(node, "padding_mode", "zeros", tuple(_BORDERS))],
        align_corners=bool(node.integer("align_corners", 0)),
    )
