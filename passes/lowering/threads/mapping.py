"""Maps a structured kernel to blocks and threads, and says how many blocks its launches need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, StringAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.gpu_architectures import CLUSTERS
from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.kernel.cluster import ClusterBarrierOp, ClusterRankOp
from mlirt.dialects.kernel.core import FuncOp, LoadOp, ParallelOp, ReduceOp, ReturnOp, StoreOp
from mlirt.dialects.kernel.simt import MAX_THREADS, WARP, BlockIdOp, GridSizeOp, ThreadIdOp
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.passes.lowering.threads.code_writer import CodeWriter
from mlirt.passes.lowering.threads.launch_sizes import LaunchSizes
from mlirt.passes.lowering.threads.row_body import RowBody
from mlirt.passes.lowering.threads.row_plan import MANY_SHORT_ROWS, SHORT_ROW, RowPlan, row_plan
from mlirt.passes.lowering.threads.team_body import TeamBody
from mlirt.passes.lowering.threads.thread_body import ThreadBody
from mlirt.passes.lowering.threads.vector_body import VectorBody
from mlirt.passes.lowering.threads.vector_width import VectorLoop, vector_width, widths_of_team

_MANY_ROWS = 4  # times the threads that a GPU should have: one thread for each row is enough
_TILE_ROWS, _TILE_COLUMNS = (8, 4, 2, 1), (4, 2, 1)
_MIN_CLUSTER_ELEMENTS = 32  # that each thread of a cluster should have of a row
_LARGE_BLOCKS = 4  # times the threads that a GPU should have: blocks may be larger
_MAX_OPS_OF_LARGE_BLOCKS = 500  # ops of a thread that take many registers: smaller blocks leave fewer of them unused


@dataclass(frozen=True)
class Shape:
    """How a parallel loop is spread: iterations per thread (1, or a vector of them), or threads per iteration, which
    may hold its row.
    """

    vector: int = 1
    team: int = 1
    block: int = 256
    row: RowPlan | None = None
    cluster: int = 1

    @property
    def blocks(self) -> int:
        """Blocks of a team: a cluster if there are several."""
        return self.cluster if self.row is None else self.row.blocks

    @property
    def teams(self) -> int:
        """Teams in a block."""
        return max(1, self.block // self.team)


def map_kernel(func: FuncOp, sizes: Sequence[LaunchSizes], device: GpuDevice) -> None:
    """Map a kernel with one outer parallel loop, and set the grids of its launches on a device."""
    outer, processors = _outer_loop(func), device.processors
    shape = _choose(outer, sizes, device)
    old = func.body.block
    top = Block(arg_types=[arg.type for arg in old.args])
    mapping: dict[SSAValue, SSAValue] = dict(zip(old.args, top.args, strict=True))
    for before, after in mapping.items():
        after.name_hint = before.name_hint
    code = CodeWriter(top)
    prologue = ThreadBody(code, mapping)
    for op in old.ops:
        if op is not outer and not isinstance(op, ReturnOp):
            prologue.op(op)
    counts = [one.count(outer.extents) for one in sizes]
    widths = widths_of_team(outer, sizes, shape.team) if shape.team > 1 and shape.row is None else {}
    _emit(code, mapping, outer, shape, widths, strided=None in counts)
    code.insert(ReturnOp())
    region = func.body
    region.detach_block(old)
    old.erase(safe_erase=False)
    region.add_block(top)
    func.attributes["block_size"] = IntegerAttr(shape.block, i64)
    if shape.blocks > 1:
        func.attributes["cluster"] = IntegerAttr(shape.blocks, i64)
        func.attributes["architecture"] = StringAttr(device.arch)
    bytes_ = [byte_width(memory(one).get_element_type()) for one in top.args if isinstance(one.type, MemRefType)]
    if sizes and all(one.fits_int32(count, min(bytes_, default=1)) for one, count in zip(sizes, counts, strict=True)):
        func.attributes["index_bits"] = IntegerAttr(32, i64)
    for one, count in zip(sizes, counts, strict=True):
        set_grid(one, _blocks(shape, count, processors))


def set_grid(sizes: LaunchSizes, blocks: Dim) -> None:
    """Say how many blocks a launch has."""
    from xdsl.dialects.builtin import ArrayAttr

    from mlirt.dialects.plan.expression import ExpressionAttr

    sizes.launch.properties["grid"] = ArrayAttr([ExpressionAttr.of(size) for size in (blocks, 1, 1)])


def _outer_loop(func: FuncOp) -> ParallelOp:
    (outer,) = [op for op in func.body.block.ops if isinstance(op, ParallelOp)]
    return outer


def _blocks(shape: Shape, count: Dim | None, processors: int) -> Dim:
    if count is None:
        return 8 * processors
    if shape.team > 1 or shape.row is not None:  # a team of several blocks is no iteration of each
        return ceil_div(count, shape.teams) * shape.blocks
    return ceil_div(count, shape.block * shape.vector)


def _choose(outer: ParallelOp, launches: Sequence[LaunchSizes], device: GpuDevice) -> Shape:
    """How to spread the loop, by how much there is of it and inside of it."""
    processors, threads = device.processors, device.moves.threads
    clusters = device.clusters if device.has(CLUSTERS) else ()
    rows = launches[0].guess(outer.extents) if launches else MAX_THREADS
    inner = [op for op in outer.body.block.ops if isinstance(op, ReduceOp | ParallelOp)]
    row = row_plan(outer, launches, threads, clusters)
    if row is not None:
        if row.blocks > 1:
            return Shape(team=row.team, block=row.team // row.blocks, row=row)
        block = 128 if rows * row.team >= _LARGE_BLOCKS * threads else 64
        return Shape(team=row.team, block=row.team if row.team > WARP else block, row=row)
    vector = vector_width(outer, launches, threads)
    if vector > 1 or not any(isinstance(op, ReduceOp | ParallelOp) for op in outer.body.block.walk()):
        block = _block_for(rows, vector, threads)
        return Shape(
            vector=vector,
            block=block if VectorLoop.of(outer).length(vector) < _MAX_OPS_OF_LARGE_BLOCKS else min(block, 128),
        )
    length = max((launches[0].guess(op.extents) if launches else MAX_THREADS for op in inner), default=0)
    if (
        length <= SHORT_ROW
        or rows >= _MANY_ROWS * threads
        or (rows >= MANY_SHORT_ROWS * threads and length <= 2 * WARP)
    ):
        return Shape(block=_block_for(rows, 1, threads))
    shared = _rereads(outer)
    if length <= 16 * WARP and rows * WARP >= processors * 128 and not shared:
        return Shape(team=WARP, block=128)
    if length <= 2 * WARP and not shared:
        return Shape(team=WARP, block=64)
    team = 64
    while 2 * team <= min(length, MAX_THREADS) and (team < 256 or rows < 2 * processors):
        team *= 2
    known_rows = all(one.count(outer.extents) is not None for one in launches)
    for number, places in enumerate(clusters if team == MAX_THREADS and known_rows and not shared else ()):
        blocks = 1 << number
        if rows <= places and length >= blocks * MAX_THREADS * _MIN_CLUSTER_ELEMENTS:
            team = blocks * MAX_THREADS
    return Shape(team=team, block=min(team, MAX_THREADS), cluster=max(1, team // MAX_THREADS))


def _block_for(count: int, vector: int, threads: float) -> int:
    """Threads per block: few where there is little to do, so that it reaches more processors."""
    if count >= _LARGE_BLOCKS * threads * vector:
        return 256
    return 128 if count >= threads * vector else 64


def _rereads(outer: ParallelOp) -> bool:
    """Whether the loop reads what it has stored before."""
    stored = {op.buffer for op in outer.walk() if isinstance(op, StoreOp)}
    return any(isinstance(op, LoadOp) and op.buffer in stored for op in outer.walk())


def _emit(
    code: CodeWriter,
    mapping: dict[SSAValue, SSAValue],
    outer: ParallelOp,
    shape: Shape,
    widths: Mapping[Operation, int],
    *,
    strided: bool,
) -> None:
    thread, block = code.value(ThreadIdOp()), code.value(BlockIdOp())
    thread.name_hint, block.name_hint = "thread", "block"
    extents = [mapping.get(extent, extent) for extent in outer.extents]
    last = extents[-1] if extents else code.constant(1)
    if shape.vector > 1:
        extents = [*extents[:-1], code.div(last, shape.vector)]
    total = code.product(extents)
    tile = _tile(outer, extents) if shape.vector > 1 else None

    def iteration(number: SSAValue, body: Callable[[Sequence[SSAValue]], None]) -> None:
        body(code.split(number, extents) if tile is None else _split_in_tiles(code, number, extents, tile))

    if shape.row is not None:
        _emit_rows(code, mapping, outer, shape.row, shape.teams, thread, block, total, extents)
        return
    first, run, step = _worker(code, mapping, outer, shape, widths, thread, block)
    if strided:
        code.loop(first, total, code.mul(step, code.value(GridSizeOp())), [], lambda i, _: iteration(i, run) or [])
    elif shape.team >= shape.block:
        iteration(first, run)
        if shape.blocks > 1:
            _end_cluster(code)
    else:
        code.when(code.compare("slt", first, total), lambda: iteration(first, run))


def _tile(outer: ParallelOp, extents: Sequence[SSAValue]) -> tuple[int, int] | None:
    """Rows and columns of pixels that a block should take where iterations read what their neighbours read too."""
    overlaps = any(isinstance(op, ReduceOp | scf.ForOp) for op in outer.body.block.walk())
    if not overlaps or len(extents) < 3:
        return None
    rows, columns = (
        next(length for length in lengths if size % length == 0)
        for size, lengths in ((known(extents[-3]) or 1, _TILE_ROWS), (known(extents[-2]) or 1, _TILE_COLUMNS))
    )
    return None if rows == 1 else (rows, columns)


def _split_in_tiles(
    code: CodeWriter, number: SSAValue, extents: Sequence[SSAValue], tile: tuple[int, int]
) -> list[SSAValue]:
    """The indices of a number that counts tile by tile over rows and columns, the dimensions before the last one."""
    *before, height, width, last = extents
    rows, columns = tile
    sizes = [
        *before,
        code.div(height, rows),
        code.div(width, columns),
        code.constant(rows),
        code.constant(columns),
        last,
    ]
    *outer, row, column, inner_row, inner_column, vector = code.split(number, sizes)
    here = code.add(code.mul(row, rows), inner_row), code.add(code.mul(column, columns), inner_column)
    return [*outer, *here, vector]


def _worker(
    code: CodeWriter,
    mapping: dict[SSAValue, SSAValue],
    outer: ParallelOp,
    shape: Shape,
    widths: Mapping[Operation, int],
    thread: SSAValue,
    block: SSAValue,
) -> tuple[SSAValue, Callable[[Sequence[SSAValue]], None], int]:
    """The first iteration of this thread's team, what it does for one, and how many teams a block has."""
    names, body = outer.body.block.args, outer.body.block

    def bind(indices: Sequence[SSAValue]) -> None:
        for name, index in zip(names, indices, strict=True):
            index.name_hint = index.name_hint or name.name_hint
            mapping[name] = index

    if shape.team == 1:
        number = code.add(code.mul(block, shape.block), thread)
        made = ThreadBody(code, mapping) if shape.vector == 1 else VectorBody(code, mapping, outer, shape.vector)
    elif shape.blocks > 1:
        number = code.div(block, shape.blocks)
        member = _member(code, shape, thread)
        made = TeamBody(code, mapping, member, shape.team, rereads=False, blocks=shape.blocks, widths=widths)
    elif shape.team == shape.block:
        number, made = block, TeamBody(code, mapping, thread, shape.team, _rereads(outer), widths=widths)
    else:
        number = code.add(code.mul(block, shape.teams), code.div(thread, shape.team))
        made = TeamBody(code, mapping, code.rem(thread, shape.team), shape.team, rereads=False, widths=widths)
    number.name_hint = "number"

    def run(indices: Sequence[SSAValue]) -> None:
        bind(indices)
        made.ops(body)

    return number, run, shape.block if shape.team == 1 else shape.teams


