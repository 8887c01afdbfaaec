"""The table of contents of a plan file as plain data, read off a host program whose memory is planned.

What is written has the fields of the runtime's records, under their keys. What only the build knows is left out:
`target`, `main`, `profiles`, and the `object` of each kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast

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

from mlirt.builder.plan_writer.library_record import family_of, library_record
from mlirt.builder.plan_writer.plugin_record import plugin_record
from mlirt.builder.plan_writer.record import Fields, Record, record
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
from mlirt.dialects.plan.ops import BufferKind, BufferOp, InputOp, LaunchOp, OutputOp, ViewOp, WeightOp
from mlirt.dialects.plan.step_numbers import regions_of
from mlirt.dialects.plan.tensor_map import TensorMapAttr
from mlirt.dialects.quantization_notes import notes_about, notes_in
from mlirt.dialects.sibling_layers import siblings_among, siblings_in
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
from mlirt.runtime.manifest import (
    FORMAT,
    Buffer,
    BufferArgument,
    FloatArgument,
    IntArgument,
    Kernel,
    Launch,
    Manifest,
    MapArgument,
    MapInArgument,
    Symbol,
    Tensor,
)
from mlirt.runtime.program import Branch, Loop, Place, Requirement, SizeCheck
from mlirt.runtime.program import LengthRequirement as Length
from mlirt.runtime.record_schema import formula_keys
from mlirt.runtime.tensor_maps import MapLayout
from mlirt.tensor_formats import layout_of
from mlirt.version import __version__


def manifest_of(module: ModuleOp, name: str = "network") -> Record:
    """The manifest of a module after the phase `memory`; runtime/manifest.py says what each field means.

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
        self.siblings = siblings_in(module)
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
            "format": FORMAT,
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
            more: Fields = {"counts_runs": True} if is_counter else {}
            needed_by = [layers.get((value.index, axis), "") for axis in range(rank(value.type))]
            if any(needed_by) and format.logical is None:
                more["needed_by"] = needed_by
            yield _tensor("inputs", label, value.type, self.buffers[sources[value]], format, **more)

    def outputs(self) -> Iterator[Record]:
        terminator = self.host[-1]
        assert isinstance(terminator, ReturnOp)
        names, squeezed = output_names(self.function), squeezed_outputs(self.function)
        formats = output_formats(self.function)
        for label, value, bare, format in zip(names, terminator.operands, squeezed, formats, strict=True):
            owner = value.owner
            if not isinstance(owner, OutputOp):
                raise CompileError(f"output {label!r} is not in a buffer: run convert-fused-to-kernel first")
            more: Fields = {"squeezed": True} if bare else {}
            yield _tensor("outputs", label, value.type, self.buffers[owner.buffer], format, **more)

    def buffer(self, op: object) -> Record:
        if isinstance(op, InputOp):
            return record(Buffer, kind="input", size=stored_bytes(op.source.type))
        if isinstance(op, WeightOp):
            return record(Buffer, kind="weight", size=op.bytes.value.data, weight=op.value.key.data)
        if isinstance(op, ViewOp):
            source, offset = self.buffers[op.source], op.offset.value()
            return record(Buffer, kind="arena", size=op.bytes.value(), view_of=source, view_offset=offset)
        assert isinstance(op, BufferOp)
        if op.first is None or op.last is None:
            raise CompileError("a buffer has no lifetime: run plan-memory first")
        lifetime = {"first": op.first.value.data, "last": op.last.value.data}
        offset = None if op.offset is None else op.offset.value()
        return record(Buffer, kind=op.kind.data.value, size=op.bytes.value(), offset=offset, **lifetime, **_halo(op))

    def kernel(self, op: KernelOp | LibraryOp | PluginOp) -> Record:
        if isinstance(op, LibraryOp):
            return library_record(op)
        if isinstance(op, PluginOp):
            return plugin_record(op)
        more: Fields = {flag: True for flag in ("dependent_launch", "cooperative") if flag in op.attributes}
        if "cluster" in op.attributes:
            more["cluster"] = _number(op.attributes["cluster"], 1)
        return record(
            Kernel,
            "",
            ("objects",),
            name=op.sym_name.data,
            symbol=op.sym_name.data,
            block=block_shape(op),
            shared_bytes=_number(op.attributes.get("shared_bytes"), 0),
            args=[_argument_type(arg.type) for arg in op.body.block.args],
            written=written_arguments(op),
            **more,
        )

    def launch(self, op: LaunchOp) -> Record:
        more: Fields = {flag: True for flag in ("serial", "no_barrier") if flag in {**op.attributes, **op.properties}}
        if op.grid is not None:
            more["grid"] = [size.value() for size in op.grid]
        args = [self.argument(op, given) for given in op.arguments()]
        return record(Launch, kernel=self.used[op.kernel_name()], layer=self.layer_name(op), args=args, **more)

    def argument(self, op: LaunchOp, given: Argument) -> Record:
        if isinstance(given, ExpressionAttr):
            return record(IntArgument, value=given.value())
        if isinstance(given, FloatAttr):
            return record(FloatArgument, value=given.value.data)
        buffer = self.buffers[op.buffers[given.operand.data]]
        if isinstance(given, TensorMapAttr):
            return record(MapInArgument, map=self.tensor_map(given, buffer))
        more = {"part": given.part_numbers()} if given.part else {}
        return record(BufferArgument, buffer=buffer, offset=given.value(), **more)

    def tensor_map(self, given: TensorMapAttr, buffer: int) -> Record:
        size = byte_width(given.element)
        more: Fields = {"tf32": True} if given.tf32.data else {}
        if (walk := given.walk()) is not None:
            more.update(lower=list(walk.lower), upper=list(walk.upper), stride=list(walk.stride))
        fixed = record(
            MapLayout,
            element=element_name(given.element),
            box=[length.data for length in given.box],
            swizzle=given.swizzle.data,
            **more,
        )
        steps = [step * size for step in given.step_list()]
        own = record(MapArgument, buffer=buffer, offset=given.value(), sizes=given.size_list(), steps=steps)
        return own | fixed

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
        found: Record = {
            "name": self.layer_name(op),
            "family": self.family(op),
            "kernel": op.kernel_name(),
            "inputs": [one for one, is_constant in zip(tensors, constant, strict=False) if not is_constant],
            "weights": [one for one, is_constant in zip(tensors, constant, strict=False) if is_constant],
            "outputs": tensors[len(types.inputs) :],
        }
        found |= {"quantization": about} if about else {}
        beside = siblings_among(self.siblings, names(op.location)) if self.siblings else []
        found |= {"siblings": beside} if beside else {}
        loop = self.loop_of(op)
        return found if loop is None else found | {"loop": loop}

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
                yield record(Requirement, condition=self.place(op.condition, op.offset), message=op.message.data)
            elif isinstance(op, RequireLengthsOp):
                yield _length_requirement(op.requirement())
            elif isinstance(op, SizeOp) and self.is_used(op.symbol.data):
                found: Fields = {"word": self.place(op.word, op.offset)} if op.word is not None else {}
                if op.word is None and op.value is not None:
                    found["value"] = op.value.value()
                yield record(SizeCheck, symbol=op.symbol.data, **found)

    def nested(self, op: IfOp | WhileOp, order: Mapping[Operation, int]) -> Record:
        condition = self.place(op.condition, op.offset)
        first, second = (list(self.program(ops_in(region), order)) for region in regions_of(op))
        if isinstance(op, IfOp):
            return record(Branch, condition=condition, then=first, otherwise=second)
        return record(Loop, condition=condition, before=first, body=second)

    def place(self, buffer: SSAValue, offset: ExpressionAttr) -> Record:
        return record(Place, buffer=self.buffers[buffer], offset=offset.value())

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
                yield record(Symbol, name=name, input=position, axis=axis)


