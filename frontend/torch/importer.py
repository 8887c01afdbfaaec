"""Exported PyTorch programs in, `trt` out: the entry of the importer."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.dialects.locations import named as named_location
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.tensor_names import hint_of_name
from mlirt.dialects.tensor_types import Tensor, element_type, tensor
from mlirt.errors import UnsupportedError, UnsupportedOperatorsError
from mlirt.frontend.importing.main_function import end_network, main_module
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.assumed_lengths import require_assumed_lengths
from mlirt.frontend.torch.elements import array_of, element_of_dtype
from mlirt.frontend.torch.graph_reader import GraphReader
from mlirt.frontend.torch.symbols import Symbols


@dataclass(frozen=True)
class CallingConvention:
    """How arguments of a module's call become inputs of the network, and its outputs the results of the call.

    `inputs` has for each leaf of the arguments the name of its input, or `None` for one that is built in. `outputs` has
    for each leaf of the results the name of an output, or what stands there always. `weights` are those that
    layers read. `built_in` has for each leaf of the arguments what it always is where it has no input.
    """

    in_spec: Any
    inputs: tuple[str | None, ...]
    out_spec: Any
    outputs: tuple[tuple[str | None, Any], ...]
    weights: tuple[str, ...] = ()
    built_in: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Imported:
    """A network and how the module that it was made from is called."""

    module: ModuleOp
    convention: CallingConvention


def import_program(
    program: Any,
    ctx: RtContext,
    dimension_names: Mapping[str, str] | None = None,
    *,
    keeps_weights: bool = False,
) -> Imported:
    """The network of an exported program as `func.func @main`; weights go to the context's store, uncopied.

    `dimension_names` are names for PyTorch's symbols. Layers are called by the module's path and the node's name.
    Raises `UnsupportedOperatorsError`, which lists all that cannot be taken.
    """
    register_dialects(ctx)
    net = Network(ctx.weights, keeps_weights=keeps_weights)
    reader = GraphReader(net, Symbols(dimension_names))
    nodes = list(program.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    inputs = _read_inputs(program, net, reader, placeholders)
    with net.unfolded() if keeps_weights else nullcontext():  # what is folded into others cannot be changed
        reader.read(nodes)
    _refuse_mutations(program, reader)
    if reader.refused:
        raise UnsupportedOperatorsError(reader.refused.table())
    with net.at(named_location("exported lengths")):
        require_assumed_lengths(net, program, reader.symbols)
    outputs, named = _read_outputs(program, net, reader, nodes[-1])
    spec = program.call_spec
    weights = _weights_read(program, placeholders)
    given = [
        node.meta.get("val")
        for node, one in zip(placeholders, program.graph_signature.input_specs, strict=True)
        if one.kind == InputKind.USER_INPUT
    ]
    built_in = tuple(None if name is not None else value for name, value in zip(inputs, given, strict=True))
    convention = CallingConvention(spec.in_spec, tuple(inputs), spec.out_spec, tuple(outputs), weights, built_in)
    end_network(net, [value for _, value in named])
    return Imported(main_module(net, named), convention)


def _read_inputs(program: Any, net: Network, reader: GraphReader, placeholders: Sequence[Any]) -> list[str | None]:
    """Weights as constants in their own memory, the others as arguments; the names of the latter."""
    names: list[str | None] = []
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
        if spec.kind == InputKind.USER_INPUT:
            names.append(_user_input(node, net, reader))
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR):
            stored = program.state_dict.get(spec.target)
            stored = program.constants[spec.target] if stored is None else stored
            reader.values[node] = net.constant(array_of(stored), spec.target)
        elif spec.kind != InputKind.TOKEN:  # it orders operators with effects, which are refused by their names
            raise UnsupportedError(f"the input {node.name!r} is a {spec.kind.name.lower()}, expected a tensor")
    return names


def _weights_read(program: Any, placeholders: Sequence[Any]) -> tuple[str, ...]:
    """The floating-point weights that any node reads."""
    return tuple(
        spec.target
        for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True)
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and node.users and node.meta["val"].is_floating_point()
    )


def _user_input(node: Any, net: Network, reader: GraphReader) -> str | None:
    found = node.meta.get("val")
    if not isinstance(found, torch.Tensor):
        if isinstance(found, torch.SymInt):
            raise UnsupportedError(f"the input {node.name!r} is a number that changes; make it a tensor, or a constant")
        reader.values[node] = found
        return None
    name = str(node.name)
    reader.values[node] = argument(net, name, type_of(found, reader.symbols))
    return name


def type_of(fake: Any, symbols: Symbols) -> Tensor:
    """The type of a tensor that PyTorch has traced."""
    return tensor(element_type(element_of_dtype(fake.dtype)), [symbols.dim(size) for size in fake.shape])


def argument(net: Network, name: str, type_: Tensor) -> Value:
    """A new input of the network."""
    made = net.block.insert_arg(type_, len(net.block.args))
    made.name_hint = hint_of_name(name)
    net.input_names.append(name)
    return Value(type_, made, hint=name)


def _refuse_mutations(program: Any, reader: GraphReader) -> None:
    for spec in program.graph_signature.output_specs:
        if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
            what = "buffer" if spec.kind == OutputKind.BUFFER_MUTATION else "input"
            reader.refused.add(
                "mutation", "", str(spec.target), f"the module writes to this {what}", "take and return it as a tensor"
            )


def _read_outputs(
    program: Any, net: Network, reader: GraphReader, output: Any
) -> tuple[list[tuple[str | None, Any]], list[tuple[str, Value]]]:
    """For each leaf of the results its name or what it always is; and the network's outputs by name."""
    leaves: list[tuple[str | None, Any]] = []
    named: list[tuple[str, Value]] = []
    names = _output_names(program.call_spec.out_spec)
    for name, node in zip(names, output.args[0], strict=True):
        value = reader.values[node] if isinstance(node, torch.fx.Node) else node
        if isinstance(value, Value):
            leaves.append((name, None))
            named.append((name, value))
        elif value is None or isinstance(value, int | float | bool | str):
            leaves.append((None, value))
        else:
            raise UnsupportedError(f"the output {name!r} is the size {value}, expected a tensor")
    return leaves, named


