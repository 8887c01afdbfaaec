"""Register tiles whose elements are put through a scalar computation and then combined with their neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, VectorType, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure, RecursiveMemoryEffect

from mlirt.dialects.integer_list import integers
from mlirt.dialects.kernel.buffers import fragment
from mlirt.dialects.kernel.core import ReduceKind, ReduceKindAttr, YieldOp
from mlirt.dialects.kernel.tile import check_tile, tile_shape
from mlirt.dialects.tensor_op import require


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


@irdl_op_definition
class TilePoolOp(IRDLOperation):
    """`result[i, j, :] = kind(into[i, j, :], tile[i * h + r, j * w + s, :] for all r < h and s < w)`.

    The windows of h x w vectors lie side by side and make up the whole tile; `kind` is add, max or min.

    Example: `%p = kernel.tile_pool max %t into %best {window = array<i64: 2, 1>}
    : vector<14x2x16xf32>, vector<7x2x16xf32> -> vector<7x2x16xf32>`
    """

    name = "kernel.tile_pool"

    kind = prop_def(ReduceKindAttr)
    tile = operand_def(VectorType)
    into = operand_def(VectorType)
    window = prop_def(DenseArrayBase.constr(i64))
    result = result_def(VectorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $tile `into` $into attr-dict `:` type($tile) `,` type($into) `->` type($result)"

    def __init__(self, kind: ReduceKind, tile: SSAValue, into: SSAValue, window: Sequence[int]) -> None:
        super().__init__(
            operands=[tile, into],
            properties={"kind": ReduceKindAttr(kind), "window": DenseArrayBase.from_list(i64, list(window))},
            result_types=[into.type],
        )

    def verify_(self) -> None:
        check_tile(self, self.tile.type)
        check_tile(self, self.into.type, self.result.type)
        known = self.kind.data in (ReduceKind.ADD, ReduceKind.MAX, ReduceKind.MIN)
        require(known, f"{self.name}: it adds or finds the extremes, it does not combine by {self.kind.data}")
        (rows, columns, lanes), (high, wide, deep) = tile_shape(self.tile.type), tile_shape(self.into.type)
        window = integers(self.window)
        fits = len(window) == 2 and (rows, columns, lanes) == (high * window[0], wide * window[-1], deep)
        require(fits, f"{self.name}: windows of {list(window)} do not make {self.into.type} of {self.tile.type}")
