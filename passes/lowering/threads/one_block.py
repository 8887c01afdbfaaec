"""Writes launches, branches and loops of a host program as the code of one block, whose threads meet after each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, FunctionType, IndexType, IntegerAttr, MemRefType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from mlirt.dialects.kernel.core import FuncOp, LoadOp, ReturnOp
from mlirt.dialects.kernel.remainder import computes_a_number
from mlirt.dialects.kernel.simt import BarrierOp, BlockIdOp, GridSizeOp, SharedOp, ThreadIdOp, shared_offsets
from mlirt.dialects.plan.control import IfOp, WhileOp, ops_in
from mlirt.dialects.plan.expression import Argument, PointerAttr
from mlirt.dialects.plan.ops import LaunchOp

_ATTRIBUTES = frozenset({"target", "block_size", "index_bits", "shared_bytes"})
_PLACES = (ThreadIdOp, BlockIdOp, GridSizeOp, SharedOp)
# What kernels of these do concerns their own block alone, and is done when they end.
_OPS = frozenset(
    {
        "kernel.load",
        "kernel.store",
        "kernel.load_fragment",
        "kernel.store_fragment",
        "kernel.fill_fragment",
        "kernel.fragment",
        "kernel.fragment_element",
        "kernel.outer_product",
        "kernel.thread_id",
        "kernel.block_id",
        "kernel.grid_size",
        "kernel.shared",
        "kernel.barrier",
        "kernel.shuffle",
        "kernel.return",
    }
)
_MAX_SHARED_BYTES = 32 << 10
_MAX_THREADS = 512
_WARP = 32


def block_size(func: FuncOp) -> int | None:
    """The threads of a block that is a line; None where it is none."""
    size = func.attributes.get("block_size")
    return size.value.data if isinstance(size, IntegerAttr) else None


def meets(func: FuncOp) -> bool:
    """Whether the threads of a block wait for each other."""
    return any(isinstance(op, BarrierOp) for op in func.walk())


def is_mergeable(func: FuncOp) -> bool:
    """Whether a kernel does nothing that needs a launch of its own."""
    inside = func.body.block.walk()
    legal = all(op.name in _OPS or computes_a_number(op) or op.dialect_name() == "scf" for op in inside)
    placed = all(op.parent is func.body.block for op in func.walk() if isinstance(op, _PLACES))
    return legal and placed and set(func.attributes) <= _ATTRIBUTES and (block_size(func) or 1) % _WARP == 0


def grid_of(launch: LaunchOp) -> tuple[int, ...] | None:
    """The numbers of blocks of a launch; None where shapes decide."""
    sizes = [1, 1, 1] if launch.grid is None else [size.value() for size in launch.grid]
    known = tuple(size for size in sizes if isinstance(size, int))
    return known if len(known) == len(sizes) else None


@dataclass
class OneBlock:
    """One kernel in the making; `kernels` are those that launches name."""

    kernels: dict[str, FuncOp]
    func: FuncOp
    buffers: list[SSAValue] = field(default_factory=list[SSAValue])
    arguments: list[Argument] = field(default_factory=list["Argument"])
    _known: dict[tuple[object, ...], SSAValue] = field(default_factory=dict[tuple[object, ...], SSAValue])

    @staticmethod
    def of(kernels: dict[str, FuncOp], launches: Sequence[LaunchOp]) -> OneBlock:
        """A kernel with a thread for each one of a launch, or as many as a kernel counts on whose threads meet."""
        func = FuncOp("loop", [], family="loop")
        used = [kernels[launch.kernel_name()] for launch in launches]
        threads = max(block_size(one) or 1 for one in used)
        if not any(map(meets, used)):
            wide = max(
                prod(grid_of(launch) or ()) * (block_size(one) or 1) for launch, one in zip(launches, used, strict=True)
            )
            threads = max(threads, min(wide, _MAX_THREADS))
        func.attributes.update(target=used[0].attributes["target"], block_size=IntegerAttr(threads, i64))
        if all("index_bits" in one.attributes for one in used):
            func.attributes["index_bits"] = used[0].attributes["index_bits"]
        return OneBlock(kernels, func)

    def loop(self, op: WhileOp) -> None:
        """Write a whole loop, which is all that the kernel does."""
        entry = self.func.body.block
        self._thread = self._value(entry, ThreadIdOp())
        self._thread.name_hint = "thread"
        self._ops(entry, [op])
        entry.add_op(ReturnOp())
        types: list[Attribute] = [argument.type for argument in entry.args]
        self.func.properties["function_type"] = FunctionType.from_lists(types, [])
        if shared := shared_offsets(self.func)[1]:
            self.func.attributes["shared_bytes"] = IntegerAttr(shared, i64)

    def fits(self) -> bool:
        """Whether the kernel's shared memory is there on every device."""
        return shared_offsets(self.func)[1] <= _MAX_SHARED_BYTES

    # Steps of the host program.

    def _ops(self, block: Block, ops: Iterable[Operation]) -> None:
        for op in ops:
            if isinstance(op, LaunchOp):
                self._launch(block, op)
            elif isinstance(op, IfOp):
                holds = self._decision(block, op)
                then, otherwise = (self._region(ops_in(region)) for region in (op.then, op.otherwise))
                block.add_op(scf.IfOp(holds, [], then, otherwise))
            elif isinstance(op, WhileOp):
                before = Block()
                self._ops(before, ops_in(op.before))
                before.add_op(scf.ConditionOp(self._decision(before, op)))
                block.add_op(scf.WhileOp([], [], Region(before), self._region(ops_in(op.body))))

    def _region(self, ops: Iterable[Operation]) -> Region:
        block = Block()
        self._ops(block, ops)
        block.add_op(scf.YieldOp())
        return Region(block)

    def _decision(self, block: Block, op: IfOp | WhileOp) -> SSAValue:
        """Read the byte that decides; no thread may write it before all have read it."""
        pointer = PointerAttr.of(0, op.offset.value())
        place = self._argument(pointer, [op.condition], MemRefType(i1, [DYNAMIC_INDEX]))
        holds = self._value(block, LoadOp(place, [], []))
        block.add_op(BarrierOp())
        return holds

    # Launches.

    def _launch(self, block: Block, launch: LaunchOp) -> None:
        """The code of a kernel: as many blocks of its grid at once as there are threads for, then the next ones."""
        func, grid = self.kernels[launch.kernel_name()], grid_of(launch)
        assert grid is not None
        inputs = list(launch.buffers)
        given: dict[SSAValue, SSAValue] = {
            name: self._argument(argument, inputs, name.type)
            for name, argument in zip(func.body.block.args, launch.arguments(), strict=True)
        }
        count, own, threads = prod(grid), block_size(func) or 1, block_size(self.func) or 1
        slots = 1 if meets(func) else threads // own
        rounds = -(-count // slots)
        if rounds == 1:
            self._round(block, func, given, grid, slots, self._constant(block, 0))
        else:
            bounds = [self._constant(block, number) for number in (0, rounds, 1)]
            body = Block(arg_types=[IndexType()])
            self._round(body, func, given, grid, slots, body.args[0])
            body.add_op(scf.YieldOp())
            block.add_op(scf.ForOp(bounds[0], bounds[1], bounds[2], [], Region(body)))
        block.add_op(BarrierOp())

    def _round(
        self,
        block: Block,
        func: FuncOp,
        values: dict[SSAValue, SSAValue],
        grid: Sequence[int],
        slots: int,
        number: SSAValue,
    ) -> None:
        """Round `number`: neighbouring threads are one block of the kernel's grid."""
        count, own, threads = prod(grid), block_size(func) or 1, block_size(self.func) or 1
        thread, bounds = self._thread, list[tuple[SSAValue, int]]()
        if slots * own < threads:
            bounds.append((thread, slots * own))
        if slots > 1:
            size = self._constant(block, own)
            slot = self._value(block, arith.DivUIOp(thread, size))
            thread = self._value(block, arith.RemUIOp(thread, size))
            first = self._value(block, arith.MuliOp(number, self._constant(block, slots)))
            number = self._value(block, arith.AddiOp(first, slot))
            if count % slots:
                bounds.append((number, count))
        for value, bound in bounds:
            holds = self._value(block, arith.CmpiOp(value, self._constant(block, bound), "slt"))
            inner = Block()
            block.add_op(scf.IfOp(holds, [], Region(inner)))
            block = inner
        self._code(block, func, values, thread, self._places(block, number, grid), grid)
        for _ in bounds:
            block.add_op(scf.YieldOp())
            around = block.parent_op()
            assert isinstance(around, scf.IfOp)
            assert around.parent is not None
            block = around.parent

    def _places(self, block: Block, number: SSAValue, grid: Sequence[int]) -> list[SSAValue]:
        """The block's number along each axis of the grid."""
        found: list[SSAValue] = []
        for size in grid:
            if size == 1:
                found.append(self._constant(block, 0))
                continue
            bound = self._constant(block, size)
            found.append(self._value(block, arith.RemUIOp(number, bound)))
            number = self._value(block, arith.DivUIOp(number, bound))
        return found

    def _code(
        self,
        block: Block,
        func: FuncOp,
        values: dict[SSAValue, SSAValue],
        thread: SSAValue,
        places: Sequence[SSAValue],
        grid: Sequence[int],
    ) -> None:
        for op in func.body.block.ops:
            if isinstance(op, ThreadIdOp):
                values[op.result] = thread
            elif isinstance(op, BlockIdOp):
                values[op.result] = places[op.axis.value.data]
            elif isinstance(op, GridSizeOp):
                values[op.result] = self._constant(block, grid[op.axis.value.data])
            elif isinstance(op, SharedOp):
                copy = op.clone()
                Builder(InsertPoint.at_start(self.func.body.block)).insert(copy)
                values[op.result] = copy.result
            elif not isinstance(op, ReturnOp):
                block.add_op(op.clone(values))

    def _argument(self, given: Argument, inputs: Sequence[SSAValue], type_: Attribute) -> SSAValue:
        """The argument of the kernel that stands for one of a launch; equal ones are one."""
        key: tuple[object, ...] = (given, type_)
        if isinstance(given, PointerAttr):
            buffer = inputs[given.operand.data]
            key = (buffer, given.offset, type_)
        if key in self._known:
            return self._known[key]
        if isinstance(given, PointerAttr):
            if inputs[given.operand.data] not in self.buffers:
                self.buffers.append(inputs[given.operand.data])
            given = PointerAttr.of(self.buffers.index(inputs[given.operand.data]), given.value())
        self.arguments.append(given)
        block = self.func.body.block
        self._known[key] = block.insert_arg(type_, len(block.args))
        return self._known[key]

    def _constant(self, block: Block, number: int) -> SSAValue:
        return self._value(block, arith.ConstantOp(IntegerAttr(number, IndexType())))

    def _value(self, block: Block, op: Operation) -> SSAValue:
        block.add_op(op)
        return op.results[0]