def _length_requirement(one: LengthRequirement) -> Record:
    how = {"layer": one.layer, "relation": str(one.relation), "text": one.fault}
    return record(Length, left=one.left, right=one.right, where=one.where, **how)


def block_shape(op: KernelOp) -> list[int]:
    """The threads of a block along x, y and z."""
    given = op.attributes.get("block_size")
    if isinstance(given, DenseArrayBase):
        sizes = [int(size) for size in given.get_values()]
        return [*sizes, 1, 1][:3]
    return [_number(given, 1), 1, 1]


def _number(attribute: Attribute | None, default: int) -> int:
    return attribute.value.data if isinstance(attribute, IntegerAttr) else default


def _tensor(role: str, label: str, of: Attribute, buffer: int, format: IoFormat, **more: Any) -> Record:
    """An input or output; one in a format has the shape of the array that holds it."""
    if format.logical is not None:
        more |= {"format": format.name, "logical": format.logical}
    shape, dtype = _stored_shape(of, format), element_name(element_of(of))
    return record(Tensor, role, name=label, dtype=dtype, shape=shape, buffer=buffer, **more)


def _stored_shape(of: Attribute, format: IoFormat) -> tuple[Dim, ...]:
    layout = layout_of(format.name)
    return dims(of) if layout is None or format.logical is None else layout.stored_shape(format.logical)


def _described(of: Attribute, label: str) -> Record:
    found: Record = {"name": label} if label else {}
    if channels(of) is not None:
        found["format"] = "channels in blocks"
    elif not is_row_major(of):
        found["format"] = "channels last" if memory_order(of) == channels_last(rank(of)) else "rows apart"
    return found | {"dtype": element_name(element_of(of)), "shape": [to_json(dim) for dim in dims(of)]}


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
            yield from _expression_symbols(item) if key in _FORMULAS else _symbols_in(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _symbols_in(item)


_WITH_SYMBOLS = ("inputs", "outputs", "buffers", "launches", "requirements")
_FORMULAS = formula_keys(Manifest)
_OPERATORS = ("+", "-", "*", "//", "%", *FUNCTIONS)


def _expression_symbols(value: object) -> Iterator[str]:
    if isinstance(value, str) and value not in _OPERATORS:
        yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _expression_symbols(item)


def _halo(op: BufferOp) -> Fields:
    """The class of a buffer with border cells, where they lie, and what fills them where that is not zero."""
    if op.halo is None or op.kind.data is BufferKind.OUTPUT:
        return {"halo": None}
    found: Fields = {"halo": op.halo.data}
    if op.border is not None:
        found["border"] = [number.value() for number in op.border]
    return found | {"fill": op.fill.value.data} if op.fill.value.data else found
