"""`torch.compile(model, backend="mlirt")`: graphs of TorchDynamo as engines, with PyTorch for what they cannot have."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from mlirt.builder.config.build_config import BuildConfig
from mlirt.builder.from_torch.captured_graph import CapturedGraph
from mlirt.builder.from_torch.compile_module import own_precision
from mlirt.builder.from_torch.graph_engines import MIN_NODES, graph_engines
from mlirt.errors import InvalidInputError, MlirtError

_LOG = logging.getLogger("mlirt")
_GUARD = "Guard failed"
"""How PyTorch says that an exported graph was not traced for the lengths of a call."""


def mlirt_backend(
    graph: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """What TorchDynamo calls for each graph that it has captured; see `torch.compile`.

    options: settings of `mlirt.BuildConfig`, such as target and precision, or `config`, such a value; and `min_nodes`:
    parts with fewer operators (default 3) are left to PyTorch. A graph that is in half precision is computed in it,
    unless a precision is given. Raises `InvalidInputError`, which names the setting.
    """
    given = dict(options or {})
    least, config = int(given.pop("min_nodes", MIN_NODES)), given.pop("config", None)
    if config is None and "precision" not in given:
        own = own_precision([*graph.parameters(), *graph.buffers(), *example_inputs])
        given |= {} if own is None else {"precision": own}
    return CompiledGraph(graph, example_inputs, BuildConfig.of(config, given), least)


class CompiledGraph:
    """A graph that runs as engines; it is built anew when weights have changed in place."""

    def __init__(self, graph: Any, example_inputs: Sequence[Any], config: BuildConfig, min_nodes: int) -> None:
        self._graph = graph
        self._config, self._min_nodes = config, min_nodes
        self._captured = CapturedGraph(graph, example_inputs)
        self._run: Callable[..., Any] | None = None
        self._views = None if self._captured.results.is_plain else self._captured.results
        self._needs_gradients = _results_need_gradients(self._captured.results.computed)
        if not self._needs_gradients:
            self._build()

    def __call__(self, *args: Any) -> Any:
        """The results of the graph; raises `InvalidInputError` where a call needs gradients."""
        if self._needs_gradients and torch.is_grad_enabled():
            raise InvalidInputError("the back end mlirt computes no gradients: call the model under torch.no_grad()")
        if self._captured.weights_have_changed(args):
            _LOG.info("mlirt: weights have changed, the engines are built anew")
            self._captured.take_changed_weights(args)
            self._build()
        if self._run is None:
            return self._graph(*args)
        try:
            found = self._run(*self._captured.inputs_of(args))
            return found if self._views is None else self._views(args, found)
        except AssertionError as error:
            if not str(error).startswith(_GUARD):
                raise
            _LOG.info("mlirt: a call is left to PyTorch, as the engines were not traced for its lengths: %s", error)
            return self._graph(*args)

    def _build(self) -> None:
        try:
            # The graph is exported apart from TorchDynamo's own tracing, which would take on its guards.
            with torch.no_grad(), torch._guards.tracing(None):
                self._run = graph_engines(self._captured, self._config, self._min_nodes)
        except InvalidInputError:
            raise
        except MlirtError as error:
            _LOG.warning("mlirt: a graph is left to PyTorch: %s", error)
            self._run = None


def _results_need_gradients(computed: Sequence[Any]) -> bool:
    """Whether gradients of any result could be asked for, as TorchDynamo traced it; it traces anew for another mode."""
    examples = [node.meta.get("example_value") for node in computed]
    return torch.is_grad_enabled() and any(isinstance(one, torch.Tensor) and one.requires_grad for one in examples)
