"""Warpgroup matrix products (wgmma): four warps multiply tiles in shared memory and accumulate in registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import BoolAttr, IndexType, IntegerAttr, UnitAttr, VectorType
from xdsl.ir import Operation, OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import SHARED
from mlirt.dialects.kernel.instruction import Instruction, instruction, view_of
from mlirt.dialects.kernel.instruction_fields import SYNCHRONIZES, Rule, Text
from mlirt.dialects.kernel.matrix_unit import MmaKind, MmaKindAttr
from mlirt.dialects.kernel.simt import WARP, WARPGROUP
from mlirt.dialects.kernel.tensor_copy import CopyOp, map_type
from mlirt.dialects.layout import arranged
from mlirt.dialects.tensor_types import byte_width

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

ROWS = 64
"""Rows of the product."""
LINE, SHORT_LINE = 128, 64
"""Bytes of a line of a tile."""
GROUP_LINES = 8
"""Lines of a tile that always lie side by side."""
_MAX_COLUMNS = 256
_MAX_LINES = 1024  # from one group to the next one


def _accumulator_type(x: Any) -> VectorType:
    return VectorType(x.kind.accumulator_type, [x.columns // 2])


def _is_by_depth(x: Any) -> bool:
    return x.left_by_depth or x.right_by_depth


def _depth(x: Any) -> int:
    """Elements of a line."""
    return x.line // byte_width(x.left.get_element_type())


def _is_apart(step: int | None, by_depth: bool) -> bool:
    """Whether groups of lines can lie so many lines apart (None: side by side)."""
    return step is None or (GROUP_LINES <= step <= _MAX_LINES and not by_depth)


def _cutting(x: Any) -> Operation | None:
    """What writes floats to a tile of tf32 that the matrix unit would cut off bits of."""
    tiles = (x.op.left, x.op.right) if x.kind is MmaKind.TF32 else ()
    writers = [use.operation for tile in tiles for use in tile.uses]
    return next((writer for writer in writers if not _leaves_tf32(writer)), None)


def _leaves_tf32(op: Operation) -> bool:
    """Whether all floats in a tile are ones with 10 bits of mantissa after an op, where they were before."""
    return isinstance(op, WarpgroupMmaOp) or (isinstance(op, CopyOp) and map_type(op.map).rounds)


def _parameters(x: Any) -> str:
    flags = [name for name in ("left_by_depth", "right_by_depth") if getattr(x, name)]
    chosen = "".join(f", {name}=True" for name in flags)
    chosen += f", line={x.line}" if x.line != LINE else ""
    chosen += f", left_step={x.left_step}" if x.left_step is not None else ""
    chosen += f", right_step={x.right_step}" if x.right_step is not None else ""
    return f'"{x.kind}", {x.columns}{chosen}'


@instruction
class WarpgroupMmaOp(Instruction):
    """Start to add the product of a 64 x d and a d x `columns` tile, where d elements fill a `line` of 128 or 64 bytes.

    Both tiles lie in shared memory in such lines, swizzled as tensor copies bring them and aligned to 1024 bytes. Lines
    are rows of the left and columns of the right tile; with `left_by_depth` or `right_by_depth` (16-bit
    elements only) the tile is in pieces of d lines along the depth, one after the other, each of d rows or columns.
    Rows 8 i, .., 8 i + 7 of the left tile are the lines from number `left_step` i on, so that they may be pixels of a
    larger image; then the left tile may start at any line. So may the right tile with a `right_step`, of its columns.

    Of tf32 the matrix unit cuts off the lower 13 bits, which makes each product smaller. So the tiles hold what tensor
    copies have rounded, and nothing else writes to their memory.

    The product goes on until `kernel.warpgroup_wait` or `kernel.warpgroup_accumulators`; before, nobody may write to
    the tiles or use the result but in another `kernel.warpgroup_mma`. Thread `32 w + 4 g + t` has, at `4 j + 2 h + e`,
    the sum of
    row `16 w + 8 h + g` and column `8 j + 2 t + e`.

    Example: `%d = kernel.warpgroup_mma f16 %c, %a[%i], %b[%j] {columns = 128 : i64} : vector<64xf32>,
    memref<16384xf16, "shared">, memref<32768xf16, "shared"> -> vector<64xf32>`
    """

    name = "kernel.warpgroup_mma"

    kind: MmaKindAttr = fields.attribute(converter=MmaKindAttr)
    accumulator: SSAValue = fields.fragment()
    left: SSAValue = fields.memref()
    left_index: SSAValue = fields.index()
    right: SSAValue = fields.memref()
    right_index: SSAValue = fields.index()
    columns: IntegerAttr = fields.attribute(converter=fields.number)
    line: IntegerAttr = fields.attribute(converter=fields.number, default=LINE)
    left_by_depth: UnitAttr | None = fields.attribute(converter=fields.unit, default=False)
    right_by_depth: UnitAttr | None = fields.attribute(converter=fields.unit, default=False)
    left_step: IntegerAttr | None = fields.attribute(converter=fields.number, default=None)
    right_step: IntegerAttr | None = fields.attribute(converter=fields.number, default=None)
    result: OpResult = fields.result(VectorType, like="accumulator")

    syntax = "$kind $accumulator `,` $left `[` $left_index `]` `,` $right `[` $right_index `]`"
    effects = SYNCHRONIZES
    is_asynchronous = True
    scope = "warpgroup"
    rules = (
        Rule("the tiles lie in shared memory", lambda x: x.left.memory_space == x.right.memory_space == SHARED),
        Rule(
            "both have one element type",
            lambda x: x.left.get_element_type() == x.right.get_element_type(),
            lambda x: f"{x.left.get_element_type()} times {x.right.get_element_type()}",
        ),
        Rule(
            "columns are a multiple of 8 up to 256",
            lambda x: x.columns % 8 == 0 and 8 <= x.columns <= _MAX_COLUMNS,
            lambda x: f"columns are a multiple of 8 up to {_MAX_COLUMNS}, not {x.columns}",
        ),
        Rule(
            "a thread has `columns / 2` accumulators, i32 of int8 and else f32",
            lambda x: x.accumulator == _accumulator_type(x),
            lambda x: f"the accumulators are {_accumulator_type(x)}, not {x.accumulator}",
        ),
        Rule(
            "by depth only 16-bit elements can lie",
            lambda x: not _is_by_depth(x) or byte_width(x.left.get_element_type()) == 2,
        ),
        Rule(
            "a line has 128 bytes, or 64 that are not by depth",
            lambda x: x.line == LINE or (x.line == SHORT_LINE and not _is_by_depth(x)),
            "no lines of {line} bytes",
        ),
        Rule(
            "columns by depth are whole pieces",
            lambda x: not x.right_by_depth or x.columns % _depth(x) == 0,
            lambda x: f"{x.columns} columns are no pieces of {_depth(x)}",
        ),
        Rule(
            "`left_step` is from 8 to 1024, and not by depth",
            lambda x: _is_apart(x.left_step, x.left_by_depth),
            lambda x: f"no rows of lines along the depth can lie {x.left_step} lines apart",
        ),
        Rule(
            "`right_step` is from 8 to 1024, and not by depth",
            lambda x: _is_apart(x.right_step, x.right_by_depth),
            lambda x: f"no columns of lines along the depth can lie {x.right_step} lines apart",
        ),
        Rule(
            "only copies that round to tf32 write to tiles of tf32",
            lambda x: _cutting(x) is None,
            lambda x: f"{getattr(_cutting(x), 'name', '')} does not round to tf32, and the matrix unit cuts off bits",
        ),
    )
    cuda = Text("warpgroup_mma", _parameters, hint="multiply")

    def __init__(
        self,
        kind: MmaKind,
        accumulator: SSAValue,
        left: tuple[SSAValue, SSAValue],
        right: tuple[SSAValue, SSAValue],
        columns: int,
        *,
        line: int = LINE,
        left_by_depth: bool = False,
        right_by_depth: bool = False,
        left_step: int | None = None,
        right_step: int | None = None,
    ) -> None:
        steps = left_step, right_step
        self.fill(kind, accumulator, *left, *right, columns, line, left_by_depth, right_by_depth, *steps)

    @property
    def depth(self) -> int:
        """Elements of the sum."""
        return _depth(view_of(self))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        from mlirt.dialects.kernel.interpreter_warpgroups import as_left, product_of_rows, read_tile, widened

        accumulators = x.accumulator.copy()
        for row in site.warpgroups:
            left, left_at = read_tile(site, row, (x.left, x.left_index), ROWS, x.left_by_depth, x.line, x.left_step)
            place = x.right, x.right_index
            right, right_at = read_tile(site, row, place, x.columns, x.right_by_depth, x.line, x.right_step)
            product = widened(as_left(left, x.kind), x.kind) @ widened(right, x.kind).T
            accumulators[row : row + WARPGROUP] += product_of_rows(product).astype(accumulators.dtype)
            site.machine.stages.product(site.warpgroup(row), [left_at, right_at])
        return accumulators


@instruction
class WarpgroupWaitOp(Instruction):
    """Wait until only the `pending` newest products of this warpgroup may still read their tiles.

    Example: `kernel.warpgroup_wait {pending = 1 : i64}`
    """

    name = "kernel.warpgroup_wait"

    pending: IntegerAttr = fields.attribute(converter=fields.number)

    effects = SYNCHRONIZES
    is_asynchronous = True
    scope = "warpgroup"
    cuda = Text("warpgroup_wait", "{pending}", hint="wait")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        for row in site.warpgroups:
            site.machine.stages.wait(site.warpgroup(row), x.pending)


@instruction
class WarpgroupAccumulatorsOp(Instruction):
    """The accumulators, once only the `pending` newest products of this warpgroup may be missing, of which they are
    none.

    Example: `%accumulators = kernel.warpgroup_accumulators %c : vector<64xf32> -> vector<64xf32>`
    """

    name = "kernel.warpgroup_accumulators"

    accumulator: SSAValue = fields.fragment("T", "n")
    pending: IntegerAttr = fields.attribute(converter=fields.number, default=0)
    result: OpResult = fields.result(VectorType, like="accumulator")

    syntax = "$accumulator"
    effects = SYNCHRONIZES
    is_asynchronous = True
    scope = "warpgroup"
    cuda = Text(
        "warpgroup_accumulators", lambda x: f'"{x.T}", {x.n}' + (f", {x.pending}" if x.pending else ""), hint="finish"
    )

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        for row in site.warpgroups:
            site.machine.stages.wait(site.warpgroup(row), x.pending)
        return x.accumulator


@instruction
class SetRegistersOp(Instruction):
    """Give registers of this warpgroup to others, or with `grow` take what others gave: `count` of a thread stay.

    Example: `kernel.set_registers {count = 232 : i64, grow = true}`
    """

    name = "kernel.set_registers"

    count: IntegerAttr = fields.attribute(converter=fields.number)
    grow: BoolAttr = fields.attribute(converter=fields.boolean, default=False)

    effects = SYNCHRONIZES
    scope = "warpgroup"
    rules = (
        Rule(
            "the count is a multiple of 8 from 24 to 256",
            lambda x: x.count % 8 == 0 and 24 <= x.count <= 256,
            "{count} is no multiple of 8 from 24 to 256",
        ),
    )
    cuda = Text("set_registers", lambda x: f"{x.count}" + ", grow=True" * x.grow, hint="keep")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        """A thread has all registers here; those of warpgroups that ask for more than there are wait for ever."""
        for row in site.warpgroups:
            site.machine.registers.ask(site.warpgroup(row), x.count, site.where)


@instruction
class WarpValueOp(Instruction):
    """The value of a warp's first thread, for all its threads: tells that a warp does not diverge on it.

    Example: `%warp = kernel.warp_value %w : index`
    """

    name = "kernel.warp_value"

    value: SSAValue = fields.index()
    result: OpResult = fields.result(IndexType())

    assembly_format = "$value attr-dict `:` type($value)"
    # It depends on the other threads: it must not be moved into or out of a branch.
    effects = SYNCHRONIZES
    scope = "warp"
    cuda = Text("warp_value")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        return x.value[::WARP].repeat(WARP)


@instruction
class JoinColumnsOp(Instruction):
    """Order the accumulators of a warpgroup by rows, and let each thread have `width` (2 or 8) neighbouring columns.

    The four threads of a quad exchange. Thread `32 w + 4 g + t` then has, for groups of `4 width` columns, at
    `(h * groups + k) * width + e` the sum of row `16 w + 8 h + g` and column `4 width k + width t + e`.

    Example: `%row = kernel.join_columns %accumulators {width = 8 : i64} : vector<64xf32> -> vector<64xf32>`
    """

    name = "kernel.join_columns"

    value: SSAValue = fields.fragment("T", "n")
    width: IntegerAttr = fields.attribute(converter=fields.number)
    result: OpResult = fields.result(like="value")

    syntax = "$value"
    effects = SYNCHRONIZES
    scope = "warp"
    rules = (
        Rule("the width is 2 or 8", lambda x: x.width in (2, 8), "a width of 2 or 8, not {width}"),
        Rule(
            "the accumulators are two rows of groups of `width`",
            lambda x: x.n % (2 * x.width) == 0,
            "{n} accumulators are no two rows of groups of {width}",
        ),
    )
    cuda = Text("join_columns", '"{T}", {n}, {width}', hint="join")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        rows = arranged(x.value, "(w g t) (j h e)", "(w g h) (j t e)", g=8, t=4, h=2, e=2)
        return arranged(rows, "(w g h) (k t e)", "(w g t) (h k e)", g=8, h=2, t=4, e=x.width)
