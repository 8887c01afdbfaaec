"""Inlines scalar regions of fused ops into each other, and simplifies the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirt.dialects.fused.fused_op import IndexOp, SizeOp, YieldOp
from mlirt.dialects.symbolic import Dim, coefficient_of, substitute, symbols
from mlirt.dialects.trt.identity import ROUNDS

# Scalar ops that take many instructions; all others take about one.
_SLOW = frozenset({"arith.divf", "arith.divsi", "arith.divui", "arith.floordivsi", "arith.remsi", "arith.remui"})


def work(region: Region) -> int:
    """About how many instructions one element takes; constants and positions are free."""
    cost = 0
    for op in region.block.ops:
        if op.name == "kernel.remf" or (op.name.startswith("math.") and op.name not in ("math.absf", "math.fma")):
            cost += 20
        elif op.name in _SLOW:
            cost += 8
        elif op.name not in ("arith.constant", "fused.yield", "fused.index", "fused.size"):
            cost += 1
    return cost


def size(region: Region) -> int:
    """The number of ops in a scalar region."""
    return sum(1 for _ in region.block.ops)


def prepend(block: Block, producer: Region, arguments: Sequence[SSAValue], at: Sequence[Dim]) -> SSAValue:
    """Copy a producer's region to the front of `block`; returns the value that the copy yields.

    `at` is the producer's position: index k of its iteration space as an expression in the iteration of `block`.
    """
    first = block.first_op
    assert first is not None
    insert: Callable[[Operation], None] = lambda op: block.insert_op_before(op, first)  # noqa: E731
    mapping: dict[SSAValue, SSAValue] = dict(zip(producer.block.args, arguments, strict=True))
    for op in producer.block.ops:
        if isinstance(op, YieldOp):
            return mapping.get(op.values[0], op.values[0])
        if isinstance(op, IndexOp):
            mapping[op.result] = index_value(at[op.dim.value.data], insert)
        else:
            insert(op.clone(value_mapper=mapping))
    raise AssertionError("a scalar region does not end with fused.yield")


def prepend_moved(block: Block, producer: Block, arguments: Sequence[SSAValue]) -> SSAValue:
    """As `prepend` for a producer that is needed nowhere else and does not ask for its position: its ops move."""
    first = block.first_op
    assert first is not None
    for own, argument in zip(producer.args, arguments, strict=True):
        own.replace_all_uses_with(argument)
    for op in list(producer.ops):
        if isinstance(op, YieldOp):
            return op.values[0]
        op.detach()
        block.insert_op_before(op, first)
    raise AssertionError("a scalar region does not end with fused.yield")


def append(block: Block, consumer: Region, arguments: Sequence[SSAValue]) -> None:
    """Let `block` go on with a consumer's region, which reads `arguments`; the consumer's yield becomes the block's."""
    last = block.last_op
    assert isinstance(last, YieldOp)
    mapping: dict[SSAValue, SSAValue] = dict(zip(consumer.block.args, arguments, strict=True))
    for op in consumer.block.ops:
        block.insert_op_before(op.clone(value_mapper=mapping), last)
    block.erase_op(last)


def index_value(position: Dim, insert: Callable[[Operation], None]) -> SSAValue:
    """An `index` value for an expression that is linear in the iteration dimensions."""
    total: SSAValue | None = None
    axes = sorted(int(name[1:]) for name in _iteration_names(position))
    for axis in axes:
        factor = coefficient_of(position, f"d{axis}")
        term = _placed(IndexOp(axis), insert)
        if factor != 1:
            term = _placed(arith.MuliOp(term, _length(factor, insert)), insert)
        total = term if total is None else _placed(arith.AddiOp(total, term), insert)
    offset = substitute(position, {f"d{axis}": 0 for axis in axes})
    if total is None:
        return _length(offset, insert)
    return total if offset == 0 else _placed(arith.AddiOp(total, _length(offset, insert)), insert)


def _iteration_names(position: Dim) -> list[str]:
    return [name for name in symbols(position) if name[0] == "d" and name[1:].isdigit()]


def _length(length: Dim, insert: Callable[[Operation], None]) -> SSAValue:
    op = arith.ConstantOp(IntegerAttr(length, IndexType())) if isinstance(length, int) else SizeOp(length)
    return _placed(op, insert)


def _placed(op: Operation, insert: Callable[[Operation], None]) -> SSAValue:
    insert(op)
    return op.results[0]


def tidy(block: Block) -> None:
    """Share equal ops, undo roundings that are widened again at once, drop what nothing reads."""
    seen: dict[object, SSAValue] = {}
    for op in list(block.ops):
        if isinstance(op, YieldOp):
            break
        result = op.results[0]
        known = _unrounded(op) or seen.setdefault(_key(op), result)
        if known is not result:
            result.replace_all_uses_with(known)
    for op in reversed(list(block.ops)):
        if not isinstance(op, YieldOp) and op.results[0].first_use is None:
            block.erase_op(op)


def _key(op: Operation) -> tuple[object, ...]:
    properties: Mapping[str, Attribute] = op.properties
    return (op.name, *map(id, op.operands), *properties.items(), ROUNDS in op.attributes, op.results[0].type)


def unconverted(value: SSAValue) -> SSAValue:
    """What a value is before conversions between floating-point types."""
    while isinstance(value.owner, arith.ExtFOp | arith.TruncFOp):
        value = value.owner.input
    return value


def _unrounded(op: Operation) -> SSAValue | None:
    """x where `op` is extf(truncf(x)) back to x's type: a fused value is kept in the precision of the computation, but
    for what a network rounds.
    """
    if not isinstance(op, arith.ExtFOp) or not isinstance(op.input.owner, arith.TruncFOp):
        return None
    if ROUNDS in op.input.owner.attributes:
        return None
    source = op.input.owner.input
    return source if source.type == op.result.type else None
