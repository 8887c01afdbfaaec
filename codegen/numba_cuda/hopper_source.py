"""The text of what Hopper GPUs add: warpgroups, barriers that count bytes, copies of boxes, clusters."""

from __future__ import annotations

from mlirt.codegen.numba_cuda.word_source import WordSource
from mlirt.codegen.python_expressions import type_name
from mlirt.dialects.kernel.buffers import fragment, length
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
