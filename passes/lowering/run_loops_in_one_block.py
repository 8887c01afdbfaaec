"""Loops of small kernels become one kernel, in which an iteration costs no launch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp as HostFuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.locations import fuse
from mlirt.dialects.plan.control import IfOp, RequireLengthsOp, RequireOp, SizeOp, WhileOp, ops_in
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.plan.tensor_map import TensorMapAttr
from mlirt.dialects.xdsl_compat import module_text
from mlirt.passes.lowering.threads.one_block import OneBlock, block_size, grid_of, is_mergeable, meets
from mlirt.passes.options import option

_MAX_LAUNCHES = 32


@dataclass(frozen=True)
class RunLoopsInOneBlockPass(ModulePass):
    """Write a loop as one kernel of one block where each of its launches is small.

    A node of a graph takes microseconds, and the decision about the next iteration is one more; a barrier of a block
    takes a fraction of one. A launch is small where it has one block, or up to `blocks` of them without loops inside,
    which the
    block then does one after the other. Loops with checks, which are the host's, stay as they are.

    Before:

        plan.while %more : !plan.memory {
        } do {
          plan.launch %x {kernel = @double, ..} : !plan.memory
          plan.launch %x, %more {kernel = @is_small, ..} : !plan.memory, !plan.memory
        }

    After:

        plan.launch %more, %x {kernel = @loop_1f2e3d4c, ..} : !plan.memory, !plan.memory

        kernel.func @loop_1f2e3d4c(%more: memref<?xi1>, %x: memref<?xf32>) {
          scf.while : () -> () {
            %0 = kernel.load %more[] strides [] : memref<?xi1> -> i1
            kernel.barrier
            scf.condition(%0)
          } do {
            (the code of @double)
            kernel.barrier
            (the code of @is_small)
            kernel.barrier
            scf.yield
          }
          kernel.return
        }
    """

    name = "run-loops-in-one-block"

    blocks: int = option(8, at_least=1)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = {one.sym_name.data: one for one in op.body.block.ops if isinstance(one, FuncOp)}
        for function in [one for one in op.body.block.ops if isinstance(one, HostFuncOp)]:
            self._visit(op, kernels, list(function.body.block.ops))
        _erase_unused(op, kernels)

    def _visit(self, module: ModuleOp, kernels: dict[str, FuncOp], ops: Iterable[Operation]) -> None:
        """The outermost loops that can be one kernel."""
        for op in ops:
            if isinstance(op, WhileOp) and self._is_small(op, kernels):
                _replace(module, kernels, op)
            elif isinstance(op, WhileOp | IfOp):
                for region in op.regions:
                    self._visit(module, kernels, list(ops_in(region)))

    def _is_small(self, loop: WhileOp, kernels: dict[str, FuncOp]) -> bool:
        if any(isinstance(op, SizeOp | RequireOp | RequireLengthsOp) for op in loop.walk()):
            return False
        launches = [op for op in loop.walk() if isinstance(op, LaunchOp)]
        return 0 < len(launches) <= _MAX_LAUNCHES and self._are_small(launches, kernels)

    def _are_small(self, launches: list[LaunchOp], kernels: dict[str, FuncOp]) -> bool:
        used = [kernels[name] for launch in launches if (name := launch.kernel_name()) in kernels]
        if len(used) < len(launches) or not all(map(is_mergeable, used)):  # a library's code is not ours to merge
            return False
        largest = max(block_size(func) or 1 for func in used)
        in_step = all(block_size(func) == largest for func in used if meets(func))
        return in_step and all(map(self._is_short, launches, used))

    def _is_short(self, launch: LaunchOp, func: FuncOp) -> bool:
        grid = grid_of(launch)
        if grid is None or any(isinstance(argument, TensorMapAttr) for argument in launch.arguments()):
            return False
        blocks = grid[0] * grid[1] * grid[2]
        has_loops = meets(func) or any(isinstance(op, scf.ForOp | scf.WhileOp) for op in func.walk())
        return blocks == 1 or (0 < blocks <= self.blocks and not has_loops)


def _replace(module: ModuleOp, kernels: dict[str, FuncOp], loop: WhileOp) -> None:
    launches = [op for op in loop.walk() if isinstance(op, LaunchOp)]
    made = OneBlock.of(kernels, launches)
    made.loop(loop)
    if not made.fits():
        return
    digest = hashlib.blake2b(module_text(ModuleOp([made.func.clone()])).encode(), digest_size=4).hexdigest()
    name = f"loop_{digest}"
    if name not in kernels:
        made.func.properties["sym_name"] = StringAttr(name)
        kernels[name] = made.func
        module.body.block.add_op(made.func)
    launch = LaunchOp(name, made.buffers, made.arguments, [1, 1, 1])
    launch.location = fuse(*launches)
    block = loop.parent
    assert block is not None
    block.insert_op_before(launch, loop)
    loop.detach()
    loop.drop_all_references()
    loop.erase(safe_erase=False)


def _erase_unused(module: ModuleOp, kernels: dict[str, FuncOp]) -> None:
    """Erase kernels that only loops have launched."""
    used = {op.kernel_name() for op in module.walk() if isinstance(op, LaunchOp)}
    for name, func in kernels.items():
        if name not in used:
            func.detach()
            func.erase()
