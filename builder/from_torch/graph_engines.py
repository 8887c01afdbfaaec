"""Engines in the places of the parts of a graph, called in its order with PyTorch's operators between them."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.config.build_config import BuildConfig
from mlirt.builder.from_torch.captured_graph import CapturedGraph
from mlirt.builder.from_torch.partition import partitioned, refused_names
from mlirt.builder.from_torch.tensor_run import run_tensors
from mlirt.dialects.context import RtContext
from mlirt.dialects.pass_plugins import using
from mlirt.errors import MlirtError
from mlirt.frontend.torch.exporting import decomposed, exported
from mlirt.frontend.torch.subgraph import import_subgraph

_LOG = logging.getLogger("mlirt")
MIN_NODES = 3
"""Of a part that is worth an engine."""


def graph_engines(captured: CapturedGraph, config: BuildConfig, min_nodes: int = MIN_NODES) -> Callable[..., Any]:
    """A function of the tensors of a call; raises `UnsupportedError` for a graph that cannot be exported.

    The function raises `AssertionError` for lengths for which PyTorch did not trace the graph.
    """
    program, is_dynamic = _program(captured)
    written = set(program.graph_signature.buffers_to_mutate.values())
    if written:
        captured.open_weights(written)
        program, is_dynamic = _program(captured)
    # TorchDynamo holds lengths that are fixed to what they are.
    whole = program.module(check_guards=is_dynamic)
    _drop_metadata_checks(whole.graph)
    weights = _attributes(whole)
    refused = refused_names(whole.graph, weights)
    parts = partitioned(whole, refused)
    count = sum(node.op == "call_function" for node in whole.graph.nodes)
    if not _replace_parts(parts, weights, config, min_nodes):
        names = ", ".join(sorted(refused)[:8]) or "none"
        _LOG.warning(
            "mlirt: 0 engines, a graph of %d operators is left to PyTorch: operators without a layer: %s; "
            "parts between them of fewer than min_nodes=%d are not worth an engine",
            count,
            names,
            min_nodes,
        )
    # A call of the module itself would look for hooks.
    run: Callable[..., Any] = parts.forward
    return run


def _program(captured: CapturedGraph) -> tuple[Any, bool]:
    """The exported graph, and whether any length is dynamic."""
    module, inputs, shapes = captured.module()
    is_dynamic = any(shapes)
    return decomposed(exported(module, inputs, None, shapes if is_dynamic else None)), is_dynamic


def _drop_metadata_checks(graph: Any) -> None:
    """Erase what asks tensors for the device that the graph was exported on; TorchDynamo has compared the inputs."""
    for node in list(graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            graph.erase_node(node)


def _attributes(module: Any) -> dict[str, Any]:
    """The tensors that a graph reads from its module, by what it calls them; their nodes get PyTorch's type of them."""
    found: dict[str, Any] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr":
            value = _attribute(module, node.target)
            if isinstance(value, torch.Tensor):
                found[node.target] = value
                node.meta.setdefault("val", value)
    return found


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _replace_parts(whole: Any, weights: Mapping[str, Any], config: BuildConfig, min_nodes: int) -> int:
    """Put an engine in the place of each part that one can be made of and that is worth it; returns how many."""
    made = 0
    calls = [node for node in whole.graph.nodes if node.op == "call_module" and node.target.startswith("fused_")]
    for call in calls:
        part = getattr(whole, call.target)
        count = sum(node.op == "call_function" for node in part.graph.nodes)
        if count < min_nodes and len(calls) > 1:
            continue
        try:
            engine = _engine(part, call, weights, config)
        except MlirtError as error:
            _LOG.warning("mlirt: a part of %d operators is left to PyTorch: %s", count, error)
            continue
        setattr(whole, call.target, engine)
        whole.__dict__[call.target] = engine.forward  # its call would look for hooks
        made += 1
        # Weights are built in: reading hundreds of them from the module would take longer than small networks do.
        call.args = tuple(one for one, is_read in zip(call.args, engine.is_read, strict=True) if is_read)
    for node in reversed(list(whole.graph.nodes)):
        if node.op == "get_attr" and not node.users:
            whole.graph.erase_node(node)
    # Arguments are tensors one after the other, and results are a tuple: nothing is to be flattened.
    whole.graph.set_codegen(torch.fx.graph.CodeGen())
    whole.recompile()
    return made


def _engine(part: Any, call: Any, weights: Mapping[str, Any], config: BuildConfig) -> PartEngine:
    places = [node for node in part.graph.nodes if node.op == "placeholder"]
    given = {
        place.name: weights[argument.target]
        for place, argument in zip(places, call.args, strict=True)
        if argument.op == "get_attr" and argument.target in weights
    }
    for place, argument in zip(places, call.args, strict=True):
        place.meta.setdefault("val", argument.meta.get("val"))
    return PartEngine(part.graph, given, config)


class _PartNetwork:
    """A part of a graph as a model that `mlirt.compile` takes."""

    name = "graph"

    def __init__(self, graph: Any, weights: Mapping[str, Any]) -> None:
        self._graph, self._weights = graph, weights
        self.inputs: tuple[str | None, ...] = ()
        self.outputs: tuple[str, ...] = ()

    def import_into(self, ctx: RtContext, *, keeps_weights: bool) -> ModuleOp:
        """The part as a network."""
        del keeps_weights  # changed weights are read anew from their tensors
        found = import_subgraph(self._graph, self._weights, ctx)
        self.inputs, self.outputs = found.inputs, found.outputs
        return found.module


class PartEngine(torch.nn.Module):
    """An engine that is called with those inputs of the part of a graph that are no weights and no sizes.

    `is_read` says of each input of the part whether it is one of them.
    """

    def __init__(self, graph: Any, weights: Mapping[str, Any], config: BuildConfig) -> None:
        from mlirt.builder.model_engine import build_engine

        super().__init__()
        network = _PartNetwork(graph, weights)
        with using(config.plugins):
            self.engine = build_engine(network, config)
        self.is_read = tuple(name is not None for name in network.inputs)
        self.inputs = tuple(name for name in network.inputs if name is not None)
        self._outputs = network.outputs
        self._is_single = not isinstance(list(graph.nodes)[-1].args[0], tuple | list)

    def forward(self, *args: Any) -> Any:
        """Run on tensors."""
        found = run_tensors(self.engine, dict(zip(self.inputs, args, strict=True)))
        results = [found[name] for name in self._outputs]
        return results[0] if self._is_single else tuple(results)
