"""The text of what Hopper GPUs add: warpgroups, barriers that count bytes, copies of boxes, clusters."""

from __future__ import annotations

from mlirt.codegen.numba_cuda.cuda_expressions import stored_name
from mlirt.codegen.numba_cuda.word_source import WordSource
from mlirt.codegen.python_expressions import type_name
from mlirt.dialects.kernel.buffers import fragment, length, memory
from mlirt.dialects.kernel.cluster import (
    ClusterBarrierOp,
    ClusterRankOp,
    LaunchDependentsOp,
    RemoteSharedOp,
    WaitDependencyOp,
)
from mlirt.dialects.kernel.tensor_copy import LoadBoxOp, LoadWindowOp, map_type
from mlirt.dialects.kernel.transaction_barrier import (
    MbarrierArriveOp,
    MbarrierExpectOp,
    MbarrierFenceOp,
    MbarrierInitOp,
    MbarrierWaitOp,
)
from mlirt.dialects.kernel.warpgroup import (
    LINE,
    JoinColumnsOp,
    SetRegistersOp,
    WarpgroupAccumulatorsOp,
    WarpgroupMmaOp,
    WarpgroupWaitOp,
    WarpValueOp,
)
from mlirt.dialects.kernel.warpgroup_registers import WarpgroupMmaRegistersOp
from mlirt.dialects.kernel.warpgroup_turns import EachWarpgroupOp


class HopperSource(WordSource):
    """The statements of those ops; each is a method by the op's name."""

    # --- warpgroups

    def kernel_warpgroup_mma(self, op: WarpgroupMmaOp) -> None:
        flags = {"left_by_depth": op.left_by_depth is not None, "right_by_depth": op.right_by_depth is not None}
        chosen = "".join(f", {name}=True" for name, flag in flags.items() if flag)
        chosen += f", line={op.line.value.data}" if op.line.value.data != LINE else ""
        chosen += f", left_step={op.left_step.value.data}" if op.left_step is not None else ""
        make = self.word("multiply", f'warpgroup_mma("{op.kind.data}", {op.columns.value.data}{chosen})')
        self.define(op.result, f"{make}({', '.join(self.texts(op.operands))})")

    def kernel_warpgroup_mma_registers(self, op: WarpgroupMmaRegistersOp) -> None:
        make = self.word("multiply", f'warpgroup_mma_registers("{op.kind.data}", {op.columns.value.data})')
        self.define(op.result, f"{make}({', '.join(self.texts(op.operands))})")

    def kernel_warpgroup_wait(self, op: WarpgroupWaitOp) -> None:
        self.line(f"{self.word('wait', f'warpgroup_wait({op.pending.value.data})')}()")

    def kernel_warpgroup_accumulators(self, op: WarpgroupAccumulatorsOp) -> None:
        element = type_name(fragment(op.result).get_element_type())
        pending = f", {op.pending.value.data}" if op.pending.value.data else ""
        make = self.word("finish", f'warpgroup_accumulators("{element}", {length(op.result)}{pending})')
        self.define(op.result, f"{make}({self.text(op.accumulator)})")

    def kernel_join_columns(self, op: JoinColumnsOp) -> None:
        element = type_name(fragment(op.value).get_element_type())
        make = self.word("join", f'join_columns("{element}", {length(op.value)}, {op.width.value.data})')
        self.define(op.result, f"{make}({self.text(op.value)})")

    def kernel_each_warpgroup(self, op: EachWarpgroupOp) -> None:
        *inside, _ = op.body.block.ops
        self.ops(inside)

    def kernel_set_registers(self, op: SetRegistersOp) -> None:
        grow = ", grow=True" if op.grow.value.data else ""
        self.line(f"{self.word('keep', f'set_registers({op.count.value.data}{grow})')}()")

    def kernel_warp_value(self, op: WarpValueOp) -> None:
        self.define(op.result, self.index(f"warp_value({self.text(op.value)})"))

    # --- barriers and copies that the device makes by itself

    def kernel_mbarrier_init(self, op: MbarrierInitOp) -> None:
        self._on_barrier("start", f"mbarrier_init({op.arrivals.value.data})", op)

    def kernel_mbarrier_expect(self, op: MbarrierExpectOp) -> None:
        self._on_barrier("expect", f"mbarrier_expect({op.bytes.value.data})", op)

    def _on_barrier(self, hint: str, make: str, op: MbarrierInitOp | MbarrierExpectOp) -> None:
        self.line(f"{self.word(hint, make)}({', '.join(self.texts(op.operands))})")

    def kernel_mbarrier_fence(self, op: MbarrierFenceOp) -> None:
        self.line("mbarrier_fence()")

    def kernel_mbarrier_arrive(self, op: MbarrierArriveOp) -> None:
        self.line(f"mbarrier_arrive({', '.join(self.texts(op.operands))})")

    def kernel_mbarrier_wait(self, op: MbarrierWaitOp) -> None:
        self.line(f"mbarrier_wait({', '.join(self.texts(op.operands))})")

    def kernel_load_box(self, op: LoadBoxOp) -> None:
        type_ = map_type(op.map)
        make = self.word("load", f'load_box("{type_name(type_.element)}", {type_.rank})')
        self.line(f"{make}({', '.join(self.texts(op.operands))})")

    def kernel_load_window(self, op: LoadWindowOp) -> None:
        type_ = map_type(op.map)
        make = self.word("load", f'load_window("{type_name(type_.element)}", {type_.spatial.data})')
        places = [op.target, op.target_index, op.barriers, op.barrier]
        self.line(f"{make}({', '.join(self.texts([op.map, *op.coordinates, *op.offsets, *places]))})")

    # --- clusters and launches

    def kernel_cluster_rank(self, op: ClusterRankOp) -> None:
        self.define(op.result, self.index("cluster_rank()"))

    def kernel_cluster_barrier(self, op: ClusterBarrierOp) -> None:
        self.line("cluster_barrier()")

    def kernel_remote_shared(self, op: RemoteSharedOp) -> None:
        make = self.word("remote", f'remote_shared("{stored_name(memory(op.source).get_element_type())}")')
        self.define(op.result, f"{make}({', '.join(self.texts(op.operands))})")

    def kernel_wait_dependency(self, op: WaitDependencyOp) -> None:
        self.line("wait_dependency()")

    def kernel_launch_dependents(self, op: LaunchDependentsOp) -> None:
        self.line("launch_dependents()")
