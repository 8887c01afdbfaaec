"""Resampling of images: upsample and grid_sampler."""

from __future__ import annotations

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
