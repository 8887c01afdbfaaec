"""Register tiles from memory: rows as they lie, rows transposed into columns, patches of a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import VectorType
from xdsl.ir import OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.core import element_of_buffer
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import READS, Rule, Text
from mlirt.dialects.kernel.tile import is_tile, shape_text, tile_shape, tile_type

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site


def _places(x: Any, column_step: Any = None) -> Any:
    """Where the elements of each vector lie, in rows x columns x lanes for each active lane."""
    import numpy as np

    rows, columns, lanes = tile_shape(x.op.result.type)
    step = np.full_like(x.x_at, lanes) if column_step is None else column_step
    i, j, lane = np.ogrid[:rows, :columns, :lanes]
    return x.x_at[:, None, None, None] + i * _wide(x.row_step) + j * _wide(step) + lane


def _wide(of_lanes: Any) -> Any:
    return of_lanes[:, None, None, None]


def _kept(x: Any, values: Any) -> Any:
    """Numbers as registers hold them: the 16-bit floats are widened."""
    import numpy as np

    return values.astype(np.float32) if values.dtype.itemsize == 2 and values.dtype.kind in "fV" else values


@instruction
class TileLoadOp(Instruction):
    """`tile[i, j, :] = x[x_at + i * row_step + j * lanes + :]`; zeros beyond the first `valid` elements of a row, which
    are not read.

    Example: `%t = kernel.tile_load %x[%i] rows %s valid %n : memref<?xf32> -> vector<1x4x16xf32>`
    """

    name = "kernel.tile_load"

    x: SSAValue = fields.memref()
    x_at: SSAValue = fields.index()
    row_step: SSAValue = fields.index()
    valid: SSAValue | None = fields.index(default=None)
    result: OpResult = fields.result(VectorType)

    syntax = "$x `[` $x_at `]` `rows` $row_step (`valid` $valid^)?"
    effects = READS
    rules = (is_tile("result"),)
    cpu = Text(
        lambda x: "tile_load" if x.valid is None else "tile_load_first",
        shape_text,
        words=("tile_load", "tile_load_first"),
    )

    def __init__(
        self, x: SSAValue, x_at: SSAValue, row_step: SSAValue, shape: tuple[int, int, int], valid: SSAValue | None
    ) -> None:
        self.fill(x, x_at, row_step, valid, result=tile_type(element_of_buffer(x), *shape))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        _, columns, lanes = tile_shape(x.op.result.type)
        number = np.arange(columns * lanes).reshape(columns, lanes)
        return _kept(x, x.x.read(_places(x), True if x.valid is None else number < _wide(x.valid)))


@instruction
class TileLoadTransposedOp(Instruction):
    """`tile[i, 0, l] = x[x_at + l * row_step + i]`: `lanes` rows of memory, transposed into a square tile.

    Only `rows` rows and of each the first `valid` elements are read: rows beyond repeat the last one, other elements
    are zero. Both are at least 1.

    Example: `%t = kernel.tile_load_transposed %x[%i] rows %s only %n valid %m : memref<?xf32> -> vector<16x1x16xf32>`
    """

    name = "kernel.tile_load_transposed"

    x: SSAValue = fields.memref()
    x_at: SSAValue = fields.index()
    row_step: SSAValue = fields.index()
    rows: SSAValue | None = fields.index(default=None)
    valid: SSAValue | None = fields.index(default=None)
    result: OpResult = fields.result(VectorType)

    syntax = "$x `[` $x_at `]` `rows` $row_step (`only` $rows^)? (`valid` $valid^)?"
    effects = READS
    rules = (
        is_tile("result"),
        Rule(
            "the tile is lanes x 1 x lanes",
            lambda x: tile_shape(x.result) == (tile_shape(x.result)[2], 1, tile_shape(x.result)[2]),
            "the tile is lanes x 1 x lanes, not {result}",
        ),
    )

    def __init__(
        self,
        x: SSAValue,
        x_at: SSAValue,
        row_step: SSAValue,
        lanes: int,
        rows: SSAValue | None = None,
        valid: SSAValue | None = None,
    ) -> None:
        self.fill(x, x_at, row_step, rows, valid, result=tile_type(element_of_buffer(x), lanes, 1, lanes))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        lanes = tile_shape(x.op.result.type)[2]
        row, element = np.arange(lanes), np.arange(lanes)[:, None, None]
        row = row if x.rows is None else np.minimum(row, _wide(x.rows) - 1)
        at = _wide(x.x_at) + row * _wide(x.row_step) + element
        return _kept(x, x.x.read(at, True if x.valid is None else element < _wide(x.valid)))


@instruction
class TileLoadPatchOp(Instruction):
    """`tile[i, j, :] = x[x_at + i * row_step + j * column_step + :]` for `i < rows` and `j < columns`.

    Elsewhere it is zero, and nothing is read. Both limits are at least 1; without them there is none.

    Example: `%t = kernel.tile_load_patch %x[%i] rows %s columns %c : memref<?xf32> -> vector<6x6x16xf32>`
    """

    name = "kernel.tile_load_patch"

    x: SSAValue = fields.memref()
    x_at: SSAValue = fields.index()
    row_step: SSAValue = fields.index()
    column_step: SSAValue = fields.index()
    rows: SSAValue | None = fields.index(default=None)
    columns: SSAValue | None = fields.index(default=None)
    result: OpResult = fields.result(VectorType)

    syntax = "$x `[` $x_at `]` `rows` $row_step `columns` $column_step (`only` $rows^)? (`by` $columns^)?"
    effects = READS
    rules = (
        is_tile("result"),
        Rule(
            "both limits are given, or none",
            lambda x: (x.rows is None) == (x.columns is None),
            lambda x: "it has only one of its limits",
        ),
    )
    cpu = Text(
        lambda x: "tile_load_patch" if x.rows is None else "tile_load_patch_first",
        shape_text,
        words=("tile_load_patch", "tile_load_patch_first"),
    )

    def __init__(
        self,
        x: SSAValue,
        x_at: SSAValue,
        steps: tuple[SSAValue, SSAValue],
        shape: tuple[int, int, int],
        limits: tuple[SSAValue, SSAValue] | None = None,
    ) -> None:
        rows, columns = limits or (None, None)
        self.fill(x, x_at, *steps, rows, columns, result=tile_type(element_of_buffer(x), *shape))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        rows, columns, _ = tile_shape(x.op.result.type)
        i, j, _ = np.ogrid[:rows, :columns, :1]
        inside = True if x.rows is None else (i < _wide(x.rows)) & (j < _wide(x.columns))
        return _kept(x, x.x.read(_places(x, x.column_step), inside))
