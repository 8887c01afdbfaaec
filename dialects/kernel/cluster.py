"""Thread block clusters with distributed shared memory, and programmatic dependent launch.

The attribute `cluster` of a kernel says how many neighbouring blocks along x form a cluster; its attribute
`dependent_launch` that it may start early.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr
from xdsl.ir import OpResult, SSAValue

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.buffers import SHARED
from mlirt.dialects.kernel.instruction import Instruction, instruction
from mlirt.dialects.kernel.instruction_fields import PURE, SYNCHRONIZES, Rule, Text

if TYPE_CHECKING:
    from mlirt.dialects.kernel.interpreter_instruction import Site

CLUSTER = StringAttr("cluster")


@instruction
class ClusterRankOp(Instruction):
    """The number of this block in its cluster."""

    name = "kernel.cluster_rank"

    result: OpResult = fields.result(IndexType())

    assembly_format = "attr-dict `:` type($result)"
    effects = PURE
    cuda = Text("cluster_rank")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        return site.lanes.block % site.machine.cluster


@instruction
class ClusterBarrierOp(Instruction):
    """Wait for all threads of all blocks of the cluster; what they have written before is visible after."""

    name = "kernel.cluster_barrier"

    effects = SYNCHRONIZES
    scope = "block"
    cuda = Text("cluster_barrier")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        import numpy as np

        from mlirt.dialects.kernel.interpreter_memory import DivergenceError

        blocks, size = site.blocks, site.machine.cluster
        _, count = np.unique(blocks // size, return_counts=True)
        if (count < size).any():
            raise DivergenceError(f"{site.where}: not all {size} blocks of a cluster are there")
        site.lanes.epochs.start(blocks)


@instruction
class RemoteSharedOp(Instruction):
    """The shared memory of another block of the cluster, which must not have ended.

    Example: `%other = kernel.remote_shared %tile of %rank : memref<64xf32, "shared"> -> memref<64xf32, "cluster">`
    """

    name = "kernel.remote_shared"

    source: SSAValue = fields.memref("T")
    rank: SSAValue = fields.index()
    result: OpResult = fields.result(
        MemRefType, like=lambda x: MemRefType(x.T.type, x.source.get_shape(), memory_space=CLUSTER)
    )

    syntax = "$source `of` $rank"
    effects = PURE
    rules = (
        Rule("the source is shared memory", lambda x: x.source.memory_space == SHARED, "{source} is no shared memory"),
    )
    cuda = Text("remote_shared", '"{T}"', hint="remote")

    @staticmethod
    def meaning(x: Any, site: Site) -> Any:
        import numpy as np

        from mlirt.dialects.kernel.interpreter_clusters import RemoteBuffer
        from mlirt.dialects.kernel.interpreter_memory import DivergenceError, OutOfBoundsError

        size, blocks = site.machine.cluster, site.block
        ranks = np.broadcast_to(x.rank, (site.lanes.count,))[site.active]
        if ((ranks < 0) | (ranks >= size)).any():
            raise OutOfBoundsError(f"{site.where}: a cluster has {size} blocks")
        targets = blocks // size * size + ranks
        found = dict(zip(blocks.tolist(), targets.tolist(), strict=True))
        if any(found[block] != target for block, target in zip(blocks.tolist(), targets.tolist(), strict=True)):
            raise DivergenceError(f"{site.where}: the threads of a block name different blocks")
        return RemoteBuffer(x.source.buffer, found, site.lanes.epochs)


@instruction
class WaitDependencyOp(Instruction):
    """Wait until the launch before this one has ended; nothing that it writes or reads may be touched before."""

    name = "kernel.wait_dependency"

    effects = SYNCHRONIZES
    cuda = Text("wait_dependency")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        """Launches run one after the other here."""


@instruction
class LaunchDependentsOp(Instruction):
    """Let the launch after this one start, as far as it does not wait."""

    name = "kernel.launch_dependents"

    effects = SYNCHRONIZES
    cuda = Text("launch_dependents")

    @staticmethod
    def meaning(x: Any, site: Site) -> None:
        """Launches run one after the other here."""
