"""Networks made layer by layer, for tests: made, run by the meaning of their ops, their errors collected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

import mlirt as trt
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.frontend.network.module import network_module
from mlirt.passes.pipeline import run_passes

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

REGIONS = "name-dimensions,infer-nesting,convert-loops-to-scf,convert-conditionals-to-scf"


class CollectingLogger(trt.ILogger):
    """Keeps messages."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[trt.Severity, str]] = []

    def log(self, severity: trt.Severity, msg: str) -> None:
        self.messages.append((severity, msg))

    def text(self, severity: trt.Severity = trt.Severity.ERROR) -> str:
        return "\n".join(message for level, message in self.messages if level == severity)


def new_network(logger: trt.ILogger | None = None) -> trt.INetworkDefinition:
    """A network with an explicit batch."""
    flags = 1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH)
    return trt.Builder(logger or trt.Logger()).create_network(flags)


def evaluate(network: trt.INetworkDefinition, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs by NumPy, in order."""
    ctx = RtContext()
    module = network_module(network, ctx)
    run_passes(module, ctx, REGIONS)
    return list(interpret(module, ctx, feeds).values())


def constant(network: trt.INetworkDefinition, array: Array) -> trt.ITensor:
    """A constant of the array's own shape."""
    return network.add_constant(array.shape, np.ascontiguousarray(array)).get_output(0)


def output_of(network: trt.INetworkDefinition, layer: trt.ILayer, feeds: Mapping[str, Array]) -> Array:
    """The first output of a layer, made an output of the network."""
    network.mark_output(layer.get_output(0))
    return evaluate(network, feeds)[-1]
