"""Clusters of blocks that see each other's shared memory, and kernels that start before the one before has ended.

The attribute `cluster` of a kernel says how many neighbouring blocks along x form a cluster; its attribute
`dependent_launch` that it may start early.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, MemRefType, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from mlirt.dialects.kernel.buffers import is_shared, memory
from mlirt.dialects.tensor_op import require

CLUSTER = StringAttr("cluster")


class _SyncOp(IRDLOperation):
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class ClusterRankOp(IRDLOperation):
    """The number of this block in its cluster."""

    name = "kernel.cluster_rank"

    result = result_def(IndexType())
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


@irdl_op_definition
class ClusterBarrierOp(_SyncOp):
    """Wait for all threads of all blocks of the cluster; what they have written before is visible after."""

    name = "kernel.cluster_barrier"


@irdl_op_definition
class RemoteSharedOp(IRDLOperation):
    """The shared memory of another block of the cluster, which must not have ended.

    Example: `%other = kernel.remote_shared %sums of %rank : memref<64xf32, "shared"> -> memref<64xf32, "cluster">`
    """

    name = "kernel.remote_shared"

    source = operand_def(MemRefType)
    rank = operand_def(IndexType())
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    assembly_format = "$source `of` $rank attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, rank: SSAValue) -> None:
        type_ = memory(source)
        result = MemRefType(type_.get_element_type(), type_.get_shape(), memory_space=CLUSTER)
        super().__init__(operands=[source, rank], result_types=[result])

    def verify_(self) -> None:
        require(is_shared(self.source), f"{self.name}: {self.source.type} is no shared memory")


@irdl_op_definition
class WaitDependencyOp(_SyncOp):
    """Wait until the launch before this one has ended; nothing that it writes or reads may be touched before."""

    name = "kernel.wait_dependency"


@irdl_op_definition
class LaunchDependentsOp(_SyncOp):
    """Let the launch after this one start, as far as it does not wait."""

    name = "kernel.launch_dependents"
