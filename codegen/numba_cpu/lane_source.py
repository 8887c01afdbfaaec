"""Loops over lanes: what one lane does is written once for vectors, whole ones and then the rest of the row."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.arith import AddfOp, ConstantOp
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, bf16, f16, f32
from xdsl.ir import Block, Operation, SSAValue

from mlirt.codegen.numba_cpu import exact_arithmetic
from mlirt.codegen.numba_cpu.byte_source import ByteSource, moves_int8
from mlirt.codegen.numba_cpu.vocabulary import VOCABULARY
from mlirt.codegen.python_expressions import (
    PRODUCT,
    SUM,
    Expression,
    Rule,
    call,
    expressions_for,
    infix,
    literal,
    narrowed,
    type_name,
)
from mlirt.dialects.kernel.core import SMALL_STEPS, LoadOp, ParallelOp, ReduceOp, StoreOp, stride_values
from mlirt.dialects.kernel.varying import varying_values
from mlirt.dialects.locations import name_of
from mlirt.errors import CompileError


@dataclass(frozen=True)
class LaneLoop:
    """The loop whose iterations are lanes now. `count` is the text of how many lanes take part; None for all."""

    index: SSAValue
    lanes: int
    varying: frozenset[SSAValue]
    count: str | None = None


# Distances between lanes at which whole vectors are loaded and the lanes picked out of them.
_SMALL_STEPS = frozenset(map(str, SMALL_STEPS))
# How many vectors are reduced at once, and the ops in a step of such a reduction.
VECTORS_AT_ONCE, _FEW_STEPS = 4, 6
# Columns that are reduced side by side: four lines of each row, which processors fetch ahead; half of the registers.
_MAX_COLUMNS, _MAX_VECTORS = 64, 8
# How many bytes of a row are taken at once where they are only moved, the most first.
_BYTES_AT_ONCE = (16, 8)


def _floor_division(op: Operation, operands: Sequence[Expression]) -> Expression:
    """Indices are divided by lengths, numbers by whatever comes."""
    is_index = isinstance(op.results[0].type, IndexType)
    return (infix("//", PRODUCT) if is_index else call("floor_div"))(op, operands)


# Powers up to this one are products of squares and roots.
_MAX_PRODUCTS = 4


def _power(op: Operation, operands: Sequence[Expression]) -> Expression:
    """A power; one with a multiple of 1/4 that is known needs no logarithm."""
    exponent = op.operands[1].owner
    if isinstance(exponent, ConstantOp) and isinstance(exponent.value, FloatAttr):
        quarters = 4 * exponent.value.value.data
        if quarters.is_integer() and 0 < abs(quarters) <= 4 * _MAX_PRODUCTS:
            return Expression(f"power_of_quarters({operands[0].text}, {int(quarters)})")
    return call("power")(op, operands)


def _exponential(op: Operation, operands: Sequence[Expression]) -> Expression:
    """A power of e; one that is only added to numbers of at least 1 may be a little more where it is tiny."""
    is_summand = all(_adds_to_large(use.operation) for use in op.results[0].uses)
    return call("exp_as_summand" if is_summand else "exp")(op, operands)


def _adds_to_large(op: Operation) -> bool:
    """Whether an op adds a constant of at least 1 to a float32."""
    if not isinstance(op, AddfOp) or op.result.type != f32:
        return False
    numbers = [one.owner.value for one in op.operands if isinstance(one.owner, ConstantOp)]
    return any(isinstance(number, FloatAttr) and abs(number.value.data) >= 1 for number in numbers)


def _rounding(op: Operation, operands: Sequence[Expression]) -> Expression:
    """A float32 as a half; stores round themselves, and would do so once more."""
    is_stored = all(isinstance(use.operation, StoreOp) and use.index == 0 for use in op.results[0].uses)
    rounds = op.operands[0].type == f32 and op.results[0].type in (f16, bf16)
    return operands[0] if is_stored and rounds else call(type_name(op.results[0].type))(op, operands)


_RULES: Mapping[str, Rule] = {
    **expressions_for("cpu"),
    "arith.floordivsi": narrowed(_floor_division),
    "arith.truncf": _rounding,
    "math.exp": _exponential,
    "math.powf": _power,
    **exact_arithmetic.RULES,
}


class LaneSource(ByteSource):
    """Parallel loops and reductions with and without lanes, and memory as seen from inside of them."""

    target = "cpu"
    vocabulary = VOCABULARY
    rules = _RULES

    def __init__(self) -> None:
        super().__init__()
        self.loop: LaneLoop | None = None
        self._rests: dict[tuple[SSAValue, int], str] = {}

    # --- values

    def varies(self, value: SSAValue) -> bool:
        """Whether a value is a vector here."""
        return self.loop is not None and value in self.loop.varying

    def expression(self, value: SSAValue) -> Expression:
        """The index of the lane loop is a number in addresses (see `address`), elsewhere it is a vector of numbers."""
        if self.loop is not None and value is self.loop.index:
            return Expression(f"lane_indices({self.names.find(value)}, {self.loop.lanes})")
        return super().expression(value)

    def vector_text(self, value: SSAValue) -> str:
        """The text of a value as a vector, spread over the lanes if it is a scalar."""
        assert self.loop is not None
        return self.text(value) if self.varies(value) else f"splat({self.text(value)}, {self.loop.lanes})"

    def text_for(self, value: SSAValue, variable: SSAValue) -> str:
        """A variable that will hold a vector is one from the start, for a Python variable keeps its type."""
        return self.vector_text(value) if self.varies(variable) else self.text(value)

    # --- memory

    def kernel_load(self, op: LoadOp) -> None:
        if self.loop is None or not self.varies(op.result):
            super().kernel_load(op)
            return
        if self._is_scattered(op):
            self._load_scattered(op)
            return
        at, stride = self.lane_address(op)
        lanes, count = self.loop.lanes, self.loop.count
        place = f"{self.text(op.buffer)}, {at}"
        if self.moves_int8:
            self.load_bytes(op, place, lanes)
            return
        if stride.text == "1":
            text = f"load({place}, {lanes})" if count is None else f"load_first({place}, {lanes}, {count})"
        else:
            word = "load_steps" if stride.text in _SMALL_STEPS else "gather"
            operands = f"{place}, {stride.text}, {lanes}"
            text = f"{word}({operands})" if count is None else f"{word}_first({operands}, {count})"
        self.define(op.result, text)

    def _is_scattered(self, op: LoadOp) -> bool:
        """Whether lanes load from places that were computed for each."""
        assert self.loop is not None
        pairs = zip(op.indices, stride_values(op), strict=True)
        return any(self.varies(index) and index is not self.loop.index and stride != 0 for index, stride in pairs)

    def _load_scattered(self, op: LoadOp) -> None:
        assert self.loop is not None
        at, count = self.address(op.indices, stride_values(op)).text, self.loop.count
        place = f"{self.text(op.buffer)}, {at}"
        self.define(op.result, f"load_at({place})" if count is None else f"load_at_first({place}, {count})")

    def kernel_store(self, op: StoreOp) -> None:
        if self.loop is None:
            super().kernel_store(op)
            return
        at, stride = self.lane_address(op)
        if stride.text == "0":
            # The dimension is 1 long, and so is the loop: the first lane is the only one.
            self.line(f"store_first({self.text(op.buffer)}, {at}, {self.vector_text(op.value)}, 1)")
            return
        if stride.text != "1":
            raise CompileError(
                f"{name_of(op)}: lanes store {stride.text} elements apart, only neighbours can be stored"
            )
        if self.moves_int8:
            self.store_bytes(op, f"{self.text(op.buffer)}, {at}")
            return
        place = f"{self.text(op.buffer)}, {at}, {self.vector_text(op.value)}"
        count = self.loop.count
        self.line(f"store({place})" if count is None else f"store_first({place}, {count})")

    def lane_address(self, op: LoadOp | StoreOp) -> tuple[str, Expression]:
        """The address of the first lane, and the distance from lane to lane."""
        assert self.loop is not None
        steps: list[Expression] = []
        pairs = list(zip(op.indices, stride_values(op), strict=True))
        for index, stride in pairs:
            if index is self.loop.index:
                steps.append(Expression(str(stride)) if isinstance(stride, int) else self.expression(stride))
            elif self.varies(index) and stride != 0:
                raise CompileError(f"{name_of(op)}: the lanes of {op.name} lie at no regular distance")
        loop, self.loop = self.loop, None
        at = self.address([index for index, _ in pairs], [stride for _, stride in pairs]).text
        self.loop = loop
        steps = [step for step in steps if step.text != "0"] or [Expression("0")]
        return at, steps[0] if len(steps) == 1 else Expression(" + ".join(step.within(SUM) for step in steps), SUM)

    # --- parallel loops

    def kernel_parallel(self, op: ParallelOp) -> None:
        lanes = lanes_of(op)
        extents, indices = list(op.extents), list(op.body.block.args)
        if "workers" in op.attributes:
            with self.shared(extents, indices):
                self.ops_but_last(op.body.block)
            return
        if lanes == 0:
            with self.nested(extents, indices):
                self.ops_but_last(op.body.block)
            return
        several = _columns_at_once(lanes) if _runs_down_columns(op.body.block, indices[-1]) else []
        moves = lanes < _BYTES_AT_ONCE[0] and moves_int8(op.body.block)

        def body() -> None:
            self.ops_but_last(op.body.block)

        with self.nested(extents[:-1], indices[:-1]):
            over = self._over_bytes if moves else self.over_lanes
            over(op.body.block, extents[-1], indices[-1], [*several, lanes], body)

    def ops_but_last(self, block: Block) -> SSAValue | None:
        """Write the ops of a block; gives the first value that it ends with."""
        *ops, end = block.ops
        self.ops(ops)
        return end.operands[0] if end.operands else None

    @contextmanager
    def nested(self, extents: Sequence[SSAValue], indices: Sequence[SSAValue]) -> Generator[None]:
        """`for` loops, one in the other."""
        if not extents:
            yield
            return
        with self.block_of(f"for {self.names.define(indices[0])} in range({self.text(extents[0])}):"):
            with self.nested(extents[1:], indices[1:]):
                yield

    @contextmanager
    def shared(self, extents: Sequence[SSAValue], indices: Sequence[SSAValue]) -> Generator[None]:
        """A loop over the tasks of a worker, which are numbered row by row; the indices count along."""
        lengths = [self.expression(extent) for extent in extents]
        first, last = self.names.fresh("first"), self.names.fresh("last")
        tasks = " * ".join(length.within(PRODUCT) for length in lengths)
        self.line(f"{first}, {last} = share({tasks}, worker, workers)")
        names = [self.names.define(index) for index in indices]
        if len(names) == 1:
            with self.block_of(f"for {names[0]} in range({first}, {last}):"):
                yield
            return
        starts: list[str] = []
        for axis, length in enumerate(lengths):
            after = [other.within(PRODUCT + 1) for other in lengths[axis + 1 :]]
            start = f"{first} // {after[0] if len(after) == 1 else '(' + ' * '.join(after) + ')'}" if after else first
            starts.append(f"{start} % {length.within(PRODUCT + 1)}" if axis else start)
        self.line(f"{', '.join(names)} = {', '.join(starts)}")
        with self.block_of(f"for _ in range({first}, {last}):"):
            yield
            self._advance(names, lengths)

    def _advance(self, names: Sequence[str], lengths: Sequence[Expression]) -> None:
        """The next task: the last index goes on, at its end the one before it."""
        self.line(f"{names[-1]} += 1")
        if len(names) == 1:
            return
        with self.block_of(f"if {names[-1]} == {lengths[-1].within(SUM)}:"):
            self.line(f"{names[-1]} = 0")
            self._advance(names[:-1], lengths[:-1])

    @contextmanager
    def block_of(self, header: str) -> Generator[None]:
        """As for all targets; what is left of a loop has a name to the end of the block that gives it one."""
        known = dict(self._rests)
        with super().block_of(header):
            yield
        self._rests = known

    def over_lanes(
        self,
        block: Block,
        extent: SSAValue,
        index: SSAValue,
        widths: Sequence[int],
        body: Callable[[], object],
    ) -> None:
        """`body` for vectors of iterations of each width, the widest first, then for the rest of them."""
        name, length, known = self.names.define(index), self.expression(extent), literal(extent)
        varying = frozenset(varying_values(block, [index]))
        outer = self.loop
        if known is not None:
            self._over_known_lanes(name, known, index, varying, widths, body)
            self.loop = outer
            return
        start = "0"
        for lanes in widths:
            self.loop = LaneLoop(index, lanes, varying)
            with self.block_of(f"for {name} in range({start}, {length.within(SUM)} - {lanes - 1}, {lanes}):"):
                body()
            start = f"{length.within(PRODUCT)} // {lanes} * {lanes}"
        lanes = widths[-1]
        rest = self._rests.get((extent, lanes))
        if rest is None:
            rest = self._rests[extent, lanes] = self.names.fresh("rest")
            self.line(f"{rest} = {length.within(PRODUCT)} % {lanes}")
        self.loop = LaneLoop(index, lanes, varying, rest)
        with self.block_of(f"if {rest} > 0:"):
            self.line(f"{name} = {length.within(SUM)} - {rest}")
            body()
        self.loop = outer

    def _over_bytes(
        self, block: Block, extent: SSAValue, index: SSAValue, widths: Sequence[int], body: Callable[[], object]
    ) -> None:
        """As `over_lanes` for a body that may run twice for an iteration: what is left of a row of many is one more
        vector, at its end.
        """
        varying, outer = frozenset(varying_values(block, [index])), self.loop
        name, length = self.names.define(index), self.expression(extent)
        self.moves_int8 = True
        for number, lanes in enumerate(_BYTES_AT_ONCE):
            self.loop = LaneLoop(index, lanes, varying)
            with self.block_of(f"{'elif' if number else 'if'} {length.within(SUM)} >= {lanes}:"):
                with self.block_of(f"for {name} in range(0, {length.within(SUM)} - {lanes - 1}, {lanes}):"):
                    body()
                with self.block_of(f"if {length.within(PRODUCT)} % {lanes} > 0:"):
                    self.line(f"{name} = {length.within(SUM)} - {lanes}")
                    body()
        self.loop, self.moves_int8 = outer, False
        with self.block_of("else:"):
            self.over_lanes(block, extent, index, widths, body)

    def _over_known_lanes(
        self,
        name: str,
        length: int,
        index: SSAValue,
        varying: frozenset[SSAValue],
        widths: Sequence[int],
        body: Callable[[], object],
    ) -> None:
        """As `over_lanes` for a length that is a number: a loop only where it has several iterations."""
        start = 0
        for lanes in widths:
            self.loop = LaneLoop(index, lanes, varying)
            end = start + (length - start) // lanes * lanes
            if end > start + lanes:
                with self.block_of(f"for {name} in range({start}, {end}, {lanes}):"):
                    body()
            elif end > start:
                self.line(f"{name} = {start}")
                body()
            start = end
        if start < length:
            self.loop = LaneLoop(index, widths[-1], varying, str(length - start))
            self.line(f"{name} = {start}")
            body()


def _columns_at_once(lanes: int) -> list[int]:
    """How many columns are reduced side by side, the most first."""
    return sorted({lanes * VECTORS_AT_ONCE, min(_MAX_COLUMNS, lanes * _MAX_VECTORS)}, reverse=True)


def _runs_down_columns(block: Block, index: SSAValue) -> bool:
    """Whether each lane combines the elements of a column, in a few steps: several vectors of columns then share rows
    of memory, and need not wait for each other.
    """
    reductions = [op for op in block.ops if isinstance(op, ReduceOp)]
    if len(reductions) != 1 or not is_short(_innermost(reductions[0])):
        return False
    loads = [op for op in reductions[0].body.walk() if isinstance(op, LoadOp) and index in op.indices]
    steps = [stride_values(op)[list(op.indices).index(index)] for op in loads]
    return bool(steps) and all(step == 1 for step in steps)


def _innermost(op: ReduceOp) -> ReduceOp:
    """The reduction of parts, where a reduction combines parts."""
    parts = [inner for inner in op.body.block.ops if isinstance(inner, ReduceOp)]
    return _innermost(parts[0]) if len(parts) == 1 else op


def is_short(op: ReduceOp) -> bool:
    """Whether several vectors at once take few registers, so that none has to wait for the one before it."""
    return sum(1 for _ in op.body.walk()) <= _FEW_STEPS


def lanes_of(op: Operation) -> int:
    """The lanes that a mapping pass has given to the last dimension of a loop; 0 for none."""
    lanes = op.attributes.get("lanes")
    return lanes.value.data if isinstance(lanes, IntegerAttr) else 0
