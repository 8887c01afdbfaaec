"""Random numbers: other ones in each run, and not those that PyTorch draws."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import element_type, numpy_dtype
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op


def _drawn(net: Network, call: Call, kind: str, dims: Sequence[Dim], element: str) -> Value:
    """Uniform from 0 to 1, or normal with mean 0 and deviation 1; the seed is the layer's name."""
    scales = [net.constant(np.array(number, numpy_dtype(element_type(element)))) for number in (0, 1)]
    seed = zlib.crc32(call.name.encode())
    run = net.emit("run_number", [])
    return net.emit("random", [run, None, *scales], kind=kind, seed=seed, output_dims=list(dims))


@aten_op("rand.default", "randn.default", "rand_like.default", "randn_like.default")
def random(net: Network, call: Call) -> Value:
    return _drawn(net, call, "normal" if "randn" in call.operator else "uniform", call.result_dims, call.element)


@aten_op("randint.default", "randint.low", "randint_like.default", "randint_like.low_dtype")
def whole_numbers(net: Network, call: Call) -> Value:
    """Each from low to high - 1 as often as the others."""
    low = call.integer("low") if "low" in call.arguments else 0
    uniform = _drawn(net, call, "uniform", call.result_dims, "float32")
    span = layers.scalar_like(net, float(call.integer("high") - low), uniform)
    steps = layers.unary(net, "floor", layers.binary(net, "prod", uniform, span))
    steps = layers.binary(net, "min", steps, layers.scalar_like(net, float(call.integer("high") - low - 1), uniform))
    return layers.cast(net, layers.binary(net, "sum", steps, layers.scalar_like(net, float(low), steps)), call.element)


@aten_op("bernoulli.p", "bernoulli.default", "bernoulli.Tensor")
def coin(net: Network, call: Call) -> Value:
    """1 with a probability, or with that in each element, else 0."""
    uniform = _drawn(net, call, "uniform", call.result_dims, "float32")
    chance = call.operand("p" if "p" in call.arguments else "self", "float32")
    return layers.cast(net, layers.binary(net, "less", uniform, chance), call.element)


@aten_op("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor", "normal.float_float")
def normal(net: Network, call: Call) -> Value:
    element = call.element
    drawn = _drawn(net, call, "normal", call.result_dims, element)
    return layers.binary(
        net, "sum", call.operand("mean", element), layers.binary(net, "prod", drawn, call.operand("std", element))
    )


@aten_op("randperm.default")
def permutation(net: Network, call: Call) -> Value:
    """The order of as many random numbers."""
    (length,) = call.result_dims
    if not isinstance(length, int):
        raise call.unsupported("its length must be known when the engine is built")
    limits = [net.constant(np.array(number, np.float32)) for number in (0, 1)]
    run, seed = net.emit("run_number", []), zlib.crc32(call.name.encode())
    drawn = net.emit("random", [run, None, *limits], kind="uniform", seed=seed, output_dims=[length])
    return layers.cast(net, net.emit_many("topk", [drawn], 2, kind="max", k=length, axis=0)[1], call.element)
