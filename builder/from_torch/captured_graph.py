"""A graph of TorchDynamo as a module to export: weights are attributes, sizes come from the shapes of tensors."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import torch

from mlirt.builder.from_torch.aliased_results import AliasedResults
from mlirt.builder.from_torch.weight_watch import WeightWatch
from mlirt.errors import UnsupportedError


class CapturedGraph:
    """Which inputs of a graph are weights, which are tensors of a call and which are sizes."""

    def __init__(self, graph: Any, example_inputs: Sequence[Any]) -> None:
        self._graph = graph
        self.results = AliasedResults(graph)
        self.examples = list(example_inputs)
        self._places = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._weights = [k for k, one in enumerate(example_inputs) if _is_weight(one)]
        self._changes: Counter[int] = Counter()
        self._numbers = [k for k, one in enumerate(example_inputs) if _is_number(one, self._places[k])]
        self._sort(example_inputs)

    def _sort(self, args: Sequence[Any]) -> None:
        """Tell the tensors of a call from what is built in, and note the latter."""
        built_in = {*self._weights, *self._numbers}
        self._tensors = [
            k for k, one in enumerate(self.examples) if isinstance(one, torch.Tensor) and k not in built_in
        ]
        self.take_weights(args)

    def take_weights(self, args: Sequence[Any]) -> None:
        """Note the weights and numbers of a call."""
        self._weights_of = _items_at(self._weights)
        self._taken = WeightWatch(self._weights_of(args))
        self._values = [args[k].item() for k in self._numbers]

    def weights_have_changed(self, args: Sequence[Any]) -> bool:
        """Whether a call has other weights or numbers, or the same weights after an update in place."""
        return self._taken.have_changed(self._weights_of(args)) or any(
            args[k].item() != value for k, value in zip(self._numbers, self._values, strict=True)
        )

    def take_changed_weights(self, args: Sequence[Any]) -> None:
        """Note the weights of a call that has others; a buffer that was written to twice is an input from now on."""
        written = [self._weights[k] for k in self._taken.written(self._weights_of(args))]
        self._changes.update(k for k in written if not isinstance(args[k], torch.nn.Parameter))
        self._open(args, {k for k, count in self._changes.items() if count > 1})

    def open_weights(self, names: Iterable[str]) -> None:
        """Let weights that the graph itself writes to be inputs; `names` are those of the attributes of the module."""
        wanted = set(names)
        self._open(self.examples, {k for k in self._weights if self._attribute_of(k) in wanted})

    def _open(self, args: Sequence[Any], numbers: set[int]) -> None:
        self._weights = [k for k in self._weights if k not in numbers]
        self._sort(args)

    def _attribute_of(self, number: int) -> str:
        return str(self._places[number].target)

    def inputs_of(self, args: Sequence[Any]) -> list[Any]:
        """The tensors of a call that are no weights."""
        return [args[k] for k in self._tensors]

    def module(self) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
        """The module, example inputs and their dynamic shapes, for `torch.export.export`."""
        graph = copy.deepcopy(self._graph.graph)
        _keep_results(graph, [node.name for node in self.results.computed])
        places = [node for node in graph.nodes if node.op == "placeholder"]
        module = torch.fx.GraphModule(self._graph, graph)
        for k, weight in zip(self._weights, self._taken.weights, strict=True):
            self._as_attribute(module, places[k], weight, self._attribute_of(k))
        for k, value in zip(self._numbers, self._values, strict=True):
            _as_number(graph, places[k], value)
        sizes = self._size_sources()
        for k, node in enumerate(places):
            if not isinstance(self.examples[k], torch.Tensor):
                self._from_shape(graph, node, self.examples[k], sizes, places)
        graph.lint()
        module.recompile()
        # Exporting leaves marks on example inputs, which those of a call must not have.
        inputs = [self.examples[k].detach() for k in self._tensors]
        shapes = [_dynamic(one) for one in self._fakes()]
        return module.eval(), tuple(inputs), tuple(shapes)

    def _fakes(self) -> list[Any]:
        return [self._places[k].meta.get("example_value", self.examples[k]) for k in self._tensors]

    def _size_sources(self) -> dict[str, tuple[int, int]]:
        """For each symbol a tensor and an axis that has its value."""
        found: dict[str, tuple[int, int]] = {}
        for k, fake in zip(self._tensors, self._fakes(), strict=True):
            for axis, size in enumerate(fake.shape):
                if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
                    found.setdefault(str(size.node.expr), (k, axis))
        return found

    def _as_attribute(self, module: Any, node: Any, weight: Any, name: str) -> None:
        holder = torch.nn.Parameter(weight.detach(), requires_grad=False)
        module.register_buffer(name, holder.data, persistent=True)
        with module.graph.inserting_before(node):
            node.replace_all_uses_with(module.graph.get_attr(name))
        module.graph.erase_node(node)

    def _from_shape(
        self, graph: Any, node: Any, example: Any, sizes: dict[str, tuple[int, int]], places: Sequence[Any]
    ) -> None:
        if not isinstance(example, torch.SymInt):
            if node.users:
                raise UnsupportedError(f"the graph has the input {node.name!r}, which is no tensor")
            graph.erase_node(node)
            return
        source = sizes.get(str(example.node.expr))
        if source is None and node.users:
            raise UnsupportedError(f"the graph has the size {example}, which no tensor has")
        if source is not None and node.users:
            last = [one for one in graph.nodes if one.op == "placeholder"][-1]
            with graph.inserting_after(last):
                size = graph.call_function(torch.ops.aten.sym_size.int, (places[source[0]], source[1]))
            node.replace_all_uses_with(size)
        graph.erase_node(node)


def _items_at(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What takes the items at so many places."""
    if len(places) < 2:
        return lambda args: tuple([args[k] for k in places])
    return itemgetter(*places)


def _keep_results(graph: Any, names: Sequence[str]) -> None:
    """Let a graph give the nodes of these names, and set no mode: PyTorch has set it where the graph is called."""
    nodes = {node.name: node for node in graph.nodes}
    end = next(node for node in reversed(graph.nodes) if node.op == "output")
    end.args = (tuple(nodes[name] for name in names),)
    for node in nodes.values():
        if node.target is torch._C._set_grad_enabled:
            graph.erase_node(node)


def _is_weight(value: Any) -> bool:
    """What belongs to a module and has one address, as TorchDynamo marks it."""
    return isinstance(value, torch.nn.Parameter) or (
        isinstance(value, torch.Tensor) and getattr(value, "_dynamo_static_input_type", None) is not None
    )


def _is_number(value: Any, node: Any) -> bool:
    """A Python number that TorchDynamo passes as a tensor so that it may change: only `item()` reads it."""
    return (
        isinstance(value, torch.Tensor)
        and value.dim() == 0
        and bool(node.users)
        and all(user.op == "call_method" and user.target == "item" for user in node.users)
    )


def _as_number(graph: Any, node: Any, value: float) -> None:
    for user in list(node.users):
        for reader in list(user.users):
            reader.args = torch.fx.map_arg(reader.args, lambda one, user=user: value if one is user else one)
            reader.kwargs = torch.fx.map_arg(reader.kwargs, lambda one, user=user: value if one is user else one)
        graph.erase_node(user)
    graph.erase_node(node)


def _dynamic(fake: Any) -> dict[int, Any]:
    """The axes that may change; a size that tracing has come to know as a number stays it."""
    dynamic = torch.export.Dim.DYNAMIC
    sizes = [size.node.maybe_as_int() if isinstance(size, torch.SymInt) else size for size in fake.shape]
    return {axis: dynamic for axis, size in enumerate(sizes) if size is None}
