"""The text of numbers that blocks send each other, and of dot products of fragments."""

from __future__ import annotations

from mlirt.codegen.numba_cuda.word_source import WordSource
from mlirt.codegen.python_expressions import type_name
from mlirt.dialects.kernel.buffers import fragment, length
from mlirt.dialects.kernel.dot_product import DotProductOp
from mlirt.dialects.kernel.stamped_word import AwaitPostsOp, PostOp


class StampedSource(WordSource):
    """The statements of those ops; each is a method by the op's name."""

    def kernel_post(self, op: PostOp) -> None:
        make = self.word("send", f'post("{type_name(op.value.type)}")')
        self.line(f"{make}({', '.join(self.texts(op.operands))})")

    def kernel_await_posts(self, op: AwaitPostsOp) -> None:
        element = type_name(fragment(op.result).get_element_type())
        make = self.word("receive", f'await_posts("{element}", {op.count.value.data}, {len(op.indices)})')
        self.define(op.result, f"{make}({', '.join(self.texts([op.words, op.stamp, *op.indices]))})")

    def kernel_dot_product(self, op: DotProductOp) -> None:
        make = self.word("dot", f"dot_product({length(op.left)})")
        self.define(op.result, f"{make}({', '.join(self.texts(op.operands))})")