def _emit_rows(
    code: CodeWriter,
    mapping: dict[SSAValue, SSAValue],
    outer: ParallelOp,
    row: RowPlan,
    teams: int,
    thread: SSAValue,
    block: SSAValue,
    total: SSAValue,
    extents: Sequence[SSAValue],
) -> None:
    """Teams that hold rows: the last ones may have none, and repeat the last row without storing anything."""
    number, exists = code.div(block, row.blocks) if row.blocks > 1 else block, None
    if teams > 1:
        number = code.add(code.mul(block, teams), code.div(thread, row.team))
    if teams > 1 and (known(total) or 1) % teams:
        exists = code.compare("slt", number, total)
        number = code.min(number, code.sub(total, 1))
    number.name_hint = "number"
    for name, index in zip(outer.body.block.args, code.split(number, extents), strict=True):
        mapping[name] = index
    member = code.rem(thread, row.team) if teams > 1 else thread
    if row.blocks > 1:
        member = _member(code, Shape(team=row.team, block=row.team // row.blocks, row=row), thread)
    RowBody(code, mapping, member, row, exists).ops(outer.body.block)
    if row.blocks > 1:
        _end_cluster(code)


def _member(code: CodeWriter, shape: Shape, thread: SSAValue) -> SSAValue:
    """The number of a thread among those of its cluster."""
    return code.add(code.mul(code.value(ClusterRankOp()), shape.block), thread)


def _end_cluster(code: CodeWriter) -> None:
    """No block may end while another one reads what it has kept."""
    code.insert(ClusterBarrierOp())


def is_structured(op: Operation) -> bool:
    """Whether an op is a kernel that is not mapped yet."""
    return isinstance(op, FuncOp) and "block_size" not in op.attributes
