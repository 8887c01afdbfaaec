"""Convolutions, transposed or not, of one to three spatial axes."""

from __future__ import annotations

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.convolution import convolve, deconvolve, kernel_sizes
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.windows import Geometry
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op


@aten_op("convolution.default")
def convolution(net: Network, call: Call) -> Value:
    x, kernel, bias = call.value("input"), call.value("weight"), call.optional("bias")
    batched = x.rank == kernel.rank
    x = x if batched else layers.unsqueeze(net, x, [0])
    axes = len(kernel_sizes(call, x, kernel))
    strides, pads, dilations, added = (
        _per_axis(call, name, axes) for name in ("stride", "padding", "dilation", "output_padding")
    )
    geometry, groups = Geometry(strides, dilations, pads, list(pads)), call.integer("groups")
    if call.flag("transposed"):
        result = deconvolve(net, x, kernel, bias, geometry, added, groups)
    else:
        result = convolve(net, x, kernel, bias, geometry, groups)
    return result if batched else layers.squeeze(net, result, [0])


def _per_axis(call: Call, name: str, axes: int) -> list[int]:
    given = call.integers(name)
    return given * axes if len(given) == 1 else given
