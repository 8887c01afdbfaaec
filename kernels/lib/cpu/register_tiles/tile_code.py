"""Kernels on register tiles of images: the tasks of workers, and what is done with the elements of a tile."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, StoreOp, YieldOp
from mlirt.dialects.kernel.tile import TileForEachOp
from mlirt.dialects.kernel.tile_pooling import TileMapOp
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.cpu.register_tiles.named_code import NamedCode
from mlirt.kernels.lib.language import build, value_of
from mlirt.kernels.lib.language.nest_words import masked
from mlirt.kernels.lib.loops.loop_nest import Affine, affine, direct
from mlirt.kernels.lib.loops.scalar_regions import indices_in
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

_WHOLE = 2.0**24


@dataclass(frozen=True)
class Span:
    """The index along one dimension of the result: `start + row * i + column * j + lane * l` for element i, j, l."""

    start: SSAValue
    row: int = 0
    column: int = 0
    lane: int = 0


class TileCode(NamedCode):
    """Appends to a kernel that computes `op`, whose result has blocks of `lanes` channels."""

    def __init__(self, k: KernelBuilder, op: ConvolutionOp | WindowOp, lowering: Lowering, lanes: int) -> None:
        super().__init__(k)
        self.op, self.lanes = op, lanes
        places, rank = lowering.placements, len(op.output.type.get_shape())
        self.extras = [affine(value, places[value], one, rank) for value, one in zip(op.extras, op.access, strict=True)]
        self.input_steps = places[op.input].strides
        self.out = direct(op.output, places[op.output])
        self._strides: dict[tuple[tuple[Dim, ...], int, int], Stride] = {}

    @contextmanager
    def workers(self, extents: Sequence[SSAValue], names: Sequence[str]) -> Generator[list[SSAValue]]:
        """The tasks of a worker, which are numbered row by row over a box."""
        op = ParallelOp(extents)
        op.attributes["workers"] = UnitAttr()
        for argument, name in zip(op.body.block.args, names, strict=True):
            argument.name_hint = name
        with self.k.inside(op.body.block):
            yield list(op.body.block.args)
            self.k.insert(YieldOp(operands=[[]]))
        self.k.insert(op)

    def count(self, start: SSAValue, stop: SSAValue, step: int, name: str, body: Callable[[SSAValue], None]) -> None:
        """`for name in range(start, stop, step): body(name)`."""

        def iteration(index: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            body(index)
            return []

        self.carry(start, stop, step, name, [], iteration)

    def carry(
        self,
        start: SSAValue,
        stop: SSAValue,
        step: int,
        name: str,
        carried: Sequence[SSAValue],
        body: Callable[[SSAValue, list[SSAValue]], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """The same with values that go round; each keeps its name. Returns what the last iteration gave."""
        k = self.k
        block = Block(arg_types=[start.type, *(value.type for value in carried)])
        block.args[0].name_hint = name
        op = scf.ForOp(start, stop, k.constant(step), list(carried), block)
        for value, argument, result in zip(carried, block.args[1:], op.results, strict=True):
            argument.name_hint = result.name_hint = value.name_hint
        with k.inside(block):
            k.insert(scf.YieldOp(*body(block.args[0], list(block.args[1:]))))
        return list(k.insert(op).results)

    # --- the end of a tile

    def finish(
        self,
        tile: SSAValue,
        spans: Sequence[Span],
        rows: SSAValue | None,
        valid: SSAValue | None,
        factor: SSAValue | None = None,
        *,
        is_final: bool = False,
    ) -> None:
        """The epilogue on each element, times `factor`, and its store; `spans` say where the tile lies.

        A tile that `is_final` has been through the epilogue.
        """
        k = self.k
        each = TileForEachOp(tile, rows, valid)
        value: SSAValue
        value, *inside = each.body.block.args
        with k.inside(each.body.block):
            if factor is not None:
                value = k.value(arith.MulfOp(value, factor))
            if not is_final:
                value = self._through_epilogue(value, spans, inside)
            type_ = self.op.output.type
            value = build(k, masked, value_of(value), type_, lambda axis: self._index(spans[axis], inside))
            buffer, places, steps = self._place(self.out, spans, inside)
            k.insert(StoreOp(value, buffer, places, steps))
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)

    def through_epilogue(self, tile: SSAValue, spans: Sequence[Span], valid: SSAValue | None) -> SSAValue:
        """The tile that the epilogue makes of each element of one that lies at `spans`."""
        k = self.k
        each = TileMapOp(tile, valid)
        element, *inside = each.body.block.args
        with k.inside(each.body.block):
            k.insert(YieldOp(operands=[[self._through_epilogue(element, spans, inside)]]))
        return self.named(k.value(each), "values")

    def _through_epilogue(self, element: SSAValue, spans: Sequence[Span], inside: Sequence[SSAValue]) -> SSAValue:
        k, element = self.k, self._accumulated(element)
        extras = [k.value(LoadOp(*self._place(one, spans, inside))) for one in self.extras]
        needed = indices_in(self.op.epilogue)
        indices = [self._index(spans[axis], inside) if axis in needed else inside[0] for axis in range(len(spans))]
        (value,) = k.inline(self.op.epilogue, [element, *extras], indices)
        return value

    def _accumulated(self, element: SSAValue) -> SSAValue:
        """An element of the tile as the epilogue takes it: sums of int8 may be whole numbers in a float32."""
        k, wanted = self.k, self.op.epilogue.block.args[0].type
        if element.type == wanted:
            return element
        # All that a float32 holds exactly: within these limits the conversion is one instruction.
        low, high = (k.constant(limit, element.type) for limit in (-_WHOLE, _WHOLE))
        kept = k.value(arith.MinimumfOp(k.value(arith.MaximumfOp(element, low)), high))
        return k.value(arith.FPToSIOp(kept, wanted))  # pyright: ignore[reportArgumentType]

    def _index(self, span: Span, inside: Sequence[SSAValue]) -> SSAValue:
        k, total = self.k, span.start
        for factor, index in zip((span.row, span.column, span.lane), inside, strict=True):
            if factor:
                total = k.add(total, k.mul(index, factor))
        return total

    def _place(
        self, one: Affine, spans: Sequence[Span], inside: Sequence[SSAValue]
    ) -> tuple[SSAValue, list[SSAValue], list[Stride]]:
        """Buffer, indices and strides of an operand at an element of the tile."""
        indices: list[SSAValue] = []
        strides: list[Stride] = []
        for axis, span in enumerate(spans):
            factors = zip((1, span.row, span.column, span.lane), (span.start, *inside), strict=True)
            for factor, index in factors:
                stride = self._stride(one, axis, factor)
                if stride != 0:
                    indices.append(index)
                    strides.append(stride)
        memory = self.k.buffer(one.value, one.offset)
        return self.named(memory, "y") if one is self.out else memory, indices, strides

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
