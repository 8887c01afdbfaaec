"""What a thread stores that has neighbouring results of a row: each through the epilogue, then all of them together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Region, SSAValue

from mlirt.dialects.kernel.core import LoadOp
from mlirt.dialects.kernel.fragment import FragmentElementOp, FragmentOp, LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_bool
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.loops.loop_nest import Affine, NestCode
from mlirt.kernels.lib.loops.reduction_nest import indices_in
from mlirt.kernels.lib.tactics.lowering import Lowering


class RowResults:
    """The epilogue over a nest whose operands are the input, the extra operands and the result.

    A thread has `columns` neighbours along the loop `along`.
    """

    def __init__(self, code: NestCode, along: int, columns: int, epilogue: Region, lowering: Lowering) -> None:
        self.code, self.along, self.columns, self.epilogue = code, along, columns, epilogue
        self.k = code.builder
        self.extras = range(1, len(code.nest.operands) - 1)
        self.wide = {extra for extra in self.extras if self._is_wide(code.nest.operands[extra], lowering)}

    def _is_wide(self, one: Affine, lowering: Lowering) -> bool:
        """Whether an operand's elements for the columns lie together as one access needs it."""
        element = element_of(one.value.type)
        if one.steps[self.along] != 1 or is_bool(element):
            return False
        others = [one.offset, *(step for loop, step in enumerate(one.steps) if loop != self.along)]
        most = min(16, self.columns * byte_width(element))
        return widest_access(one.value, others, lowering, most) * byte_width(element) == most

    def store(self, at: Sequence[SSAValue], totals: Sequence[SSAValue]) -> None:
        """Store what the epilogue makes of the totals from a place of the nest on."""
        k, code, results = self.k, self.code, list[SSAValue]()
        extras = [self._extra(extra, at) for extra in self.extras]
        needed, target = indices_in(self.epilogue), len(code.nest.operands) - 1
        axes = range(len(dims(code.nest.operands[target].value.type)))
        for column, total in enumerate(totals):
            here = [*at]
            here[self.along] = k.add(at[self.along], column)
            indices = [code.original(axis, here) if axis in needed else here[0] for axis in axes]
            results += k.inline(self.epilogue, [total, *(own[column] for own in extras)], indices)
        values = k.value(FragmentOp(results))
        k.insert(StoreFragmentOp(values, code.pointer(target), code.linear(target, at), range(self.columns), wide=True))

    def _extra(self, extra: int, at: Sequence[SSAValue]) -> list[SSAValue]:
        """An operand's element for each column."""
        k, code, columns = self.k, self.code, self.columns
        index, memory, step = code.linear(extra, at), code.pointer(extra), code.step(extra, self.along)
        if known(step) == 0:
            return [k.value(LoadOp(memory, [index], [1]))] * columns
        if extra in self.wide:
            read = k.value(LoadFragmentOp(memory, index, range(columns), wide=True))
            return [k.value(FragmentElementOp(read, column)) for column in range(columns)]
        places = [k.add(index, k.mul(k.constant(column), step)) for column in range(columns)]
        return [k.value(LoadOp(memory, [place], [1])) for place in places]


__all__ = ["RowResults"]
