"""Folds a constant causal mask into attention, as the last key of each query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, FloatAttr
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import yielded
from mlirt.passes.fusion.scalar_bodies import tidy, unconverted
from mlirt.passes.rules import Outcome, RulePass, op, rule

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class FoldCausalMaskPass(RulePass):
    """Skip the keys that a triangular mask hides, in place of computing their scores.

    The mask is a constant over queries and keys, added to the score (0, or a number of at most `hidden`) or choosing
    between the score and such a number. A number so low leaves no weight, which is what it is there for. Every query
    sees a key.

    Before:

        %m = trt.constant {value = dense<[[0.0, -inf], [0.0, 0.0]]>}
        %y = fused.attention %q, %k, %v, %m .. { s + m }

    After:

        %y = fused.attention %q, %k, %v {last_key = #fused.access<["d0"]>} { s }
    """

    name = "fold-causal-mask"

    hidden: float = -10000.0

    @rule(op(AttentionOp, last_key=None).named("attention"))
    def fold(self, ctx: Context, attention: AttentionOp) -> Outcome:
        obstacle = None
        for masked in self._masked(attention):
            position = masked.extra + 3
            reads = [str(index) for index in attention.access.data[position].indices()]
            wanted = [f"d{attention.batch_rank}", f"d{attention.batch_rank + 1}"]
            array = array_of(attention.operands[position], ctx)
            if array is None or [index for index in reads if index != "0"] != wanted or not masked.is_alone():
                obstacle = "the mask is no constant of queries and keys, or serves something else too"
            elif (offset := _triangle(self._visible(array, masked))) is None:
                obstacle = "the mask is not triangular"
            else:
                _take_mask(attention, masked, offset)
                return attention
        return obstacle

    def _visible(self, array: Array, masked: _Masked) -> Array | None:
        """Which keys count for which query; None where that is not clear."""
        import numpy as np

        matrix = array.reshape(array.shape[-2:]) if array.size == array.shape[-2] * array.shape[-1] else None
        if matrix is None or matrix.dtype == np.bool_:
            return matrix if matrix is None or masked.shows else ~matrix
        numbers = matrix.astype(np.float64)
        clear = (numbers == 0) | (numbers <= self.hidden)
        return numbers == 0 if clear.all() else None

    def _masked(self, attention: AttentionOp) -> Iterator[_Masked]:
        """The places where a mask may end the score: sums and choices that nothing but sums and conversions follow."""
        arguments: list[SSAValue] = list(attention.score.block.args)
        waiting = [yielded(attention.score)[0]]
        while waiting:
            made = unconverted(waiting.pop()).owner
            if isinstance(made, arith.AddfOp):
                for mask, rest in ((made.lhs, made.rhs), (made.rhs, made.lhs)):
                    argument = unconverted(mask)
                    if argument in arguments[1:]:
                        yield _Masked(made, argument, arguments.index(argument) - 1, rest, True)
                    waiting.append(rest)
            elif isinstance(made, arith.SelectOp) and made.cond in arguments[1:]:
                for hidden, rest, shows in ((made.rhs, made.lhs, True), (made.lhs, made.rhs, False)):
                    if self._is_hidden(hidden):
                        yield _Masked(made, made.cond, arguments.index(made.cond) - 1, rest, shows)

    def _is_hidden(self, value: SSAValue) -> bool:
        owner = unconverted(value).owner
        if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, FloatAttr):
            return False
        return owner.value.value.data <= self.hidden


@dataclass(frozen=True)
class _Masked:
    """An op of a score that puts in a mask, which is the argument for an extra operand; `rest` is the score without it.

    A mask of booleans `shows` keys, or hides them.
    """

    op: Operation
    argument: SSAValue
    extra: int
    rest: SSAValue
    shows: bool

    def is_alone(self) -> bool:
        """Whether the score needs the mask for nothing else."""
        readers = [use.operation for use in self.argument.uses]
        while len(readers) == 1 and isinstance(readers[0], arith.ExtFOp | arith.TruncFOp):
            readers = [use.operation for use in readers[0].results[0].uses]
        return readers == [self.op]


def _triangle(visible: Array | None) -> int | None:
    """n where query i sees the keys up to i + n, all of them at least one; None for other masks."""
    import numpy as np

    if visible is None or not visible.size or visible.all():
        return None
    rows, columns = visible.shape
    offset = int(visible[0].sum()) - 1
    same = np.array_equal(visible, np.tri(rows, columns, offset, dtype=np.bool_))
    return offset if offset >= 0 and same else None


def _take_mask(attention: AttentionOp, masked: _Masked, offset: int) -> None:
    """Let the score go on without the mask."""
    block = attention.score.block
    result = masked.op.results[0]
    result.replace_all_uses_with(masked.rest)
    tidy(block)
    block.erase_arg(block.args[masked.extra + 1])
    position = masked.extra + 3
    accesses = [access for place, access in enumerate(attention.access) if place != position]
    attention.operands = [value for place, value in enumerate(attention.operands) if place != position]
    attention.properties["access"] = ArrayAttr(accesses)
    attention.properties["last_key"] = AccessAttr.of([iteration(attention.batch_rank) + offset])
