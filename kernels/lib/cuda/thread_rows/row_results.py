"""What a thread stores that has neighbouring results of a row: each through the epilogue, then all of them together."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Region

from mlirt.dialects.tensor_types import byte_width, element_of, is_bool, rank
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.epilogue import finished
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.simt_words import Access, element_at, fragment, load_fragment, store_fragment
from mlirt.kernels.lib.language.words import static_range
from mlirt.kernels.lib.loops.loop_nest import Affine, NestCode
from mlirt.kernels.lib.tactics.lowering import Lowering


class RowResults:
    """The epilogue over a nest whose operands are the input, the extra operands and the result.

    A thread has `columns` neighbours along the loop `along`.
    """

    def __init__(self, code: NestCode, along: int, columns: int, epilogue: Region, lowering: Lowering) -> None:
        self.code, self.along, self.columns, self.epilogue = code, along, columns, epilogue
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

    @kernel
    def store(self, at: Sequence[Value], totals: Sequence[Value]) -> None:
        """Store what the epilogue makes of the totals from a place of the nest on."""
        code, results, target = self.code, list[Value](), len(self.code.nest.operands) - 1
        extras = [self._extra(extra, at) for extra in self.extras]
        axes = rank(code.nest.operands[target].value.type)
        for column, total in enumerate(totals):
            here = [*at]
            here[self.along] = at[self.along] + column
            own = [of_columns[column] for of_columns in extras]
            results = [*results, finished(self.epilogue, total, own, axes, lambda axis: code.original(axis, here))]
        together = Access(static_range(self.columns), wide=True)
        store_fragment(fragment(results), code.pointer(target), code.linear(target, at), together)

    @kernel
    def _extra(self, extra: int, at: Sequence[Value]) -> list[Value]:
        """An operand's element for each column."""
        columns, index, memory = static_range(self.columns), self.code.linear(extra, at), self.code.pointer(extra)
        step = self.code.step(extra, self.along)
        if known(step) == 0:
            element = memory[index]
            return [element for _ in columns]
        if extra in self.wide:
            read = load_fragment(memory, index, Access(columns, wide=True))
            return [element_at(read, column) for column in columns]
        places = [index + column * step for column in columns]
        return [memory[place] for place in places]


__all__ = ["RowResults"]
