"""What a launch of a plugin does, on NumPy memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.context import Context

from mlirt.dialects.context import weights_of
from mlirt.dialects.kernel.plugin import PluginOp

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter import Argument
    from mlirt.dialects.tensor_op import Array


def run_plugin(op: PluginOp, arguments: Sequence[Argument], layer: str, ctx: Context) -> None:
    """Write what the plugin computes to the memory of the arguments behind its inputs."""
    from mlirt.dialects.kernel.interpreter import OffsetBuffer
    from mlirt.tensorrt.plugins.calls import restored
    from mlirt.tensorrt.plugins.host_call import run_on_host

    ranks, count = op.rank_list(), op.inputs.value.data
    lengths = [one for one in arguments[len(ranks) :] if isinstance(one, int)]
    tensors: list[Array] = []
    for argument, rank in zip(arguments, ranks, strict=False):
        assert isinstance(argument, OffsetBuffer)
        shape, lengths = lengths[:rank], lengths[rank:]
        tensors.append(argument.array[argument.base : argument.base + prod(shape)].reshape(shape))
    state = b"" if op.state is None else weights_of(ctx).get(op.state).tobytes()
    plugin = restored(layer, op.plugin.data, op.version.data, op.plugin_namespace.data, state)
    results = [(one.shape, one.dtype) for one in tensors[count:]]
    for memory, result in zip(tensors[count:], run_on_host(layer, plugin, tensors[:count], results), strict=True):
        memory[...] = result
