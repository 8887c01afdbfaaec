"""Random numbers: other ones in each run, and not those that PyTorch draws."""

from __future__ import annotations

import zlib

import numpy as np

from mlirt.dialects.tensor_types import element_type, numpy_dtype
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op


@aten_op("rand.default", "randn.default", "rand_like.default", "randn_like.default")
def random(net: Network, call: Call) -> Value:
    """Uniform from 0 to 1, or normal with mean 0 and deviation 1; the seed is the layer's name."""
    kind = "normal" if "randn" in call.operator else "uniform"
    scales = [net.constant(np.array(number, numpy_dtype(element_type(call.element)))) for number in (0, 1)]
    seed = zlib.crc32(call.name.encode())
    run = net.emit("run_number", [])
    return net.emit("random", [run, None, *scales], kind=kind, seed=seed, output_dims=list(call.result_dims))


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
