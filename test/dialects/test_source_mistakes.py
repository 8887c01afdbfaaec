"""Texts that are no IR: the place and the reason, and names that were nearly right."""

from __future__ import annotations

import pytest

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import SourceError, parse_source

RELU = "  %y = trt.activation relu %x{} : (tensor<2xf32>) -> tensor<2xf32>\n"
FUNCTION = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n{}  func.return %y : tensor<2xf32>\n}}\n"


GOOD = FUNCTION.format(RELU.format(""))
UNKNOWN = FUNCTION.format(RELU.format(" {slowly}"))
NEARLY = FUNCTION.format(RELU.format(" {alpa = 1.0 : f64}"))
PROPERTY = "2:3: error: trt.activation has no property"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("ation", "aton"), "2:8: error: there is no op 'trt.activaton'; did you mean 'trt.activation'?"),
        (GOOD.replace("trt.", "foo."), "2:8: error: there is no op 'foo.activation'"),
        (NEARLY, f"{PROPERTY} 'alpa'; did you mean 'alpha'?"),
        (UNKNOWN, f"{PROPERTY} 'slowly'; it has alpha, beta, kind"),
        (GOOD[:-2], "4:1: error: the text ends where a '}' is missing"),
        (GOOD.replace("%y =", "17"), "2:3: error: expected an operation, a ^block or '}'"),
        ("# A page\n", "1:1: error: expected a name behind '#'"),
        (GOOD.replace("relu %x", "relu % x"), "2:28: error: expected a name behind '%'"),
        (GOOD + "}", "5:1: error: expected an operation, or the end of the text"),
        (GOOD.replace("relu %x", "relu %z"), "2:28: error: values used but not defined: [%z]"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    ctx = RtContext()
    register_dialects(ctx)
    with pytest.raises(SourceError) as caught:
        parse_source(ctx, text, "a.mlir")
    assert str(caught.value) == f"a.mlir:{message}"


def test_attributes_of_passes_are_kept() -> None:
    ctx = RtContext()
    register_dialects(ctx)
    parse_source(ctx, FUNCTION.format(RELU.format(' {trt.precision = "fp32"}')), "a.mlir")
