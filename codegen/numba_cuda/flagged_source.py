"""The text of numbers that blocks send each other, and of dot products of fragments."""

from __future__ import annotations

from mlirt.codegen.numba_cuda.word_source import WordSource
from mlirt.codegen.python_expressions import type_name
from mlirt.dialects.kernel.buffers import fragment, length
from mlirt.dialects.kernel.dot_product import DotProductOp
from mlirt.dialects.kernel.flagged_word import ReceiveFlaggedOp, SendFlaggedOp


class FlaggedSource(WordSource):
    """The statements of those ops; each is a method by the op's name."""

    def kernel_send_flagged(self, op: SendFlaggedOp) -> None:
        make = self.word("send", f'send_flagged("{type_name(op.value.type)}")')
        self.line(f"{make}({', '.join(self.texts(op.operands))})")

    def kernel_receive_flagged(self, op: ReceiveFlaggedOp) -> None:
        element = type_name(fragment(op.result).get_element_type())
        make = self.word("receive", f'receive_flagged("{element}", {op.count.value.data}, {len(op.indices)})')
        self.define(op.result, f"{make}({', '.join(self.texts([op.words, op.flag, *op.indices]))})")

    def kernel_dot_product(self, op: DotProductOp) -> None:
        make = self.word("dot", f"dot_product({length(op.left)})")
        self.define(op.result, f"{make}({', '.join(self.texts(op.operands))})")
