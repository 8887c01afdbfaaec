"""The table of contents of a plan file as plain data, read off a host program whose memory is planned.

What only the builder knows is left out: `target`, `main`, `profiles`, and the `object` of each kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float32Type,
    Float64Type,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.interpreter import counts_runs, entry_function, input_names, output_names, squeezed_outputs
from mlirt.dialects.io_formats import IoFormat, input_formats, output_formats
from mlirt.dialects.kernel.argument_effects import written_arguments
from mlirt.dialects.kernel.core import FuncOp as KernelOp
from mlirt.dialects.kernel.library_op import LibraryOp
from mlirt.dialects.kernel.plugin import PluginOp
from mlirt.dialects.kernel.tensor_map import TensorMapType
from mlirt.dialects.kernel.worker import PARTS
from mlirt.dialects.length_requirements import LengthRequirement, input_lengths_by_layer, requirements_of
from mlirt.dialects.locations import names
from mlirt.dialects.plan.control import Control, IfOp, RequireLengthsOp, RequireOp, SizeOp, WhileOp, ops_in
from mlirt.dialects.plan.expression import Argument, ExpressionAttr
from mlirt.dialects.plan.library_record import family_of, library_record
from mlirt.dialects.plan.ops import BufferKind, BufferOp, InputOp, LaunchOp, OutputOp, ViewOp, WeightOp
from mlirt.dialects.plan.plugin_record import plugin_record
from mlirt.dialects.plan.step_numbers import regions_of
from mlirt.dialects.plan.tensor_map import TensorMapAttr
from mlirt.dialects.quantization_notes import notes_about, notes_in
from mlirt.dialects.size_program import size_program_of
from mlirt.dialects.symbolic import FUNCTIONS, Dim, sym, symbols
from mlirt.dialects.symbolic_text import to_json
from mlirt.dialects.tensor_types import (
    byte_width,
    channels,
    channels_last,
    dims,
    element_name,
    element_of,
    is_row_major,
    memory_order,
    rank,
    stored_bytes,
)
from mlirt.errors import CompileError, UnsupportedError
from mlirt.tensor_formats import layout_of
from mlirt.version import __version__

Record: TypeAlias = "dict[str, object]"


def manifest_of(module: ModuleOp, name: str = "network") -> Record:
    """The manifest of a module after the phase `memory`; runtime/plan_file.py says what each field means.

    Raises `UnsupportedError` where a size depends on a symbol that no input dimension is.
    """
    function = entry_function(module)
    return _Writer(module, function).manifest(name)


def weight_keys(module: ModuleOp) -> list[str]:
    """The keys of the weights that the host program uses, the bytes of plugins included."""
    used = {op.value.key.data for op in entry_function(module).body.block.ops if isinstance(op, WeightOp)}
    states = {op.state.key.data for op in module.ops if isinstance(op, PluginOp) and op.state is not None}
    return sorted(used | states)


class _Writer:
    def __init__(self, module: ModuleOp, function: FuncOp) -> None:
        self.function = function
        self.notes = notes_in(module)
        self.kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp | LibraryOp | PluginOp)}
        self.host = list(function.body.block.ops)
        self.launches = [op for op in function.walk() if isinstance(op, LaunchOp)]
        self.sizes = list(dict.fromkeys(op.symbol.data for op in function.walk() if isinstance(op, SizeOp)))
        self.used = {name: k for k, name in enumerate(dict.fromkeys(op.kernel_name() for op in self.launches))}
        self.buffers: dict[SSAValue, int] = {}
        for op in self.host:
            if isinstance(op, InputOp | WeightOp | BufferOp | ViewOp):
                self.buffers[op.buffer] = len(self.buffers)

    def manifest(self, name: str) -> Record:
        manifest: Record = {
            "format": 2,
            "mlirt": __version__,
            "name": name,
            "symbols": [],
            "sizes": [],
            "requirements": [_length_requirement(one) for one in requirements_of(self.function)],
            "inputs": list(self.inputs()),
            "outputs": list(self.outputs()),
            "buffers": [self.buffer(value.owner) for value in self.buffers],
            "kernels": [self.kernel(self.kernels[kernel]) for kernel in self.used],
            "launches": [self.launch(op) for op in self.launches],
            "layers": [self.layer(op) for op in self.launches],
        }
        if any(isinstance(op, Control) for op in self.host):
            order: dict[Operation, int] = {op: place for place, op in enumerate(self.launches)}
            manifest["program"] = list(self.program(self.host, order))
        wanted = set(_symbols_in([manifest.get(key) for key in (*_WITH_SYMBOLS, "program")]))
        manifest["sizes"] = [name for name in self.sizes if name in wanted]
        manifest["symbols"] = list(self.symbols(wanted - {*self.sizes, PARTS}))
        if PARTS in wanted:
            manifest["parts"] = PARTS
        if manifest["sizes"] and (steps := size_program_of(self.function)):
            manifest["info"] = {"size_program": steps}
        return manifest

    def inputs(self) -> Iterator[Record]:
        sources = {op.source: op.buffer for op in self.host if isinstance(op, InputOp)}
        names, values, counts = input_names(self.function), self.function.body.block.args, counts_runs(self.function)
        formats, layers = input_formats(self.function), input_lengths_by_layer(self.function)
        for label, value, is_counter, format in zip(names, values, counts, formats, strict=True):
            record = _tensor(label, value.type, self.buffers[sources[value]], format)
            needed_by = [layers.get((value.index, axis), "") for axis in range(rank(value.type))]
            if any(needed_by) and format.logical is None:
                record["needed_by"] = needed_by
            yield record | {"counts_runs": True} if is_counter else record

    def outputs(self) -> Iterator[Record]:
        terminator = self.host[-1]
        assert isinstance(terminator, ReturnOp)
        names, squeezed = output_names(self.function), squeezed_outputs(self.function)
        formats = output_formats(self.function)
        for label, value, bare, format in zip(names, terminator.operands, squeezed, formats, strict=True):
            owner = value.owner
            if not isinstance(owner, OutputOp):
                raise CompileError(f"output {label!r} is not in a buffer: run convert-fused-to-kernel first")
            record = _tensor(label, value.type, self.buffers[owner.buffer], format)
            yield record | {"squeezed": True} if bare else record

    def buffer(self, op: object) -> Record:
        if isinstance(op, InputOp):
            return {"kind": "input", "bytes": to_json(stored_bytes(op.source.type))}
        if isinstance(op, WeightOp):
            return {"kind": "weight", "bytes": op.bytes.value.data, "weight": op.value.key.data}
        if isinstance(op, ViewOp):
            size, offset = to_json(op.bytes.value()), to_json(op.offset.value())
            return {"kind": "arena", "bytes": size, "view_of": self.buffers[op.source], "view_offset": offset}
        assert isinstance(op, BufferOp)
        if op.first is None or op.last is None:
            raise CompileError("a buffer has no lifetime: run plan-memory first")
        return {
            "kind": op.kind.data.value,
            "bytes": to_json(op.bytes.value()),
            "first": op.first.value.data,
            "last": op.last.value.data,
            **_halo(op),
            "offset": None if op.offset is None else to_json(op.offset.value()),
        }

    def kernel(self, op: KernelOp | LibraryOp | PluginOp) -> Record:
        if isinstance(op, LibraryOp):
            return library_record(op)
        if isinstance(op, PluginOp):
            return plugin_record(op)
        record: Record = {
            "name": op.sym_name.data,
            "symbol": op.sym_name.data,
            "block": block_shape(op),
            "shared_bytes": _number(op.attributes.get("shared_bytes"), 0),
            "args": [_argument_type(arg.type) for arg in op.body.block.args],
            "written": written_arguments(op),
        }
        if "cluster" in op.attributes:
            record["cluster"] = _number(op.attributes["cluster"], 1)
        if "dependent_launch" in op.attributes:
            record["dependent_launch"] = True
        if "cooperative" in op.attributes:
            record["cooperative"] = True
        return record

    def launch(self, op: LaunchOp) -> Record:
        record: Record = {
            "kernel": self.used[op.kernel_name()],
            "layer": self.layer_name(op),
            "args": [self.argument(op, given) for given in op.arguments()],
        }
        if op.grid is not None:
            record["grid"] = [to_json(size.value()) for size in op.grid]
        record.update({flag: True for flag in ("serial", "no_barrier") if flag in {**op.attributes, **op.properties}})
        return record

    def argument(self, op: LaunchOp, given: Argument) -> Record:
        if isinstance(given, ExpressionAttr):
            return {"int": to_json(given.value())}
        if isinstance(given, FloatAttr):
            return {"float": given.value.data}
        if isinstance(given, TensorMapAttr):
            return {"map": self.tensor_map(given, self.buffers[op.buffers[given.operand.data]])}
        record: Record = {"buffer": self.buffers[op.buffers[given.operand.data]], "offset": to_json(given.value())}
        return record | {"part": given.part_numbers()} if given.part else record

    def tensor_map(self, given: TensorMapAttr, buffer: int) -> Record:
        size = byte_width(given.element)
        record: Record = {
            "buffer": buffer,
            "offset": to_json(given.value()),
            "element": element_name(given.element),
            "sizes": [to_json(dim) for dim in given.size_list()],
            "steps": [to_json(step * size) for step in given.step_list()],
            "box": [length.data for length in given.box],
            "swizzle": given.swizzle.data,
        }
        if given.tf32.data:
            record["tf32"] = True
        if (walk := given.walk()) is not None:
            record.update(lower=list(walk.lower), upper=list(walk.upper), stride=list(walk.stride))
        return record

    def layer_name(self, op: LaunchOp) -> str:
        return " + ".join(names(op.location)) or self.family(op)

    def family(self, op: LaunchOp) -> str:
        kernel = self.kernels[op.kernel_name()]
        if isinstance(kernel, LibraryOp):
            return family_of(kernel)
        if isinstance(kernel, PluginOp):
            return "plugin"
        family = kernel.family
        return "" if family is None else family.data

    def layer(self, op: LaunchOp) -> Record:
        types = op.signature or FunctionType.from_lists([], [])
        given = [*types.inputs, *types.outputs]
        labels = [""] * len(given) if op.tensors is None else [label.data for label in op.tensors]
        tensors = [_described(type_, label) for type_, label in zip(given, labels, strict=True)]
        constant = [label == "" and op.tensors is not None for label in labels[: len(types.inputs)]]
        about = notes_about(self.notes, names(op.location))
        record: Record = {
            "name": self.layer_name(op),
            "family": self.family(op),
            "kernel": op.kernel_name(),
            "inputs": [one for one, is_constant in zip(tensors, constant, strict=False) if not is_constant],
            "weights": [one for one, is_constant in zip(tensors, constant, strict=False) if is_constant],
            "outputs": tensors[len(types.inputs) :],
        }
        record |= {"quantization": about} if about else {}
        loop = self.loop_of(op)
        return record if loop is None else record | {"loop": loop}

    def loop_of(self, op: LaunchOp) -> str | None:
        """The loop of the network that a launch is part of, in its iterations or to make it ready; the outermost
        one.
        """
        found: Operation | None = op
        while found is not None and found not in self.loops:
            found = found.parent_op()
        if found is not None:
            return self.loops[found][0]
        own = set(names(op.location))
        return next((name for name, layers in self.loops.values() if own and own <= layers), None)

    @cached_property
    def loops(self) -> dict[Operation, tuple[str, frozenset[str]]]:
        """The outermost loops: the name of each, and the names of its layer and of the loops in it.

        A loop that runs in one kernel is a launch, which has the names of all that it does.
        """
        found: dict[Operation, tuple[str, frozenset[str]]] = {}
        for op in self.host:
            if isinstance(op, WhileOp):
                layers = [name for inner in op.walk() if isinstance(inner, WhileOp) for name in names(inner.location)]
                found[op] = (" + ".join(names(op.location)) or "loop", frozenset(layers))
            elif isinstance(op, LaunchOp) and self.family(op) == "loop":
                found[op] = (self.layer_name(op), frozenset(names(op.location)))
        return found

    def program(self, ops: Iterable[Operation], order: Mapping[Operation, int]) -> Iterator[object]:
        """The steps of a region; a size that nothing depends on needs no check."""
        for op in ops:
            if isinstance(op, LaunchOp):
                yield order[op]
            elif isinstance(op, IfOp | WhileOp):
                yield self.nested(op, order)
            elif isinstance(op, RequireOp):
                yield {"require": self.place(op.condition, op.offset), "message": op.message.data}
            elif isinstance(op, RequireLengthsOp):
                yield _length_requirement(op.requirement())
            elif isinstance(op, SizeOp) and self.is_used(op.symbol.data):
                known = op.value is None or to_json(op.value.value())
                entry = {"word": self.place(op.word, op.offset)} if op.word is not None else {"value": known}
                yield {"size": op.symbol.data, **entry}

    def nested(self, op: IfOp | WhileOp, order: Mapping[Operation, int]) -> Record:
        keys = ("if", "then", "else") if isinstance(op, IfOp) else ("while", "before", "body")
        regions = [list(self.program(ops_in(region), order)) for region in regions_of(op)]
        return dict(zip(keys, [self.place(op.condition, op.offset), *regions], strict=True))

    def place(self, buffer: SSAValue, offset: ExpressionAttr) -> Record:
        return {"buffer": self.buffers[buffer], "offset": to_json(offset.value())}

    @cached_property
    def used_symbols(self) -> frozenset[str]:
        """The symbols in the types of the outputs, in the sizes of buffers, in the launches and in what is compared."""
        records = {"outputs": list(self.outputs()), "buffers": [self.buffer(value.owner) for value in self.buffers]}
        launches = [self.launch(op) for op in self.launches]
        checks = [op.requirement() for op in self.function.walk() if isinstance(op, RequireLengthsOp)]
        compared = [_length_requirement(one) for one in checks]
        return frozenset(_symbols_in([records, launches, compared]))

    def is_used(self, symbol: str) -> bool:
        return symbol in self.used_symbols

    def symbols(self, wanted: Collection[str]) -> Iterator[Record]:
        """Where to read each symbol: the first input dimension that is exactly it."""
        places: dict[str, tuple[int, int]] = {}
        pairs = zip(self.function.body.block.args, input_formats(self.function), strict=True)
        for position, (value, format) in enumerate(pairs):
            for axis, dim in enumerate(_stored_shape(value.type, format)):
                for name in symbols(dim):
                    if dim == sym(name):
                        places.setdefault(name, (position, axis))
        unknown = sorted(set(wanted) - set(places))
        if unknown:
            raise UnsupportedError(
                f"the size {unknown[0]!r} is not the length of an input dimension: it depends on the data, or "
                "the network has only an expression of it; give the inputs fixed shapes"
            )
        for name, (position, axis) in places.items():
            if name in wanted:
                yield {"name": name, "input": position, "axis": axis}


def _length_requirement(one: LengthRequirement) -> Record:
    lengths = {"left": to_json(one.left), "right": to_json(one.right), "where": to_json(one.where)}
    return {"layer": one.layer, "relation": str(one.relation), **lengths, "fault": one.fault}


def block_shape(op: KernelOp) -> list[int]:
    """The threads of a block along x, y and z."""
    given = op.attributes.get("block_size")
    if isinstance(given, DenseArrayBase):
        sizes = [int(size) for size in given.get_values()]
        return [*sizes, 1, 1][:3]
    return [_number(given, 1), 1, 1]


def _number(attribute: Attribute | None, default: int) -> int:
    return attribute.value.data if isinstance(attribute, IntegerAttr) else default


def _tensor(label: str, of: Attribute, buffer: int, format: IoFormat) -> Record:
    """An input or output; one in a format has the shape of the array that holds it."""
    shape = [to_json(dim) for dim in _stored_shape(of, format)]
    record: Record = {"name": label, "dtype": element_name(element_of(of)), "shape": shape, "buffer": buffer}
    if format.logical is None:
        return record
    return record | {"format": format.name, "logical": [to_json(dim) for dim in format.logical]}


def _stored_shape(of: Attribute, format: IoFormat) -> tuple[Dim, ...]:
    layout = layout_of(format.name)
    return dims(of) if layout is None or format.logical is None else layout.stored_shape(format.logical)


def _described(of: Attribute, label: str) -> Record:
    record: Record = {"name": label} if label else {}
    if channels(of) is not None:
        record["format"] = "channels in blocks"
    elif not is_row_major(of):
        record["format"] = "channels last" if memory_order(of) == channels_last(rank(of)) else "rows apart"
    return record | {"dtype": element_name(element_of(of)), "shape": [to_json(dim) for dim in dims(of)]}


def _argument_type(of: Attribute) -> str:
    if isinstance(of, TensorMapType):
        return "map"
    if isinstance(of, MemRefType):
        return "ptr"
    if isinstance(of, Float32Type | Float64Type):
        return "f32" if isinstance(of, Float32Type) else "f64"
    if isinstance(of, IndexType):
        return "i64"
    if of in (IntegerType(32), IntegerType(64)):
        return str(of)
    raise CompileError(f"a kernel cannot take an argument of type {of}")


def _symbols_in(value: object) -> Iterator[str]:
    """The symbols in the expressions of records."""
    if isinstance(value, dict):
        for key, item in cast("Record", value).items():
            yield from _expression_symbols(item) if key in _EXPRESSIONS else _symbols_in(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _symbols_in(item)


_WITH_SYMBOLS = ("inputs", "outputs", "buffers", "launches", "requirements")
_EXPRESSIONS = (
    *("bytes", "offset", "view_offset", "int", "shape", "logical", "grid", "sizes", "steps", "value"),
    *("left", "right", "where", "border"),
)
_OPERATORS = ("+", "-", "*", "//", "%", *FUNCTIONS)


def _expression_symbols(value: object) -> Iterator[str]:
    if isinstance(value, str) and value not in _OPERATORS:
        yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _expression_symbols(item)


def _halo(op: BufferOp) -> Record:
    """The class of a buffer with border cells, where they lie, and what fills them where that is not zero."""
    if op.halo is None or op.kind.data is BufferKind.OUTPUT:
        return {"halo": None}
    record: Record = {"halo": op.halo.data}
    if op.border is not None:
        record["border"] = [to_json(number.value()) for number in op.border]
    return record | {"fill": op.fill.value.data} if op.fill.value.data else record
