"""docs/architecture.md shows what the compiler writes today for the small network, and that network is right."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mlirt
from mlirt.errors import InvalidInputError
from mlirt.tools.documentation.excerpt import excerpt, wrap

ROOT = Path(__file__).parents[2]


def test_page_is_current(assert_current: Callable[[str], None]) -> None:
    assert_current("docs/architecture.md")


def test_the_small_network_is_right_on_the_cpu() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model = runpy.run_path(str(ROOT / "examples" / "small_network.py"))["small_network"]()
    image = np.linspace(-1, 1, 5 * 3 * 8 * 8, dtype=np.float32).reshape(5, 3, 8, 8)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"image": image})[0]
    for target in ("reference", "cpu"):
        found = mlirt.compile(model, target=target).run({"image": image})["scores"]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


TEXT = """\
module {
  func @main {
    %a = one %x
    %b = two %a {
    ^bb0(%0: f32):
      yield %0
    } {
    ^bb0(%1: f32):
      yield %1
    } loc("b")
    %c = three %b
  }
}
"""


def test_excerpt_of_an_op_has_all_of_its_regions() -> None:
    assert excerpt(TEXT, ["= two"]).splitlines()[-1] == '} loc("b")'
    assert excerpt(TEXT, ["= one", "= three"]) == "%a = one %x\n...\n%c = three %b"
    assert excerpt(TEXT, ["%*two .. ^bb0"]) == "%b = two %a {\n^bb0(%0: f32):\n..."


def test_excerpt_of_a_function() -> None:
    text = "x = 1\n\n\ndef f(a):\n    if a:\n        return 1\n\n    return 2\n\n\ny = 2\n"
    assert excerpt(text, ["def f"]) == "def f(a):\n    if a:\n        return 1\n\n    return 2"


def test_excerpt_of_what_is_not_there() -> None:
    with pytest.raises(InvalidInputError, match="no line of the text contains '= four'"):
        excerpt(TEXT, ["= four"])


def test_long_lines_break_before_their_types_and_never_in_a_string() -> None:
    line = f'  %y = trt.op {{name = "{"a, b " * 12}"}} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>'
    pieces = list(wrap(line))
    assert len(pieces) > 1
    assert all(piece.startswith("      ") for piece in pieces[1:])
    assert pieces[1].startswith(("      : ", "      -> "))
    assert "".join(pieces).replace(" ", "") == line.replace(" ", "")
