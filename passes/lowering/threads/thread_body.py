"""What one thread does for one iteration: the body of a parallel loop, its inner loops in sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove

from mlirt.dialects.combine import COMBINES, ReduceKind
from mlirt.dialects.fused.scalar_builder import integer_type
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, ReduceOp, StoreOp, stride_values
from mlirt.dialects.kernel.fragment import FragmentElementOp, LoadFragmentOp
from mlirt.dialects.tensor_types import is_float, is_unsigned
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.passes.lowering.threads.code_writer import CodeWriter
from mlirt.passes.lowering.threads.vector_width import guarded_load

Step: TypeAlias = Callable[[list[SSAValue]], list[SSAValue]]


_AT_ONCE = 8  # elements of a reduction that a thread loads together
_MIN_ROUNDS = 4  # of so many
_MAX_OPS = 24  # for each of them


def _only_loads(body: Block) -> bool:
    """Whether an element of a reduction is loaded, and little computed of it."""
    ops = list(body.ops)
    return len(ops) <= _MAX_OPS and not any(op.regions for op in ops) and any(isinstance(op, LoadOp) for op in ops)


class ThreadBody:
    """Copies ops to where a writer stands; `mapping` holds the copies of values."""

    def __init__(self, code: CodeWriter, mapping: dict[SSAValue, SSAValue]) -> None:
        self.code = code
        self.mapping = mapping

    def of(self, value: SSAValue) -> SSAValue:
        """The copy of a value."""
        return self.mapping.get(value, value)

    def all_of(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.of(value) for value in values]

    def ops(self, block: Block) -> list[SSAValue]:
        """Copy the ops of a block; returns the copies of what it ends with."""
        last = block.last_op
        for op in block.ops:
            if op is not last:
                self.op(op)
        return self.all_of(last.operands) if last is not None else []

    def op(self, op: Operation) -> None:
        """Copy one op."""
        if isinstance(op, ReduceOp):
            self.reduce(op)
        elif isinstance(op, ParallelOp):
            self.parallel(op)
        elif isinstance(op, arith.ConstantOp):
            self.mapping[op.result] = self._constant(op)
        elif (load := guarded_load(op)) is not None:
            self._load_one_where(op, load)
        elif op.regions and not op.has_trait(IsolatedFromAbove):
            self.nested(op)
        else:
            self.code.insert(op.clone(self.mapping))

    def _load_one_where(self, op: Operation, load: LoadOp) -> None:
        """A load under a condition, without a branch, so that the loads around it need not wait."""
        code, other = self.code, op.regions[1].block.last_op
        assert isinstance(op, scf.IfOp)
        assert other is not None
        condition, loaded = self.read_where(op, load, 1)
        value = code.value(FragmentElementOp(loaded, 0))
        if not is_zero(other.operands[0]):
            value = code.value(arith.SelectOp(condition, value, self.of(other.operands[0])))
        value.name_hint = load.result.name_hint
        self.mapping[op.results[0]] = value

    def read_where(self, op: scf.IfOp, load: LoadOp, width: int) -> tuple[SSAValue, SSAValue]:
        """The condition, and neighbours from a load's place on: zeros where the condition does not hold."""
        for inner in op.true_region.block.ops:
            if inner is load:
                break
            self.op(inner)
        condition = self.of(op.cond)
        valid = self.code.select(condition, width, 0)
        read = LoadFragmentOp(self.of(load.buffer), self.index(load), range(width), valid=valid, wide=width > 1)
        return condition, self.code.value(read)

    def index(self, op: LoadOp | StoreOp) -> SSAValue:
        """The linear index of an access."""
        code = self.code
        index = code.constant(0)
        for at, stride in zip(op.indices, stride_values(op), strict=True):
            index = code.add(index, code.mul(self.of(at), self.of(stride) if isinstance(stride, SSAValue) else stride))
        return index

    def _constant(self, op: arith.ConstantOp) -> SSAValue:
        assert isinstance(op.value, IntegerAttr | FloatAttr)
        return self.code.constant(op.value.value.data, op.result.type)

    def nested(self, op: Operation) -> None:
        """Copy an `scf` op with what is in its regions."""
        regions = [self._region(region) for region in op.regions]
        copy = op.clone_without_regions(self.mapping)
        for old, new in zip(list(copy.regions), regions, strict=True):
            for block in list(new.blocks):
                new.detach_block(block)
                old.add_block(block)
        self.code.insert(copy)

    def _region(self, region: Region) -> Region:
        blocks: list[Block] = []
        for block in region.blocks:
            new = Block(arg_types=[arg.type for arg in block.args])
            for old_arg, new_arg in zip(block.args, new.args, strict=True):
                new_arg.name_hint = old_arg.name_hint
                self.mapping[old_arg] = new_arg
            with self.code.inside(new):
                self.ops(block)
                if block.last_op is not None:
                    self.code.insert(block.last_op.clone(self.mapping))
            blocks.append(new)
        return Region(blocks)

    def parallel(self, op: ParallelOp) -> None:
        """Independent iterations, one after the other."""
        self._loops(self.all_of(op.extents), list(op.body.block.args), [], lambda _: self._run(op.body.block))

    def reduce(self, op: ReduceOp) -> None:
        """Combine in sequence, from `init` on; some elements at once where there are many, so that loads overlap."""
        body = op.body.block
        length = known(op.extents[0]) if len(op.extents) == 1 else None
        if length is not None and length >= _MIN_ROUNDS * _AT_ONCE and _only_loads(body):
            self.mapping[op.result] = self._reduce_at_once(op, length)
            return

        def step(carried: list[SSAValue]) -> list[SSAValue]:
            (value,) = self.ops(body)
            return [combine(self.code, op.kind.data, carried[0], value)]

        (total,) = self._loops(self.all_of(op.extents), list(body.args), [self.of(op.init)], step)
        self.mapping[op.result] = total

    def _reduce_at_once(self, op: ReduceOp, length: int) -> SSAValue:
        """Combine some elements with each other, and then with those before."""
        code, kind, body = self.code, op.kind.data, op.body.block

        def elements(first: SSAValue, count: int) -> SSAValue:
            found: list[SSAValue] = []
            for number in range(count):
                self.mapping[body.args[0]] = code.add(first, number)
                found += self.ops(body)
            while len(found) > 1:
                pairs = [found[k : k + 2] for k in range(0, len(found), 2)]
                found = [pair[0] if len(pair) == 1 else combine(code, kind, *pair) for pair in pairs]
            return found[0]

        def step(count: int) -> Callable[[SSAValue, list[SSAValue]], list[SSAValue]]:
            return lambda at, carried: [combine(code, kind, carried[0], elements(at, count))]

        total, whole = [self.of(op.init)], length - length % _AT_ONCE
        for start, end, count in ((0, whole, _AT_ONCE), (whole, length, 1)):
            if start < end:
                total = code.loop(start, end, count, total, step(count))
        return total[0]

    def _run(self, block: Block) -> list[SSAValue]:
        self.ops(block)
        return []

    def _loops(
        self,
        extents: Sequence[SSAValue],
        names: Sequence[SSAValue],
        carried: list[SSAValue],
        body: Step,
    ) -> list[SSAValue]:
        """A nest of loops around `body(carried)`."""
        if not extents:
            return body(carried)

        def step(index: SSAValue, values: list[SSAValue]) -> list[SSAValue]:
            index.name_hint = names[0].name_hint
            self.mapping[names[0]] = index
            return self._loops(extents[1:], names[1:], values, body)

        return self.code.loop(0, extents[0], 1, carried, step)


def combine(code: CodeWriter, kind: ReduceKind, a: SSAValue, b: SSAValue) -> SSAValue:
    """Two values of a reduction as one; unsigned numbers are compared as such."""
    type_, op = a.type, COMBINES[kind].op(a.type)
    if isinstance(type_, IndexType) or is_float(type_) or not is_unsigned(type_):
        return code.value(op(a, b))
    left, right = (code.value(arith.BitcastOp(value, signless(type_))) for value in (a, b))
    return code.value(arith.BitcastOp(code.value(op(left, right)), type_))


def is_zero(value: SSAValue) -> bool:
    """Whether a value is the constant zero."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, FloatAttr | IntegerAttr):
        return False
    return owner.value.value.data == 0


def signless(type_: Attribute) -> IntegerType:
    """The signless integer type of an integer type's width."""
    return IntegerType(integer_type(type_).width.data)
