"""Register tiles whose elements are put through a scalar computation and then combined with their neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.ir import Block, OpResult, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import RecursiveMemoryEffect

from mlirt.dialects.combine import COMBINES, ReduceKind
from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import fragment
from mlirt.dialects.kernel.core import ReduceKindAttr, YieldOp
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, Rule, Text
from mlirt.dialects.kernel.tile import check_tile, is_tile, tile_shape
from mlirt.dialects.tensor_op import require

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site


@irdl_op_definition
class TileMapOp(IRDLOperation):
    """A tile of what the region makes of each element of another one; it gets the element, its row, column and lane.

    With `valid` only the first so many elements of each row count, over columns and lanes: for vectors without one the
    region is not executed, and they stay as they are.

    Example: `%u = kernel.tile_map %t valid %m : vector<6x4x16xf32> -> vector<6x4x16xf32>
    { ^bb0(%v: f32, %i: index, %j: index, %lane: index): .. kernel.yield %w : f32 }`
    """

    name = "kernel.tile_map"

    tile = operand_def(VectorType)
    valid = opt_operand_def(IndexType())
    result = result_def(VectorType)
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "$tile (`valid` $valid^)? attr-dict-with-keyword `:` type($tile) `->` type($result) $body"

    def __init__(self, tile: SSAValue, valid: SSAValue | None = None) -> None:
        index = IndexType()
        body = Region(Block(arg_types=[fragment(tile).element_type, index, index, index]))
        super().__init__(operands=[tile, valid], result_types=[tile.type], regions=[body])

    def made(self) -> SSAValue:
        """What the body makes of an element."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return last.operands[0]

    def verify_(self) -> None:
        check_tile(self, self.tile.type, self.result.type)
        given = [arg.type for arg in self.body.block.args]
        takes = [fragment(self.tile).element_type, *[IndexType()] * 3]
        require(given == takes, f"{self.name}: the body takes the element, its row, column and lane")
        last = self.body.block.last_op
        gives = isinstance(last, YieldOp) and [value.type for value in last.operands] == takes[:1]
        require(gives, f"{self.name}: the body does not end with kernel.yield of an element")


_COMBINERS = {kind: COMBINES[kind].function for kind in (ReduceKind.ADD, ReduceKind.MAX, ReduceKind.MIN)}


def _fits(x: Any) -> bool:
    (rows, columns, lanes), (high, wide, deep) = tile_shape(x.tile), tile_shape(x.into)
    return len(x.window) == 2 and (rows, columns, lanes) == (high * x.window[0], wide * x.window[-1], deep)


@instruction
class TilePoolOp(Instruction):
    """`result[i, j, :] = kind(into[i, j, :], tile[i * h + r, j * w + s, :] for all r < h and s < w)`.

    The windows of h x w vectors lie side by side and make up the whole tile; `kind` is add, max or min.

    Example: `%p = kernel.tile_pool max %t into %best {window = array<i64: 2, 1>}
    : vector<14x2x16xf32>, vector<7x2x16xf32> -> vector<7x2x16xf32>`
    """

    name = "kernel.tile_pool"

    kind: ReduceKindAttr = fields.attribute(converter=ReduceKindAttr)
    tile: SSAValue = fields.tile("T")
    into: SSAValue = fields.tile("T")
    window: fields.Numbers = fields.attribute(converter=fields.numbers)
    result: OpResult = fields.result(VectorType, like="into")

    syntax = "$kind $tile `into` $into"
    effects = PURE
    rules = (
        is_tile("tile"),
        is_tile("into"),
        Rule(
            "it adds or finds the extremes",
            lambda x: x.kind in _COMBINERS,
            "it adds or finds the extremes, it does not combine by {kind}",
        ),
        Rule(
            "windows side by side make up the tile",
            _fits,
            lambda x: f"windows of {list(x.window)} do not make {x.into} of {x.tile}",
        ),
    )
    cpu = Text("tile_pool", lambda x: ", ".join([f'"{x.kind}"', *map(str, x.window)]))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        combine: Any = getattr(np, _COMBINERS[x.kind])
        high, wide = x.window
        count, rows, columns, lanes = x.tile.shape
        windows = x.tile.reshape(count, rows // high, high, columns // wide, wide, lanes)
        return combine(x.into, combine.reduce(windows, axis=(2, 4)))
