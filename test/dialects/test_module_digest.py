"""Digests of modules tell apart what passes tell apart, and nothing else."""

from __future__ import annotations

from unittest import mock

import pytest

from mlirt.dialects import module_digest as digests
from mlirt.dialects.context import RtContext
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
    return digests.module_digest(module)


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


def test_what_is_made_of_other_attributes_is_not_printed() -> None:
    """Locations and weights, of which each op has its own, would be most of the time."""
    printed: list[int] = []
    for layers in (2, 20):
        lines = [
            f'  %v{k + 1} = trt.activation relu %v{k} : (tensor<4xf32>) -> tensor<4xf32> loc("layer{k}")'
            for k in range(layers)
        ]
        body = "\n".join(lines).replace("%v0 ", "%x ")
        end = f"  func.return %v{layers} : tensor<4xf32>"
        text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\n{end}\n}}"
        with mock.patch.object(digests, "IrPrinter", wraps=digests.IrPrinter) as printer:
            _digest(text)
        printed.append(printer.call_count)
    assert printed[0] == printed[1]