def _output_names(spec: Any) -> list[str]:
    """The keys and attributes on the way to each result; `output` where it is the only one."""
    count = spec.num_leaves
    tree = pytree.tree_unflatten(list(range(count)), spec)
    try:
        paths = [path for path, _ in pytree.tree_flatten_with_path(tree)[0]]
    except ValueError:
        paths = [(k,) for k in range(count)]
    names = ["_".join(_key_text(key) for key in path) for path in paths]
    names = [f"output_{name}" if name[:1].isdigit() else name or "output" for name in names]
    return names if len(set(names)) == len(names) else [f"output_{k}" for k in range(count)]


def _key_text(key: Any) -> str:
    for part in ("key", "name", "idx"):
        if hasattr(key, part):
            return str(getattr(key, part))
    return str(key)


def _listed(shapes: Any) -> Any:
    return list(shapes) if isinstance(shapes, tuple) else shapes


def dimension_names(program: Any, keywords: Mapping[str, Any], arguments: Sequence[Any], shapes: Any) -> dict[str, str]:
    """The names that `torch.export.Dim` gave to dimensions, by the symbols that they have become."""
    from torch.export.dynamic_shapes import _combine_args, _tree_map_with_path

    if shapes is None:
        return {}
    wanted: list[Any] = []

    def note(path: Any, leaf: Any, shape: Any) -> None:
        if isinstance(leaf, torch.Tensor):
            wanted.append(shape)

    module = program.module(check_guards=False)
    given = _combine_args(module, tuple(arguments), dict(keywords))
    _tree_map_with_path(note, list(given.values()) if isinstance(shapes, list | tuple) else given, _listed(shapes))
    found: dict[str, str] = {}
    specs = program.graph_signature.input_specs
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    fakes = [
        node.meta["val"]
        for node, spec in zip(nodes, specs, strict=True)
        if spec.kind == InputKind.USER_INPUT and isinstance(node.meta.get("val"), torch.Tensor)
    ]
    for fake, shape in zip(fakes, wanted, strict=False):
        entries = dict(enumerate(shape)) if isinstance(shape, list | tuple) else dict(shape or {})
        for axis, dim in entries.items():
            size, name = fake.shape[axis], getattr(dim, "__name__", None)
            root = getattr(dim, "root", None)
            if isinstance(size, torch.SymInt) and name is not None:
                symbols = [str(one) for one in size.node.expr.free_symbols]
                if len(symbols) == 1:
                    found.setdefault(symbols[0], getattr(root, "__name__", name) if root is not None else name)
    return found
