"""Notes a size program: what the host computes before a run for sizes that follow from values of inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.integer_list import integers
from mlirt.dialects.interpreter import input_names
from mlirt.dialects.size_program import Step, note_size_program
from mlirt.dialects.symbolic_text import to_json
from mlirt.dialects.tensor_types import dims, element_count, element_of, is_bool, is_float, is_tensor, is_unknown, rank
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.select import SelectOp
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.dialects.trt.unary import UnaryKind, UnaryOp

_MAX_ELEMENTS = 64
_KIND = ElementwiseKind
_BINARY = {
    _KIND.SUM: "sum", _KIND.SUB: "sub", _KIND.PROD: "prod", _KIND.DIV: "div", _KIND.FLOOR_DIV: "floor_div",
    _KIND.MAX: "max", _KIND.MIN: "min", _KIND.AND: "min", _KIND.OR: "max",
    _KIND.EQUAL: "equal", _KIND.LESS: "less", _KIND.GREATER: "greater",
}  # fmt: skip
_REDUCTIONS = {ReduceKind.SUM: "sum", ReduceKind.PROD: "prod", ReduceKind.MAX: "max", ReduceKind.MIN: "min"}

Elements = Sequence[int]
"""The steps whose results are the elements of a tensor of at most one dimension."""


@dataclass(frozen=True)
class NoteSizeProgramPass(ModulePass):
    """Note on a function how the sizes that it defines follow from integers among its inputs and from their lengths.

    So shapes of outputs are known once shapes and values of the inputs are (tensorrt-features.md#12.11). Sizes that
    data decide another way, such as the count of a NonZero, have no such arithmetic. Nothing else is changed.

    Before:

        func.func @main(%x: tensor<?xf32, #trt.dims<["n"]>>, %s: tensor<2xi64>) {
          %h = trt.gather %s, %one : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
          trt.define_size %h {symbol = "size1"} : tensor<i64>

    After:

        func.func @main(..) attributes {trt.size_program = "[[value, s, 1], [size, size1, 0]]"} {
          ...
    """

    name = "note-size-program"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                reader = _Reader(ctx, dict(zip(function.body.block.args, input_names(function), strict=True)))
                for inner in function.body.block.ops:
                    if isinstance(inner, DefineSizeOp):
                        reader.define(inner)
                note_size_program(function, reader.steps if any(step[0] == "size" for step in reader.steps) else [])


@dataclass
class _Reader:
    ctx: Context
    inputs: dict[BlockArgument, str]
    steps: list[Step] = field(default_factory=list[Step])
    known: dict[SSAValue, Elements | None] = field(default_factory=dict[SSAValue, "Elements | None"])

    def define(self, op: DefineSizeOp) -> None:
        dimension = op.dimension()
        if dimension is not None:
            self.step("size", op.symbol.data, self.step("length", to_json(dimension)))
        elif op.count is not None and (found := self.elements(op.count)) is not None:
            self.step("size", op.symbol.data, found[0])

    def step(self, *step: object) -> int:
        """The number of a step, which is made if there is none like it yet."""
        if list(step) not in self.steps:
            self.steps.append(list(step))
        return self.steps.index(list(step))

    def elements(self, value: SSAValue) -> Elements | None:
        """The elements of a small tensor of integers or conditions; None where they are data of another kind."""
        if value not in self.known:
            self.known[value] = self._read(value) if _is_small(value) else None
        return self.known[value]

    def all(self, values: Sequence[SSAValue]) -> list[Elements] | None:
        found = [self.elements(value) for value in values]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) else None

    def _read(self, value: SSAValue) -> Elements | None:
        if isinstance(value, BlockArgument):
            name, count = self.inputs.get(value), element_count(value.type)
            assert isinstance(count, int)
            return None if name is None else [self.step("value", name, k) for k in range(count)]
        op = value.owner
        rule = _RULES.get(type(op)) if isinstance(op, Operation) else None
        return None if rule is None or not isinstance(op, Operation) else rule(op, self)


def _is_small(value: SSAValue) -> bool:
    count = element_count(value.type) if is_tensor(value.type) else None
    fits = isinstance(count, int) and count <= _MAX_ELEMENTS and rank(value.type) <= 1
    return fits and not is_float(element_of(value.type))


def _constant(op: Operation, reader: _Reader) -> Elements | None:
    array = array_of(op.results[0], reader.ctx)
    return None if array is None else [reader.step("number", int(number)) for number in array.ravel().tolist()]


def _shape(op: Operation, reader: _Reader) -> Elements | None:
    lengths = dims(op.operands[0].type)
    return None if any(map(is_unknown, lengths)) else [reader.step("length", to_json(one)) for one in lengths]


def _converted(op: Operation, reader: _Reader) -> Elements | None:
    """Integers as they are, conditions as 0 and 1; an integer as a condition is whether it is another than 0."""
    source, made = op.operands[0], op.results[0]
    data = reader.elements(source)
    if data is None or is_bool(element_of(source.type)) or not is_bool(element_of(made.type)):
        return data
    return [_opposite(_opposite(one, reader), reader) for one in data]


def _opposite(one: int, reader: _Reader) -> int:
    return reader.step("equal", one, reader.step("number", 0))


def _unary(op: Operation, reader: _Reader) -> Elements | None:
    assert isinstance(op, UnaryOp)
    data, kind = reader.elements(op.input), op.kind.data
    if data is None or kind not in (UnaryKind.NOT, UnaryKind.NEG, UnaryKind.ABS):
        return None
    if kind is UnaryKind.NOT:
        return [_opposite(one, reader) for one in data]
    zero = reader.step("number", 0)
    minus = [reader.step("sub", zero, one) for one in data]
    return minus if kind is UnaryKind.NEG else _each("max", [data, minus], reader)


def _reshaped(op: Operation, reader: _Reader) -> Elements | None:
    return reader.elements(op.operands[0])


def _concatenation(op: Operation, reader: _Reader) -> Elements | None:
    parts = reader.all(op.operands)
    return None if parts is None else [one for part in parts for one in part]


def _gather(op: Operation, reader: _Reader) -> Elements | None:
    assert isinstance(op, GatherOp)
    data, places = reader.elements(op.data), array_of(op.indices, reader.ctx)
    default = op.mode.data is GatherMode.DEFAULT and not op.elementwise_dims
    if data is None or places is None or not default or rank(op.data.type) != 1:
        return None
    chosen = [int(place) for place in places.ravel().tolist()]
    return [data[place] for place in chosen] if all(-len(data) <= place < len(data) for place in chosen) else None


def _slice(op: Operation, reader: _Reader) -> Elements | None:
    assert isinstance(op, SliceOp)
    data = reader.elements(op.input)
    if data is None or op.start is None or op.size is None or op.stride is None or rank(op.input.type) != 1:
        return None
    (start,), (size,), (step,) = op.start.dims(), op.size.dims(), integers(op.stride)
    if not isinstance(start, int) or not isinstance(size, int):
        return None
    places = [start + k * step for k in range(size)]
    return [data[place] for place in places] if all(0 <= place < len(data) for place in places) else None


def _elementwise(op: Operation, reader: _Reader) -> Elements | None:
    assert isinstance(op, ElementwiseOp)
    if op.kind.data is _KIND.XOR:
        alike = _each("equal", reader.all(op.operands), reader)
        return None if alike is None else [_opposite(one, reader) for one in alike]
    name = _BINARY.get(op.kind.data)
    return None if name is None else _each(name, reader.all(op.operands), reader)


def _select(op: Operation, reader: _Reader) -> Elements | None:
    return _each("select", reader.all(op.operands), reader)


def _each(name: str, operands: list[Elements] | None, reader: _Reader) -> Elements | None:
    """A step for each element, where operands of one element are repeated."""
    if operands is None or not all(operands):
        return None
    count = max(map(len, operands))
    return [reader.step(name, *(one[k if len(one) > 1 else 0] for one in operands)) for k in range(count)]


def _reduce(op: Operation, reader: _Reader) -> Elements | None:
    assert isinstance(op, ReduceOp)
    data, name = reader.elements(op.input), _REDUCTIONS.get(op.kind.data)
    if not data or name is None or len(integers(op.axes)) != rank(op.input.type):
        return None
    total = data[0]
    for one in data[1:]:
        total = reader.step(name, total, one)
    return [total]


_RULES: dict[type[Operation], Callable[[Operation, _Reader], Elements | None]] = {
    ConstantOp: _constant,
    ShapeOp: _shape,
    IdentityOp: _converted,
    UnaryOp: _unary,
    ShuffleOp: _reshaped,
    ConcatenationOp: _concatenation,
    GatherOp: _gather,
    SliceOp: _slice,
    ElementwiseOp: _elementwise,
    SelectOp: _select,
    ReduceOp: _reduce,
}
