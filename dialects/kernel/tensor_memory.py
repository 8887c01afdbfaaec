"""Products whose accumulators lie in tensor memory (tcgen05): one thread starts them, warps load the results.

Tensor memory has 128 lanes of 512 columns of 32 bits for each processor. A block allocates columns; an address is
`lane << 16 | column`. Of a block's warps, number `w` reads lanes 32 (w mod 4) and the 31 behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, VectorType, f32, i1, i32
from xdsl.ir import Attribute, OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import SHARED
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import SYNCHRONIZES, Rule, Text
from mlirt.dialects.kernel.matrix_unit import MmaKind, MmaKindAttr
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.transaction_barrier import BARRIERS, barrier_of
from mlirt.dialects.kernel.warpgroup import LINE, SHORT_LINE
from mlirt.dialects.layout import arranged
from mlirt.dialects.tensor_types import byte_width

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

TENSOR_LANES, TENSOR_COLUMNS = 128, 512
TENSOR_ROWS = 128
"""Rows of the product, one for each lane."""
LANE = 1 << 16
"""From the address of a lane to that of the next one."""
HALF_LANES = 16
"""Lanes that a warp loads at once."""
_MIN_COLUMNS = 32


def _are_allocatable(columns: int) -> bool:
    return _MIN_COLUMNS <= columns <= TENSOR_COLUMNS and columns & (columns - 1) == 0


_COLUMNS = Rule(
    "columns are a power of two from 32 to 512",
    lambda x: _are_allocatable(x.columns),
    "{columns} is no power of two from 32 to 512",
)


@instruction
class AllocateTensorMemoryOp(Instruction):
    """Allocate columns of tensor memory, and store their address; waits until there are so many.

    One warp of a block does, which frees them before the kernel ends. Others see the address behind a barrier.

    Example: `kernel.tensor_memory_allocate %place[%i] {columns = 256 : i64} : memref<1xi32, "shared">`
    """

    name = "kernel.tensor_memory_allocate"

    place: SSAValue = fields.memref()
    index: SSAValue = fields.index()
    columns: IntegerAttr = fields.attribute(converter=fields.number)

    syntax = "$place `[` $index `]`"
    effects = SYNCHRONIZES
    is_asynchronous = True
    scope = "warp"
    rules = (
        Rule(
            "the address goes to i32 in shared memory",
            lambda x: x.place.memory_space == SHARED and x.place.get_element_type() == i32,
        ),
        _COLUMNS,
    )
    cuda = Text("tensor_memory_allocate", "{columns}", hint="allocate")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        import numpy as np

        for row in range(0, len(site.active), WARP):
            memory = site.machine.tensor_memory.of(int(site.block[row]))
            at = memory.allocate(x.columns, int(site.thread[row]) // WARP, site.where)
            one = site.lanes.access(x.index[row : row + 1], site.active[row : row + 1], site.where)
            x.place.buffer.write(one, np.array([at], np.int32))


@instruction
class RelinquishTensorMemoryOp(Instruction):
    """Tell that this block allocates no more columns, so that others may.

    Example: `kernel.tensor_memory_relinquish`
    """

    name = "kernel.tensor_memory_relinquish"

    effects = SYNCHRONIZES
    is_asynchronous = True
    scope = "warp"
    cuda = Text("tensor_memory_relinquish")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        for row in range(0, len(site.active), WARP):
            site.machine.tensor_memory.of(int(site.block[row])).relinquished = True


@instruction
class FreeTensorMemoryOp(Instruction):
    """Free columns, in the warp that has allocated them: products are done, and what others loaded is behind a barrier.

    Example: `kernel.tensor_memory_free %address {columns = 256 : i64}`
    """

    name = "kernel.tensor_memory_free"

    address: SSAValue = fields.index()
    columns: IntegerAttr = fields.attribute(converter=fields.number)

    assembly_format = "$address attr-dict"
    effects = SYNCHRONIZES
    is_asynchronous = True
    scope = "warp"
    rules = (_COLUMNS,)
    cuda = Text("tensor_memory_free", "{columns}", hint="free")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        epochs = site.lanes.epochs.of(site.block)
        for row in range(0, len(site.active), WARP):
            memory = site.machine.tensor_memory.of(int(site.block[row]))
            warp = int(site.thread[row]) // WARP
            memory.free(int(x.address[row]), x.columns, warp, int(epochs[row]), site.where)


def _line_depth(x: Any) -> int:
    """Elements of a line."""
    return x.line // byte_width(x.left.get_element_type())


def _parameters(x: Any) -> str:
    flags = [name for name in ("left_by_depth", "right_by_depth") if getattr(x, name)]
    chosen = "".join(f", {name}=True" for name in flags)
    chosen += f", line={x.line}" if x.line != LINE else ""
    return f'"{x.kind}", {x.columns}{chosen}'


@instruction
class TensorMmaOp(Instruction):
    """Start to multiply a 128 x d and a d x `columns` tile, where d elements fill a `line`, into tensor memory.

    Lane r, column c behind the address gets the sum of row r and column c: what was there is added to it if
    `accumulate` holds, and is overwritten else. Tiles lie in shared memory as those of `kernel.warpgroup_mma`.

    A thread starts products, which are done in its order. They are known to be done by those who wait for a barrier
    that the same thread names in `kernel.tensor_commit` behind them: before, nobody may write to the tiles, load the
    result or free it. Nor may a product overwrite what a warp may still load.

    Of tf32 the matrix unit cuts off the lower 13 bits, so that copies round what they bring.

    Example: `kernel.tensor_mma f16 %address, %more, %a[%i], %b[%j] {columns = 128 : i64} :
    memref<16384xf16, "shared">, memref<32768xf16, "shared">`
    """

    name = "kernel.tensor_mma"

    kind: MmaKindAttr = fields.attribute(converter=MmaKindAttr)
    address: SSAValue = fields.index()
    accumulate: SSAValue = fields.scalar(constraint=i1)
    left: SSAValue = fields.memref()
    left_index: SSAValue = fields.index()
    right: SSAValue = fields.memref()
    right_index: SSAValue = fields.index()
    columns: IntegerAttr = fields.attribute(converter=fields.number)
    line: IntegerAttr = fields.attribute(converter=fields.number, default=LINE)
    left_by_depth: UnitAttr | None = fields.attribute(converter=fields.unit, default=False)
    right_by_depth: UnitAttr | None = fields.attribute(converter=fields.unit, default=False)

    assembly_format = (
        "$kind $address `,` $accumulate `,` $left `[` $left_index `]` `,` $right `[` $right_index `]` attr-dict `:` "
        "type($left) `,` type($right)"
    )
    effects = SYNCHRONIZES
    is_asynchronous = True
    rules = (
        Rule("the tiles lie in shared memory", lambda x: x.left.memory_space == x.right.memory_space == SHARED),
        Rule(
            "both have one element type",
            lambda x: x.left.get_element_type() == x.right.get_element_type(),
            lambda x: f"{x.left.get_element_type()} times {x.right.get_element_type()}",
        ),
        Rule(
            "columns are a multiple of 32 up to 256",
            lambda x: x.columns % 32 == 0 and 32 <= x.columns <= 256,
            "columns are a multiple of 32 up to 256, not {columns}",
        ),
        Rule(
            "by depth only 16-bit elements can lie, in whole pieces of long lines",
            lambda x: (
                not (x.left_by_depth or x.right_by_depth)
                or (
                    byte_width(x.left.get_element_type()) == 2
                    and x.line == LINE
                    and (not x.right_by_depth or x.columns % _line_depth(x) == 0)
                )
            ),
        ),
        Rule("a line has 128 or 64 bytes", lambda x: x.line in (LINE, SHORT_LINE), "no lines of {line} bytes"),
    )
    cuda = Text(
        "tensor_mma",
        _parameters,
        hint="multiply",
        operands=("address", "accumulate", "left", "left_index", "right", "right_index"),
    )

    def __init__(
        self,
        kind: MmaKind,
        address: SSAValue,
        accumulate: SSAValue,
        left: tuple[SSAValue, SSAValue],
        right: tuple[SSAValue, SSAValue],
        columns: int,
        *,
        line: int = LINE,
        left_by_depth: bool = False,
        right_by_depth: bool = False,
    ) -> None:
        self.fill(kind, address, accumulate, *left, *right, columns, line, left_by_depth, right_by_depth)

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        from mlirt.dialects.kernel.interpreter_warpgroups import as_left, read_tile, widened

        for row, (block, thread) in enumerate(zip(site.block.tolist(), site.thread.tolist(), strict=True)):
            memory = site.machine.tensor_memory.of(block)
            memory.need_fence(thread, site.where)
            place = x.left, x.left_index
            left, left_at = read_tile(site, row, place, TENSOR_ROWS, x.left_by_depth, x.line, threads=1)
            place = x.right, x.right_index
            right, right_at = read_tile(site, row, place, x.columns, x.right_by_depth, x.line, threads=1)
            product = widened(as_left(left, x.kind), x.kind) @ widened(right, x.kind).T
            address, adds = int(x.address[row]), bool(x.accumulate[row])
            memory.add(address, product, x.kind.accumulator_type == i32, adds, thread, site.where)
            memory.issued(thread, site.machine.stages, [left_at, right_at])


@instruction
class TensorCommitOp(Instruction):
    """Let a barrier get an arrival when all products are done that this thread has started.

    Example: `kernel.tensor_commit %done[%i] : memref<4xi64, "shared">`
    """

    name = "kernel.tensor_commit"

    barriers: SSAValue = fields.memref()
    index: SSAValue = fields.index()

    syntax = "$barriers `[` $index `]`"
    effects = SYNCHRONIZES
    is_asynchronous = True
    rules = (BARRIERS,)
    cuda = Text("tensor_commit")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        for row, (block, thread) in enumerate(zip(site.block.tolist(), site.thread.tolist(), strict=True)):
            barrier = barrier_of(site, x.barriers, int(x.index[row]), row)
            barrier.attach(site.machine.tensor_memory.of(block).committed(thread))
            barrier.arrive(site.where)
        site.machine.coroutines.yield_to_others()


@instruction
class TensorFenceOp(Instruction):
    """Order products and loads of tensor memory by what threads wait for each other by.

    What follows a wait needs one with `after` in between; what a thread has loaded is behind one without that, before
    it tells others.

    Example: `kernel.tensor_fence {after}`
    """

    name = "kernel.tensor_fence"

    after: UnitAttr | None = fields.attribute(converter=fields.unit, default=False)

    effects = SYNCHRONIZES
    is_asynchronous = True
    cuda = Text("tensor_fence", lambda x: f"after={x.after}", hint="fence")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        site.machine.tensor_memory.fence(site.block, site.thread, bool(x.after))


@instruction
class LoadTensorMemoryOp(Instruction):
    """What a warp loads of 16 lanes and `columns` columns of tensor memory, once it is there.

    The lanes are the first or the last 16 of its own. Thread `4 g + t` has, at `4 j + 2 h + e`, lane `8 h + g` and
    column `8 j + 2 t + e`, as of the accumulators of `kernel.warpgroup_mma`.

    Example: `%v = kernel.tensor_memory_load %address : vector<32xf32>`
    """

    name = "kernel.tensor_memory_load"

    address: SSAValue = fields.index()
    result: OpResult = fields.result(VectorType, "T", "n")

    assembly_format = "$address attr-dict `:` type($result)"
    effects = SYNCHRONIZES
    is_asynchronous = True
    scope = "warp"
    rules = (
        Rule("it loads f32 or i32", lambda x: x.T.type in (f32, i32), "f32 or i32, not {T}"),
        Rule(
            "columns are a multiple of 8 up to 256, of which a thread has half a column each",
            lambda x: x.n % 4 == 0 and 4 <= x.n <= 128,
            lambda x: f"{2 * x.n} columns are no multiple of 8 up to 256",
        ),
    )
    cuda = Text("tensor_memory_load", '"{T}", {n}', hint="load")

    def __init__(self, address: SSAValue, element: Attribute, columns: int) -> None:
        self.fill(address, result=VectorType(element, [columns // 2]))

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        epochs = site.lanes.epochs.of(site.block)
        found = np.zeros((len(site.active), x.n), np.int32)
        for row in range(0, len(site.active), WARP):
            memory, thread = site.machine.tensor_memory.of(int(site.block[row])), int(site.thread[row])
            for one in range(thread, thread + WARP):
                memory.need_fence(one, site.where)
            bits = memory.load(x.address[row : row + WARP], 2 * x.n, thread // WARP, int(epochs[row]), site.where)
            found[row : row + WARP] = arranged(bits, "(h g) (j t e)", "(g t) (j h e)", h=2, g=8, t=4, e=2)
        return found if x.T.type == i32 else found.view(np.float32)
