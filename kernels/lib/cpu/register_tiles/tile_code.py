"""Kernels on register tiles of images: what is done with the elements of a tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import strides
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.epilogue import extra_operands, finished
from mlirt.kernels.lib.language import Index, Value, kernel, value_of
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.nest_words import masked
from mlirt.kernels.lib.language.tile_words import elements, map_elements, prefetch
from mlirt.kernels.lib.language.words import Strided, static_range
from mlirt.kernels.lib.loops.loop_nest import Affine
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

_WHOLE = 2.0**24


@dataclass(frozen=True)
class Span:
    """The index along one dimension of the result: `start + row * i + column * j + lane * l` for element i, j, l."""

    start: Value
    row: int = 0
    column: int = 0
    lane: int = 0

    @kernel
    def index(self, inside: Sequence[Value]) -> Value:
        """The index of the element in a row, a column and a lane of the tile."""
        factors = zip((self.row, self.column, self.lane), inside, strict=True)
        return value_of(sum([self.start, *[index * factor for factor, index in factors if factor]]))


class TileCode:
    """The epilogue and the results of a kernel that computes `op`, whose result has blocks of `lanes` channels."""

    def __init__(self, k: KernelBuilder, op: ConvolutionOp | WindowOp, lowering: Lowering, lanes: int) -> None:
        self.k, self.op, self.lanes = k, op, lanes
        k.keeps_names = True
        self.extras = extra_operands(op, lowering.placements)
        self.input_steps = lowering.placements[op.input].strides
        self.out = whole(op.output, lowering)
        self._strides: dict[tuple[tuple[Dim, ...], int, int], Stride] = {}

    @kernel
    def finish(
        self,
        tile: Value,
        spans: Sequence[Span],
        rows: Value | None,
        valid: Value | None,
        factor: Value | None = None,
        *,
        is_final: bool = False,
    ) -> None:
        """The epilogue on each element, times `factor`, and its store; `spans` say where the tile lies.

        A tile that `is_final` has been through the epilogue.
        """
        for element, *inside in elements(tile, rows, valid):
            self._store(element if factor is None else element * factor, spans, inside, is_final)

    @kernel
    def through_epilogue(self, tile: Value, spans: Sequence[Span], valid: Value | None) -> Value:
        """The tile that the epilogue makes of each element of one that lies at `spans`."""

        def result(element: Value, *inside: Value) -> Value:
            return self._finished(element, spans, inside)

        values = map_elements(result, tile, valid)
        return values

    def leaves_gaps(self) -> bool:
        """Whether pixels or rows of the results lie further apart than those of a tensor of their type do."""
        return self.out.steps[2:4] != strides(self.op.output.type)[0][2:4]

    @kernel
    def prefetch_results(self, spans: Sequence[Span], rows: int, columns: int) -> None:
        """Ask for the lines of a tile of results: processors foresee only those that follow each other."""
        for row in static_range(rows):
            for column in static_range(columns):
                memory, places = self._place(self.out, spans, [row, column, 0])
                at = sum([index * stride for index, stride in zip(places, memory.strides, strict=True)])
                prefetch(memory.memory, at)

    def _store(self, value: Value, spans: Sequence[Span], inside: Sequence[Value], is_final: bool) -> None:
        value = value if is_final else self._finished(value, spans, inside)
        value = masked(value, self.op.output.type, lambda axis: spans[axis].index(inside))
        memory, places = self._place(self.out, spans, inside)
        memory[places] = value

    def _finished(self, element: Value, spans: Sequence[Span], inside: Sequence[Value]) -> Value:
        total, places = self._accumulated(element), [self._place(one, spans, inside) for one in self.extras]
        extras = [memory[at] for memory, at in places]
        return finished(self.op.epilogue, total, extras, len(spans), lambda axis: spans[axis].index(inside))

    @kernel
    def _accumulated(self, element: Value) -> Value:
        """An element of the tile as the epilogue takes it: sums of int8 may be whole numbers in a float32."""
        wanted = self.op.epilogue.block.args[0].type
        if element.type == wanted:
            return element
        # All that a float32 holds exactly: within these limits the conversion is one instruction.
        return emit(arith.FPToSIOp(min(max(element, -_WHOLE), _WHOLE), wanted))  # pyright: ignore[reportArgumentType]

    def _place(self, one: Affine, spans: Sequence[Span], inside: Sequence[Index]) -> tuple[Strided, list[Index]]:
        """The memory of an operand, and the indices of an element of the tile in it."""
        indices, strides = list[Index](), list[Stride]()
        for axis, span in enumerate(spans):
            factors = zip((1, span.row, span.column, span.lane), (span.start, *inside), strict=True)
            for factor, index in factors:
                stride = self._stride(one, axis, factor)
                if stride != 0:
                    indices.append(index)
                    strides.append(stride)
        memory = self.k.buffer(one.value, one.offset)
        return Strided(self.k.named(memory, "y") if one is self.out else memory, strides), indices

    def _stride(self, one: Affine, axis: int, factor: int) -> Stride:
        """A stride of an operand; operands that lie alike share it. Steps from lane to lane are part of the code."""
        step = one.steps[axis] * factor
        if step == 0:
            return 0
        if isinstance(step, int) and step in (1, self.lanes):
            return step
        key = (one.steps, axis, factor)
        if key not in self._strides:
            stride = self.k.stride(step)
            self._strides[key] = stride if isinstance(stride, int) else self.k.named(stride, f"step_{axis}")
        return self._strides[key]
