"""Guards for the known defects of xDSL 0.74.0: what we print reads back as the same attribute, bit by bit."""

from __future__ import annotations

import re
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import test
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    ModuleOp,
    NameLoc,
    NoneAttr,
    StringAttr,
    TensorType,
    f32,
    f64,
)
from xdsl.ir import Attribute, Operation
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.mlir_lexer import MLIRLexer

from mlirt.dialects.source_parser import SourceError, parse_source
from mlirt.dialects.verification import verify
from mlirt.dialects.xdsl_compat import module_text, ops_inside
from mlirt.tools.input_files import new_context

NAN, INFINITY = float("nan"), float("inf")
LISTS = [
    [1234567.0, 1.0],
    [16777216.0, 0.5, -16777215.0],
    [NAN, 1.0],
    [NAN, NAN],
    [INFINITY, -INFINITY, 0.0],
    [-0.0, 0.0],
    [-0.0, -0.0],
    [0.0, 0.0],
    [1e38, 1e-38, 1.17549435e-38, 1.4e-45],
    [0.1, 1 / 3, 2.5],
    [12345678.0] * 3,
]


def _round_trip(value: Attribute) -> Attribute:
    module = ModuleOp([test.TestOp(attributes={"value": value})])
    again, _ = parse_source(new_context(), module_text(module), "round_trip.mlir")
    (op,) = again.ops
    return op.attributes["value"]


@pytest.mark.parametrize("values", LISTS, ids=str)
@pytest.mark.parametrize("code", ["f", "d"])
def test_dense_floats_read_back_bit_by_bit(values: list[float], code: str) -> None:
    data = struct.pack(f"<{len(values)}{code}", *values)
    attribute = DenseIntOrFPElementsAttr(TensorType(f32 if code == "f" else f64, [len(values)]), BytesAttr(data))
    again = _round_trip(attribute)
    assert isinstance(again, DenseIntOrFPElementsAttr)
    assert again.data.data == data


def test_nan_payload_survives_in_a_list() -> None:
    data = bytes.fromhex("010080ff0000803f")
    again = _round_trip(DenseIntOrFPElementsAttr(TensorType(f32, [2]), BytesAttr(data)))
    assert isinstance(again, DenseIntOrFPElementsAttr)
    assert again.data.data == data


def test_scalars_read_back() -> None:
    from xdsl.dialects.builtin import FloatAttr

    for value in (1234567.0, 16777216.0, 1e20, -0.0, 0.1, INFINITY):
        again = _round_trip(FloatAttr(value, f32))
        assert isinstance(again, FloatAttr)
        assert again == FloatAttr(value, f32)
        assert struct.pack("<d", again.value.data) == struct.pack("<d", FloatAttr(value, f32).value.data)


def test_two_modules_in_one_process_do_not_mix() -> None:
    text = '%c = trt.constant {{value = #trt.weights<"w", "{}">}} : tensor<2xf32>'
    first, _ = parse_source(new_context(), text.format("aa"), "first.mlir")
    second, _ = parse_source(new_context(), text.format("bb"), "second.mlir")
    assert '"w", "aa"' in module_text(first)
    assert '"w", "bb"' in module_text(second)


class _Replace(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        if isinstance(op, test.TestOp) and "old" in op.attributes:
            rewriter.replace(op, test.TestOp(result_types=[f32]))


def test_a_rewrite_keeps_the_location() -> None:
    op = test.TestOp(result_types=[f32], attributes={"old": StringAttr("")})
    op.location = NameLoc(StringAttr("conv1"), NoneAttr())
    module = ModuleOp([op])
    PatternRewriteWalker(_Replace()).rewrite_module(module)
    (new,) = module.ops
    assert "old" not in new.attributes
    assert new.location == NameLoc(StringAttr("conv1"), NoneAttr())


def test_a_failing_verifier_does_not_dump_the_module() -> None:
    class Broken(test.TestOp):
        def verify_(self) -> None:
            raise VerifyException("broken")

    with pytest.raises(VerifyException) as caught:
        ModuleOp([Broken()]).verify()
    assert not getattr(caught.value, "__notes__", [])
    with pytest.raises(Exception, match=r"'test\.op' op broken"):
        verify(ModuleOp([Broken()]))


_OWN_STRINGS = re.compile(r'"(?:[^"\\\n\v\f]+|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"')
"""xDSL 0.74.0's, which tries each way to divide the characters where the quote is missing."""


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('"\\nt0aF\n\x0bé '), max_size=12))
def test_strings_are_those_of_xdsl(text: str) -> None:
    ours = MLIRLexer._unescaped_characters_regex  # pyright: ignore[reportPrivateUsage]
    assert _span(ours, f'"{text}') == _span(_OWN_STRINGS, f'"{text}')


def _span(pattern: re.Pattern[str], text: str) -> tuple[int, int] | None:
    found = pattern.match(text)
    return found and found.span()


@pytest.mark.parametrize("text", ['"' + "a" * 200, '"' + "a" * 100 + "\\q", '"' + "\\n" * 200, "@" + '"' + "b" * 200])
def test_a_string_without_an_end_is_an_error_at_once(text: str) -> None:
    with pytest.raises(SourceError, match="closing string literal"):
        parse_source(new_context(), text, "a.mlir")


def test_ops_inside_are_those_of_a_walk() -> None:
    side = "%x = arith.constant 1.0 : f32 scf.yield %x : f32"
    body = f"%c = arith.constant true %r = scf.if %c -> (f32) {{ {side} }} else {{ {side} }}"
    text = f"func.func @a() {{ {body} func.return }} func.func private @b() -> ()"
    module, _ = parse_source(new_context(), text, "test")
    found = ops_inside(module)
    assert len(found) == 9
    assert set(found) == set(module.walk()) - {module}
    assert ops_inside(found[-1]) == []
