"""Weights with two zeros among each four channels, which sparse matrix units would take (tensorrt-features.md#16.1 to
16.4).

There are no sparse kernels here: the check tells which layers could have some, and the dense ones run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.frontend.network.layers_product import IFullyConnectedLayer
from mlirt.frontend.network.layers_window import IConvolutionLayer
from mlirt.frontend.network.tensor import ITensor

if TYPE_CHECKING:
    from mlirt.frontend.network.definition import INetworkDefinition
    from mlirt.tensorrt.reporting import Reporter
    from mlirt.tensorrt.weights import Array

_GROUP = 4
_MAX_NONZEROS = 2


def is_sparse(kernel: Array) -> bool:
    """Whether of each four channels that follow one another, at each place of each map, two at least are zero.

    The kernel is K x C x .., and C is a multiple of four.
    """
    if kernel.ndim < 2 or kernel.shape[1] % _GROUP or not kernel.size:
        return False
    groups = kernel.reshape(kernel.shape[0], -1, _GROUP, *kernel.shape[2:])
    return bool(((groups != 0).sum(2) <= _MAX_NONZEROS).all())


def eligible_layers(network: INetworkDefinition) -> list[str]:
    """The layers with such weights."""
    found: list[str] = []
    for record in network.graph.records:
        layer = record.view()
        if isinstance(layer, IConvolutionLayer | IFullyConnectedLayer):
            kernel = _kernel(layer)
            if kernel is not None and is_sparse(kernel):
                found.append(record.name)
    return found


def report_sparsity(network: INetworkDefinition, reporter: Reporter) -> None:
    """TensorRT's two lines: which layers could, and which do, compute with sparse weights."""
    reporter.info(f"(Sparsity) Layers eligible for sparse math: {', '.join(eligible_layers(network))}")
    reporter.info("(Sparsity) TRT inference plan picked sparse implementation for layers:")


def _kernel(layer: IConvolutionLayer | IFullyConnectedLayer) -> Array | None:
    """The weights as K x C x ..; None where they come from other layers than a constant."""
    given = layer.get_input(1)
    kernel = layer.kernel if given is None else _constant(given)
    if kernel is None or not kernel.size:
        return None
    if isinstance(layer, IConvolutionLayer):
        size = list(layer.kernel_size_nd or ())
        maps = layer.num_output_maps
        return kernel if given is not None else kernel.reshape(maps, -1, *size)
    return kernel.reshape(layer.num_output_channels, -1) if given is None else kernel


def _constant(tensor: ITensor) -> Array | None:
    """A constant's numbers in its shape."""
    maker = None if tensor.producer is None else tensor.producer.view()
    weights, shape = getattr(maker, "weights", None), getattr(maker, "shape", None)
    return None if weights is None or shape is None else weights.reshape(list(shape))
