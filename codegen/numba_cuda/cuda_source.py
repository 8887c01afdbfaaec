"""The text of one mapped kernel: what one thread does, in words that builder/numba_cuda_intrinsics defines.

Words with parameters (which elements a fragment has, how far apart) are made before the function, once for each use
that differs, so that the function itself stays short.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from mlirt.codegen.numba_cuda.cuda_expressions import (
    Narrow,
    from_stored,
    is_rounded_to_integers,
    stored_name,
    to_stored,
    widest,
)
from mlirt.codegen.numba_cuda.hopper_source import HopperSource
from mlirt.codegen.python_expressions import Expression, type_name
from mlirt.dialects.kernel.accumulators import (
    ExponentialRowsOp,
    LimitColumnsOp,
    PackAccumulatorsOp,
    ReduceRowsOp,
    ScaleRowsOp,
    columns_of,
    rows_of,
)
from mlirt.dialects.kernel.buffers import fragment, length, memory
from mlirt.dialects.kernel.core import FuncOp, LoadOp, StoreOp, stride_values
from mlirt.dialects.kernel.fragment import (
    FillFragmentOp,
    FragmentElementOp,
    FragmentOp,
    LoadFragmentOp,
    OuterProductOp,
    StoreFragmentOp,
)
from mlirt.dialects.kernel.matrix_unit import LoadMatrixOp, MmaOp
from mlirt.dialects.kernel.simt import (
    ReuseSharedOp,
    SharedOp,
    shared_offsets,
)


class CudaSource(HopperSource):
    """The lines of one kernel. With `narrow`, indices are 32 bits wide."""

    def __init__(self, func: FuncOp, narrow: bool) -> None:
        super().__init__(narrow, is_rounded_to_integers(func), "close_functions" in func.attributes)
        self.shared, self.shared_bytes = shared_offsets(func)

    # --- addresses and loops

    def address(self, indices: Sequence[SSAValue], strides: Sequence[SSAValue | int]) -> Expression:
        at = super().address(indices, strides)
        if not self.narrow or at.text.isidentifier() or isinstance(at, Narrow):
            return Expression(widest(at).text) if widest(at).text.isdecimal() else at
        return Expression(f"int32({at.text})")

    def scf_for(self, op: scf.ForOp) -> None:
        """As for all targets; with 32-bit indices a range of plain numbers would count in 64 bits."""
        if not self.narrow or not isinstance(op.lb.type, IndexType):
            super().scf_for(op)
            return
        index, *carried = op.body.block.args
        self._carry(op.iter_args, carried, op.results)
        start, stop, step = self.texts([op.lb, op.ub, op.step])
        bounds = [start, stop] if step == "int32(1)" else [start, stop, step]
        bounds = [stop] if bounds == ["int32(0)", stop] else bounds
        with self.block_of(f"for {self.names.define(index)} in range({', '.join(bounds)}):"):
            self._body(op.body.block, carried)

    # --- memory

    def kernel_load(self, op: LoadOp) -> None:
        element = f"{self.text(op.buffer)}[{self.address(op.indices, stride_values(op)).text}]"
        self.define(op.result, from_stored(element, op.result.type).text)

    def kernel_store(self, op: StoreOp) -> None:
        value = to_stored(self.text(op.value), op.value.type)
        self.line(f"{self.text(op.buffer)}[{self.address(op.indices, stride_values(op)).text}] = {value}")

    # --- threads

    def kernel_return(self, op: object) -> None:
        """The end of the function."""

    def kernel_shared(self, op: SharedOp) -> None:
        element = stored_name(memory(op.result).get_element_type())
        make = self.word("shared_memory", f'shared("{element}", {self.shared[op.result]})')
        self.define(op.result, f"{make}()")

    def kernel_reuse_shared(self, op: ReuseSharedOp) -> None:
        element = stored_name(memory(op.result).get_element_type())
        self.shared[op.result] = self.shared[op.source]
        make = self.word("shared_memory", f'shared("{element}", {self.shared[op.result]})')
        self.define(op.result, f"{make}()")

    # --- fragments

    def kernel_fill_fragment(self, op: FillFragmentOp) -> None:
        make = self.word("fill", f'fill_fragment("{type_name(op.value.type)}", {length(op.result)})')
        self.define(op.result, f"{make}({self.text(op.value)})")

    def kernel_fragment(self, op: FragmentOp) -> None:
        type_ = op.values[0].type
        make = self.word("join", f'fragment("{stored_name(type_)}", {length(op.result)})')
        values = [to_stored(text, type_) for text in self.texts(op.values)]
        self.define(op.result, f"{make}({', '.join(values)})")

    def kernel_fragment_element(self, op: FragmentElementOp) -> None:
        element = f"{self.text(op.fragment)}[{op.position.value.data}]"
        self.define_inline(op.result, from_stored(element, op.result.type))

    def kernel_load_fragment(self, op: LoadFragmentOp) -> None:
        make = self.word("load", _access("load_fragment", op, op.result))
        operands = [op.buffer, op.index, *_given(op.stride, op.valid)]
        self.define(op.result, f"{make}({', '.join(self.texts(operands))})")

    def kernel_store_fragment(self, op: StoreFragmentOp) -> None:
        make = self.word("store", _access("store_fragment", op, op.value))
        operands = [op.value, op.buffer, op.index, *_given(op.stride, op.valid)]
        self.line(f"{make}({', '.join(self.texts(operands))})")

    def kernel_outer_product(self, op: OuterProductOp) -> None:
        make = self.word("multiply", f"outer_product({length(op.left)}, {length(op.right)})")
        self._update(op, make)

    def _update(self, op: OuterProductOp | MmaOp, make: str) -> None:
        self.define(op.result, f"{make}({', '.join(self.texts(op.operands))})")

    # --- matrix units

    def kernel_load_matrix(self, op: LoadMatrixOp) -> None:
        element = type_name(memory(op.buffer).get_element_type())
        transposed = ", transpose=True" if op.transpose.value.data else ""
        parameters = f'"{element}", {op.count.value.data}, {op.step.value.data}{transposed}'
        make = self.word("load_tiles", f"load_matrix({parameters})")
        self.define(op.result, f"{make}({', '.join(self.texts([op.buffer, op.index]))})")

    def kernel_mma(self, op: MmaOp) -> None:
        make = self.word("multiply", f'mma("{op.kind.data}", {op.rows.value.data}, {op.columns.value.data})')
        self._update(op, make)

    # --- rows of accumulators

    def kernel_reduce_rows(self, op: ReduceRowsOp) -> None:
        count = length(op.accumulators)
        make = self.word("over_rows", f'reduce_rows("{op.kind.data}", {count}, {rows_of(count, op.row_count)})')
        self.define(op.result, f"{make}({self.text(op.accumulators)})")

    def kernel_scale_rows(self, op: ScaleRowsOp) -> None:
        self._per_row(op, "scale_rows")

    def kernel_exponential_rows(self, op: ExponentialRowsOp) -> None:
        self._per_row(op, "exponential_rows")

    def kernel_limit_columns(self, op: LimitColumnsOp) -> None:
        self._per_row(op, "limit_columns", f", {columns_of(length(op.accumulators), op.row_count)}")

    def _per_row(self, op: ScaleRowsOp | ExponentialRowsOp | LimitColumnsOp, maker: str, more: str = "") -> None:
        count = length(op.accumulators)
        make = self.word(maker.partition("_")[0], f"{maker}({count}, {rows_of(count, op.row_count)}{more})")
        self.define(op.result, f"{make}({', '.join(self.texts(op.operands))})")

    def kernel_pack_accumulators(self, op: PackAccumulatorsOp) -> None:
        count = length(op.accumulators)
        make = self.word("pack", f'pack_accumulators("{op.kind.data}", {count}, {op.positions()})')
        self.define(op.result, f"{make}({self.text(op.accumulators)})")


def _given(*values: SSAValue | None) -> list[SSAValue]:
    return [value for value in values if value is not None]


def _access(maker: str, op: LoadFragmentOp | StoreFragmentOp, value: SSAValue) -> str:
    flags = {"strided": op.stride is not None, "guarded": op.valid is not None}
    chosen = "".join(f", {name}=True" for name, flag in flags.items() if flag)
    chosen += f", group={group}" if (group := op.group(op.buffer)) > 1 else ""
    return f'{maker}("{stored_name(fragment(value).get_element_type())}", {_numbers(op.offset_list())}{chosen})'


def _numbers(offsets: Sequence[int]) -> str:
    """A list of numbers, as a range where it is one."""
    steps = {after - before for before, after in pairwise(offsets)}
    if len(offsets) > 2 and len(steps) == 1 and offsets[0] == 0 and (step := steps.pop()) > 0:
        stop = offsets[-1] + step
        return f"range({stop})" if step == 1 else f"range(0, {stop}, {step})"
    return f"({', '.join(map(str, offsets))}{',' if len(offsets) == 1 else ''})"
