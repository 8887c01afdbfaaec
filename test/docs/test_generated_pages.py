"""The pages that follow from definitions say what the definitions say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mlirt.dialects import registry
from mlirt.frontend.onnx.handlers import supported_ops
from mlirt.passes.registry import pass_names
from mlirt.tools.documentation.docstring_text import parse_docstring, to_markdown
from mlirt.tools.documentation.pages import GENERATED


@pytest.mark.parametrize("name", GENERATED)
def test_page_is_current(name: str, assert_current: Callable[[str], None]) -> None:
    assert_current(name)


@pytest.mark.parametrize("name", registry.dialect_names())
def test_every_op_has_a_heading_and_a_sentence(name: str) -> None:
    page = GENERATED[f"docs/dialects/{name}.md"]()
    for op in registry.load(name).operations:
        assert f"\n## `{op.name}`\n\n" in page
        assert f"\n## `{op.name}`\n\n\n" not in page, f"{op.name} has no docstring"


def test_every_pass_and_operator_is_listed() -> None:
    passes, operators = GENERATED["docs/passes.md"](), GENERATED["docs/onnx-operators.md"]()
    for name in pass_names():
        assert f"\n### {name}\n" in passes
    for _, name in supported_ops():
        assert f"\n| `{name}` |" in operators


DOCSTRING = """Sum of a * b (features 1.2, 1.3).

Text with `a * b` and 1 < 2. C1: the first
constraint. C2:
the second.

Example: `%y = trt.op %x :
(tensor<4xf32>) -> tensor<4xf32>`
"""


def test_docstring_becomes_text_constraints_and_example() -> None:
    parts = parse_docstring(DOCSTRING)
    assert parts.body == "Sum of a \\* b.\n\nText with `a * b` and 1 &lt; 2."
    assert parts.constraints == ("**C1** the first constraint.", "**C2** the second.")
    assert parts.example == "%y = trt.op %x :\n(tensor<4xf32>) -> tensor<4xf32>"
    assert to_markdown(DOCSTRING).endswith("- **C2** the second.\n\n```mlir\n" + parts.example + "\n```")


def test_example_may_be_an_indented_block() -> None:
    assert parse_docstring("Text.\n\nExample:\n\n    %y = a\n      b\n").example == "%y = a\n  b"
