"""The example in an op's docstring is IR that parses as that op, and obeys its constraints."""

from __future__ import annotations

import inspect

import pytest
from xdsl.ir import Operation
from xdsl.parser import Parser

from mlirt.dialects import registry
from mlirt.dialects.context import RtContext
from mlirt.tools.documentation.docstring_text import parse_docstring

OPS = [op for name in registry.dialect_names() for op in registry.load(name).operations]
EXAMPLES = {op: parse_docstring(inspect.getdoc(op) or "").example for op in OPS}
# Two dots stand for what an example leaves out.
WHOLE = [op for op, example in EXAMPLES.items() if example and ".." not in example]
# Its result depends on the op that makes an operand, which an example does not show.
READS_MAKERS = {"trt.one_hot"}


@pytest.mark.parametrize("op", WHOLE, ids=lambda op: op.name)
def test_example_is_the_op(op: type[Operation]) -> None:
    ctx = RtContext()
    registry.register_dialects(ctx)
    parsed = Parser(ctx, EXAMPLES[op]).parse_op()
    assert isinstance(parsed, op)
    if op.name not in READS_MAKERS:
        parsed.verify(verify_nested_ops=False)


def test_most_ops_have_an_example() -> None:
    """Terminators and ops without operands explain themselves; every layer of a network has one."""
    assert all(EXAMPLES[op] for op in OPS if op.name.startswith(("trt.", "plan.", "check.")))
