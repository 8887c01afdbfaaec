"""Results of a graph that share memory with its arguments or with each other, made as PyTorch makes them: as views.

An engine gives arrays of its own. What writes to `x[1:]` or to one of `y, y.t()` after a call expects to write to `x`
and to the other one as well, so that such results are taken by PyTorch from the argument, or from one result of the
engine. A transposed or expanded result costs no copy then either.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch

_CHANGES_SHAPE = frozenset(
    f"{name}_"
    for name in (
        "t transpose swapaxes swapdims squeeze unsqueeze resize resize_as set as_strided rename detach requires_grad"
    ).split()
)
"""Methods that change a tensor's shape or kind rather than its elements: no view can be told by the graph then."""
_IN_PLACE = frozenset(
    f"i{name}" for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
)
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


class _Untold(Exception):
    """A view that cannot be taken again from the arguments and results of a call."""


class AliasedResults:
    """Which nodes the engines compute, and how the results of a call follow from these and its arguments."""

    def __init__(self, module: Any) -> None:
        """`module`: a graph of TorchDynamo, whose nodes have the tensors that it traced."""
        self._module = module
        self._nodes = list(module.graph.nodes)
        self._places = [node for node in self._nodes if node.op == "placeholder"]
        self.results = list(self._nodes[-1].args[0])
        self._owners = _owners(self._nodes)
        self.computed: list[Any] = []
        """The nodes whose values the engines give."""
        self._views: Any = None
        self._read: list[int] = []
        can_tell = not any(_name(node) in _CHANGES_SHAPE for node in self._nodes)
        if can_tell and any(self._is_view(one) for one in self.results):
            self._write_views()
        if self._views is None:
            self.computed = [one for one in self.results if isinstance(one, torch.fx.Node)]

    @property
    def is_plain(self) -> bool:
        """Whether the engines' results are those of the call."""
        return self._views is None

    def __call__(self, args: Sequence[Any], found: Sequence[Any]) -> Any:
        """The results of a call, with these arguments, in which the engines have found so much."""
        if self._views is None:
            return found
        return self._views(*[args[k] for k in self._read], *found)

    def _is_view(self, node: Any) -> bool:
        """Whether a result is to be taken by PyTorch: from an argument, or from what another result has too."""
        owner = self._owner(node)
        if owner is None or owner.op in ("placeholder", "get_attr"):
            return owner is not None
        if not _is_dense(_tensor(owner)):
            return False
        shared = Counter(self._owner(one) for one in {one for one in self.results if isinstance(one, torch.fx.Node)})
        return shared[owner] > 1 or (node is not owner and _is_transposed(_tensor(node), _tensor(owner)))

    def _owner(self, node: Any) -> Any:
        tensor = _tensor(node)
        return None if tensor is None else self._owners.get(_storage(tensor))

    def _write_views(self) -> None:
        """A graph of the arguments that views are taken of and of the engines' results."""
        first = _ViewWriter(self._owners, ())
        self._taken(first)
        self._read = [k for k, place in enumerate(self._places) if place in first.given]
        self.computed = [node for node in first.given if node not in self._places]
        second = _ViewWriter(self._owners, [*(self._places[k] for k in self._read), *self.computed])
        second.graph.output(tuple(self._taken(second)))
        run: Callable[..., Any] = torch.fx.GraphModule(self._module, second.graph).forward
        self._views = run

    def _taken(self, writer: _ViewWriter) -> list[Any]:
        found: list[Any] = []
        for one in self.results:
            try:
                found.append(writer.view(one) if self._is_view(one) else writer.value(one))
            except _Untold:
                found.append(writer.value(one))
        return found


class _ViewWriter:
    """Writes the calls that take views once more, of placeholders for arguments and for what engines compute."""

    def __init__(self, owners: dict[int, Any], given: Sequence[Any]) -> None:
        self.graph = torch.fx.Graph()
        self.given: dict[Any, Any] = {}
        """The placeholder of each argument, and of each node that engines compute."""
        self._owners = owners
        self._made: dict[Any, Any] = {}
        for node in given:
            self.value(node)

    def value(self, node: Any) -> Any:
        """What a call has: an argument, a result of the engines, or a number."""
        if not isinstance(node, torch.fx.Node):
            return node
        if node not in self.given:
            self.given[node] = self.graph.placeholder(f"given_{node.name}")
        return self.given[node]

    def view(self, node: Any) -> Any:
        """A tensor that shares memory with what owns it."""
        if node in self._made:
            return self._made[node]
        self._made[node] = found = self._view(node)
        return found

    def _view(self, node: Any) -> Any:
        if node.op == "get_attr":
            return self.graph.node_copy(node)
        if node.op == "placeholder":
            return self.value(node)
        value = node.meta.get("example_value")
        if isinstance(value, _NUMBERS):
            return self._copied(node)
        tensor = _first(value)
        if tensor is None:
            raise _Untold
        owner = self._owners.get(_storage(tensor))
        if owner is node:
            return self.value(node)
        if _writes(node):
            source = next((one for one in node.all_input_nodes if self._owns(one, owner)), None)
            if source is None:
                raise _Untold
            return self.view(source)
        if owner is None or not any(self._owns(one, owner) for one in node.all_input_nodes):
            raise _Untold
        return self._copied(node)

    def _owns(self, node: Any, owner: Any) -> bool:
        tensor = _first(node.meta.get("example_value"))
        return tensor is not None and self._owners.get(_storage(tensor)) is owner

    def _copied(self, node: Any) -> Any:
        found = {one: self.view(one) for one in node.all_input_nodes}
        return self.graph.node_copy(node, found.__getitem__)


def _owners(nodes: Sequence[Any]) -> dict[int, Any]:
    """By the memory of a traced tensor the first node that has it; several results own what their items have."""
    found: dict[int, Any] = {}
    for node in nodes:
        tensor = _tensor(node)
        if tensor is not None:
            found.setdefault(_storage(tensor), node)
    return found


def _tensor(node: Any) -> Any:
    return _dense_tensor(node.meta.get("example_value") if isinstance(node, torch.fx.Node) else None)


def _first(value: Any) -> Any:
    return _dense_tensor(value[0] if _holds_tensors(value) else value)


def _dense_tensor(value: Any) -> Any:
    """A value that is a tensor with strides, else None."""
    is_dense = isinstance(value, torch.Tensor) and value.layout == torch.strided
    return value if is_dense else None


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, tuple | list) and bool(value) and isinstance(value[0], torch.Tensor)


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def _name(node: Any) -> str:
    target = node.target
    return target if isinstance(target, str) else str(getattr(target, "__name__", target))


def _writes(node: Any) -> bool:
    """Whether a call writes to a tensor and returns it: `add_`, `operator.iadd`."""
    name = _name(node)
    return name in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))


def _is_dense(tensor: Any) -> bool:
    """Whether elements lie in the order of rows, whatever the lengths are."""
    wanted: Any = 1
    for size, stride in reversed(list(zip(tensor.shape, tensor.stride(), strict=True))):
        if _formula(size) != 1 and _formula(stride) != _formula(wanted):
            return False
        wanted = size * wanted
    return True


def _is_transposed(tensor: Any, owner: Any) -> bool:
    """Whether a view is its owner transposed, or has elements of it more than once."""
    if _is_dense(tensor):
        return False
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    repeats = any(_formula(stride) == 0 and _formula(size) != 1 for size, stride in pairs)
    return repeats or sorted(map(str, tensor.shape)) == sorted(map(str, owner.shape))


def _formula(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size
