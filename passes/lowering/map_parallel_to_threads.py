"""Spreads the loop nests of kernels over the blocks and threads of a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.simt import shared_offsets
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.target import Target
from mlirt.passes.lowering.threads.launch_sizes import LaunchSizes
from mlirt.passes.lowering.threads.mapping import is_structured, map_kernel


@dataclass(frozen=True)
class MapParallelToThreadsPass(ModulePass):
    """Map every kernel that is not yet written for threads.

    Each thread takes an iteration, or a vector of up to 16 bytes of them. Where inner loops walk along a row, a team of
    threads, from a few to a block or a cluster, takes an iteration: it reads the row once into registers, or shares out
    the iterations of longer and dynamic rows. Teams combine results by shuffles and shared memory, always in the same
    order. Indices are 32 bits wide where no buffer has 2**31 bytes.

    Before: `kernel.parallel (%n) { ^bb0(%i: index): .. }`
    After: `%i = block * 256 + thread; scf.if %i < %n { .. }`, and the number of blocks on the `plan.launch`
    With a `device`, such as `h100-pcie`, launches keep as many processors busy as it has.
    """

    name = "map-parallel-to-threads"

    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        device = Target("cuda", device=self.device).gpu
        launches: dict[str, list[LaunchOp]] = {}
        for inner in op.walk():
            if isinstance(inner, LaunchOp):
                launches.setdefault(inner.kernel_name(), []).append(inner)
        for func in list(op.body.block.ops):
            if isinstance(func, FuncOp) and is_structured(func):
                own = launches.get(func.sym_name.data, [])
                map_kernel(func, [LaunchSizes(func, launch) for launch in own], device)
            if isinstance(func, FuncOp) and (shared_bytes := shared_offsets(func)[1]):
                func.attributes["shared_bytes"] = IntegerAttr(shared_bytes, i64)
