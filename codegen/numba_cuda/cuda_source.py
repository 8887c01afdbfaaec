"""The text of one mapped kernel: what one thread does, in words that builder/numba_cuda_intrinsics defines.

Words with parameters (which elements a fragment has, how far apart) are made before the function, once for each use
that differs, so that the function itself stays short; a short one that is used once stands where it is used, as
`word(parameters)(operands)`.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from mlirt.codegen.numba_cuda.word_source import WordSource
from mlirt.codegen.python_expressions import Expression
from mlirt.dialects.kernel.buffers import length, memory
from mlirt.dialects.kernel.core import FuncOp, LoadOp, StoreOp, stride_values
from mlirt.dialects.kernel.fragment import (
    FragmentElementOp,
    FragmentOp,
)
from mlirt.dialects.kernel.fragment_map import FragmentPartOp
from mlirt.dialects.kernel.simt import (
    ReuseSharedOp,
    SharedOp,
    shared_offsets,
)
from mlirt.dialects.kernel.warp_specialization import EachWarpgroupOp


class CudaSource(WordSource):
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

    def kernel_each_warpgroup(self, op: EachWarpgroupOp) -> None:
        *inside, _ = op.body.block.ops
        self.ops(inside)

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

    def kernel_fragment(self, op: FragmentOp) -> None:
        type_ = op.values[0].type
        make = self.word("join", f'fragment("{stored_name(type_)}", {length(op.result)})')
        values = [to_stored(text, type_) for text in self.texts(op.values)]
        self.define(op.result, f"{make}({', '.join(values)})")

    def kernel_fragment_part(self, op: FragmentPartOp) -> None:
        first = op.position.value.data
        self.define_word(op, f"{self.text(op.fragment)}[{first}:{first + length(op.result)}]")

    def kernel_fragment_element(self, op: FragmentElementOp) -> None:
        element = f"{self.text(op.fragment)}[{op.position.value.data}]"
        self.define_inline(op.result, from_stored(element, op.result.type))
