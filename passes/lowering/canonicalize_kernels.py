"""Canonicalization of kernels, before they are printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.simt import BlockIdOp, GridSizeOp, ThreadIdOp
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.passes.lowering.kernel_folds import condition_of, constant, folded

_PLACES = (ThreadIdOp, BlockIdOp, GridSizeOp)
_Key: TypeAlias = "tuple[str, tuple[object, ...], frozenset[tuple[str, Attribute]], tuple[Attribute, ...]]"


@dataclass(frozen=True)
class CanonicalizeKernelsPass(ModulePass):
    """Fold the integers of a kernel, eliminate common scalars within a block, and eliminate dead ones.

    Comparisons of constants, casts to the own type, additions of zero, decided branches, and loops with at most one
    iteration are folded. Floats are left as they are: no result changes by a bit.

    Before: `%c = arith.cmpi eq, %five, %five_1`, `scf.if %c { kernel.barrier }`, `%j = arith.addi %i, %zero`
    After: `kernel.barrier`, and `%i` in the place of `%j`
    """

    name = "canonicalize-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.body.block.ops:
            if isinstance(func, FuncOp):
                _simplify(func.body.block.ops, {})
                _eliminate_dead(func.body.block)


def _simplify(ops: Iterable[Operation], seen: dict[_Key, Operation]) -> None:
    """Fold ops of a block in order, so that each sees what its operands became, and share equal ones."""
    for op in list(ops):
        if isinstance(op, scf.IfOp) and _take_branch(op, seen):
            continue
        if isinstance(op, scf.ForOp) and _run_once_or_never(op, seen):
            continue
        for region in op.regions:
            for inner in region.blocks:
                _simplify(inner.ops, {})
        if not _fold(op):
            _share(op, seen)


def _take_branch(op: scf.IfOp, seen: dict[_Key, Operation]) -> bool:
    """Put the ops of the branch that is taken in the place of a decided one."""
    holds = condition_of(op.cond)
    if holds is None:
        return False
    region = op.true_region if holds else op.false_region
    if region.blocks:
        _inline(op, region.block, (), seen)
    else:
        _replace(op, [])
    return True


def _run_once_or_never(op: scf.ForOp, seen: dict[_Key, Operation]) -> bool:
    """Put the body of a loop of one iteration, or what a loop without iterations starts with, in its place.

    A step that is not known is at least one.
    """
    first, last = known(op.lb), known(op.ub)
    if first is None or last is None or last - first > (known(op.step) or 1):
        return False
    if first >= last:
        _replace(op, list(op.iter_args))
    else:
        _inline(op, op.body.block, (op.lb, *op.iter_args), seen)
    return True


def _inline(op: Operation, block: Block, arguments: Sequence[SSAValue], seen: dict[_Key, Operation]) -> None:
    """Put the ops of a block of `op` in its place, and what the block ends with in that of its results."""
    parent = op.parent
    assert parent is not None
    for inner, outer in zip(block.args, arguments, strict=True):
        _take_over(inner, outer)
    *ops, terminator = block.ops
    for inner in ops:
        inner.detach()
        parent.insert_op_before(inner, op)
    _simplify(ops, seen)
    _replace(op, list(terminator.operands))


def _fold(op: Operation) -> bool:
    found = folded(op) if op.name.startswith("arith.") else None
    if found is None or isinstance(op, arith.ConstantOp):
        return False
    if isinstance(found, int):
        made, block = constant(found, op.results[0].type), op.parent
        assert block is not None
        block.insert_op_before(made, op)
        found = made.result
    _replace(op, [found])
    return True


def _share(op: Operation, seen: dict[_Key, Operation]) -> None:
    if not _is_scalar(op):
        return
    operands = tuple(_operand(value) for value in op.operands)
    attributes: frozenset[tuple[str, Attribute]] = frozenset((*op.properties.items(), *op.attributes.items()))
    first = seen.setdefault((op.name, operands, attributes, tuple([one.type for one in op.results])), op)
    if first is not op:
        _replace(op, first.results)


def _operand(value: SSAValue) -> object:
    """What makes an operand equal to another one: the same number, or the same value."""
    owner = value.owner
    return (owner.value, value.type) if isinstance(owner, arith.ConstantOp) else value


def _is_scalar(op: Operation) -> bool:
    """Whether an op gives a number that only its operands, or the place of the thread, decide about."""
    if isinstance(op, _PLACES):
        return True
    return op.name.startswith(("arith.", "math.")) and not op.regions


def _replace(op: Operation, values: list[SSAValue] | tuple[SSAValue, ...]) -> None:
    for old, new in zip(op.results, values, strict=True):
        _take_over(old, new)
    op.detach()
    op.erase()


def _take_over(old: SSAValue, new: SSAValue) -> None:
    if new.name_hint is None:
        new.name_hint = old.name_hint
    old.replace_all_uses_with(new)


def _eliminate_dead(block: Block) -> None:
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                _eliminate_dead(inner)
        if _is_scalar(op) and all(result.first_use is None for result in op.results):
            op.detach()
            op.erase()
