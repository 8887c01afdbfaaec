"""What kernels of attention on register tiles are written with: sizes, addresses, loops, sums in a tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.tile import TileFillOp
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.passes.lowering.attention.cpu_shape import CpuShape
from mlirt.passes.lowering.attention.walks import Walk, Walks
from mlirt.passes.lowering.kernel_builder import Stride
from mlirt.passes.lowering.lowering import KernelBuilder
from mlirt.passes.lowering.register_tiles.named_code import NamedCode

_UNROLLED = 4
_FACTORS = 16  # room for one of each row, such that vectors stay aligned


class CpuCode(NamedCode):
    """Appends to a kernel that computes `op` on tiles of a shape."""

    def __init__(self, k: KernelBuilder, op: AttentionOp, walks: Walks, shape: CpuShape) -> None:
        super().__init__(k)
        self.op, self.walks, self.shape = op, walks, shape
        columns = op.columns
        assert isinstance(columns, int)
        self.columns = columns
        self.panels = ceil_div(op.keys, shape.width)
        self.pitch = self.panels * shape.width
        """Elements of a row of scores."""

    @property
    def scratch_elements(self) -> Dim:
        """The memory of a worker: keys, values, scores, and a factor for each row."""
        return self.pitch * (self.op.depth + self.columns + self.shape.rows) + _FACTORS

    def part_of_values(self, values: SSAValue, part: int) -> SSAValue:
        """Where the packed values of a part of the columns start."""
        return self.k.add(values, self.k.mul(self.size("part_size", self.pitch * self.shape.width), part))

    def sum_over(
        self,
        name: str,
        extent: Dim,
        add: Callable[[int], Callable[[SSAValue, SSAValue], SSAValue]],
        bounds: tuple[SSAValue, SSAValue] | None = None,
    ) -> SSAValue:
        """A tile of sums: several steps at once, then what is left. `bounds` are the end of either."""
        k, shape = self.k, self.shape
        tile = k.value(TileFillOp(k.constant(0.0, f32), shape.rows, shape.vectors, shape.lanes))
        tile.name_hint = "sums"
        whole, stop = bounds or (
            self.size(f"whole_{name}", extent // _UNROLLED * _UNROLLED),
            self.size(name, extent),
        )
        tile = k.sum_up(k.constant(0), whole, _UNROLLED, tile, add(_UNROLLED))
        if bounds is not None or extent % _UNROLLED != 0:
            tile = k.sum_up(whole, stop, 1, tile, add(1))
        return tile

    def unrolled(self, count: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The end of the steps that are taken several at once, and of all steps."""
        k = self.k
        return self.named(k.mul(k.div(count, _UNROLLED), _UNROLLED), "whole"), count

    def buffer(self, walk: Walk) -> SSAValue:
        return walk.buffer(self.k)

    def address(self, batch: Sequence[SSAValue], walk: Walk) -> SSAValue:
        """Where the elements of a batch entry start."""
        k, total = self.k, self.k.constant(0)
        for index, step in zip(batch, walk.batch, strict=True):
            stride: Stride = k.stride(step)
            if stride != 0:
                total = k.add(total, k.mul(index, stride))
        return total


class Places:
    """Where the parts of a worker's memory start."""

    def __init__(self, code: CpuCode, memory: SSAValue, keys: SSAValue) -> None:
        k, pitch = code.k, code.pitch
        self.memory, self.keys = memory, keys
        self.values = code.named(k.add(keys, code.size("keys_size", pitch * code.op.depth)), "values_at")
        self.scores = code.named(k.add(self.values, code.size("values_size", pitch * code.columns)), "scores_at")
        self.factors = code.named(k.add(self.scores, code.size("scores_size", pitch * code.shape.rows)), "factors_at")
