"""Digests of modules tell apart what passes tell apart, and nothing else."""

from __future__ import annotations

import pytest

from mlirt.dialects.context import RtContext
from mlirt.dialects.module_digest import module_digest
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import parse_source

TEXT = """
func.func @main(%x: tensor<2x3xf32> {trt.name = "x"}) -> (tensor<2x3xf32> {trt.name = "y"}) {
  %c = trt.constant {value = dense<1.5> : tensor<2x3xf32>} : tensor<2x3xf32> loc("c")
  %a = trt.activation relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("a")
  %y = trt.elementwise sum %a, %c : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("b")
  func.return %y : tensor<2x3xf32>
}
"""


def _digest(text: str) -> str:
    ctx = RtContext()
    register_dialects(ctx)
    module, _ = parse_source(ctx, text, "test")
    return module_digest(module)


def test_the_same_text_has_the_same_digest() -> None:
    assert _digest(TEXT) == _digest(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1.5", "1.25"),
        ("dense<1.5>", "dense<[[1.5, 1.5, 1.5], [1.5, 1.5, 0.0]]>"),
        ("relu", "tanh"),
        ("sum %a, %c", "sum %c, %a"),
        ("sum %a, %c", "sum %x, %c"),
        ('loc("a")', 'loc("other")'),
        ("%a", "%hint"),
        ('"x"', '"z"'),
        ("2x3", "3x2"),
        ("func.return %y", "func.return %a"),
    ],
)
def test_what_differs_has_another(old: str, new: str) -> None:
    assert old in TEXT
    assert _digest(TEXT.replace(old, new)) != _digest(TEXT)


def test_signs_of_zero_and_numbers_that_are_none() -> None:
    texts = [TEXT.replace("1.5", number) for number in ("0.0", "-0.0", "0x7FC00000", "0x7F800000")]
    assert len(set(map(_digest, texts))) == len(texts)
