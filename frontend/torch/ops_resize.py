"""Resampling of images: upsample and grid_sampler."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op

_LINEAR = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
_NEAREST = tuple(f"{name}{axes}d" for name in ("upsample_nearest", "_upsample_nearest_exact") for axes in (1, 2, 3))


@aten_op(
    *(f"{name}.vec" for name in (*_LINEAR, *_NEAREST, "upsample_bicubic2d")),
    *(f"{name}.default" for name in (*_LINEAR, *_NEAREST, "upsample_bicubic2d")),
)
def upsample(net: Network, call: Call) -> Value:
    """PyTorch's samples lie by the given scales where there are some, else by the quotient of the lengths."""
    x = call.value("input" if "input" in call.arguments else "self")
    name = call.operator.split(".")[1]
    scales = _scales(call, x.rank - 2)
    where: dict[str, object] = {"output_dims": list(call.result_dims)}
    if scales is not None:
        where["scales"] = [1.0, 1.0, *scales]
    if "nearest" in name:
        exact = "exact" in name
        form = {"coordinate": "half_pixel" if exact else "asymmetric", "rounding": "half_up" if exact else "floor"}
        return net.emit("resize", [x, None], kind="nearest", **form, **where)
    if call.flag("align_corners"):
        where.pop("scales", None)
        coordinate = "align_corners"
    else:
        coordinate = "half_pixel"
    kind = "cubic" if "cubic" in name else "linear"
    return net.emit("resize", [x, None], kind=kind, coordinate=coordinate, **where)


def _scales(call: Call, axes: int) -> list[float] | None:
    if "scale_factors" in call.arguments:
        given = call.arguments["scale_factors"]
        return None if given is None else [float(one) for one in given]
    names = {1: ["scales"], 2: ["scales_h", "scales_w"], 3: ["scales_d", "scales_h", "scales_w"]}[axes]
    found = [call.arguments.get(name) for name in names]
    return None if None in found else [float(one) for one in found if one is not None]


@aten_op("grid_sampler_2d.default", "grid_sampler_3d.default", "grid_sampler.default")
def grid_sampler(net: Network, call: Call) -> Value:
    kinds, borders = ("linear", "nearest", "cubic"), ("fill", "clamp", "reflect")
    return net.emit(
        "grid_sample",
        [call.value("input"), layers.cast(net, call.value("grid"), call.value("input").element)],
        kind=kinds[call.integer("interpolation_mode")],
        mode=borders[call.integer("padding_mode")],
        align_corners=call.flag("align_corners"),
    )


@aten_op("_upsample_bilinear2d_aa.default", "_upsample_bicubic2d_aa.default")
def upsample_antialiased(net: Network, call: Call) -> Value:
    """Products with matrices of weights along both axes: an image that shrinks is averaged over what it covers."""
    x, (height, width) = call.value("self"), call.result_dims[-2:]
    sizes = [one for one in (*x.dims[-2:], height, width) if isinstance(one, int)]
    if len(sizes) < 4:
        raise call.unsupported("the lengths of the images must be known when the engine is built")
    reach, kernel = (2.0, _cubic) if "bicubic" in call.operator else (1.0, _linear)
    scales = [None if call.arguments.get(name) is None else call.real(name) for name in ("scales_h", "scales_w")]
    corners = call.flag("align_corners")
    rows, columns = (
        _resampling(sizes[k], sizes[k + 2], _step(sizes[k], sizes[k + 2], scales[k], corners), reach, kernel)
        for k in (0, 1)
    )
    result = layers.widened(net, x)
    dtype = layers.numpy_dtype(result.element)
    down, across = (layers.with_rank(net, net.constant(one.astype(dtype)), x.rank) for one in (rows, columns))
    result = layers.matrix_multiply(net, result, across, rhs_op="transpose")
    return layers.cast(net, layers.matrix_multiply(net, down, result), x.element)


def _step(length: int, count: int, scale: float | None, corners: bool) -> float:
    """How far apart in the image the centres of two results lie."""
    if corners:
        return (length - 1) / (count - 1) if count > 1 else 0.0
    return 1.0 / scale if scale else length / count


def _resampling(
    length: int, count: int, step: float, reach: float, kernel: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """The weight of each of `length` elements in each of `count` results; each row adds up to 1."""
    width = max(step, 1.0)
    weights = np.zeros((count, length))
    for number in range(count):
        centre = step * (number + 0.5)
        first = max(int(centre - reach * width + 0.5), 0)
        places = np.arange(first, min(int(centre + reach * width + 0.5), length))
        row = kernel((places - centre + 0.5) / width)
        weights[number, places] = row / row.sum()
    return weights


def _linear(distance: np.ndarray) -> np.ndarray:
    return np.maximum(1.0 - np.abs(distance), 0.0)


def _cubic(distance: np.ndarray) -> np.ndarray:
    """Keys' kernel with the slope -1/2."""
    x = np.abs(distance)
    near, far = (1.5 * x - 2.5) * x * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))
