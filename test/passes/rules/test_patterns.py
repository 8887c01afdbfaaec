"""What patterns match, and why they do not: each constraint alone, in networks of a few layers."""

from __future__ import annotations

import re

import pytest
from rules_at_work import declines, matches

from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.topk import TopkOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.errors import InvalidInputError
from mlirt.passes.rules import (
    Pattern,
    binary,
    constant,
    each,
    either,
    near,
    number,
    op,
    optional,
    positive,
    repeated,
    some,
    value,
    where,
)

T = "tensor<2x3xf32>"
UNARY = f"({T}) -> {T}"
BINARY = f"({T}, {T}) -> {T}"
RELU = f"%y = trt.activation relu %x : {UNARY}"
CLIP = f"%y = trt.activation clip %x {{alpha = 0.0, beta = 6.0}} : {UNARY}"
x = value("x")


def splat(number_: float, name: str = "c", shape: str = "1x1") -> str:
    return f"%{name} = trt.constant {{value = dense<{number_}> : tensor<{shape}xf32>}} : tensor<{shape}xf32>\n"


def with_number(kind: str, number_: float, is_first: bool = False) -> str:
    operands, types = ("%c, %x", f"tensor<1x1xf32>, {T}") if is_first else ("%x, %c", f"{T}, tensor<1x1xf32>")
    return splat(number_) + f"%y = trt.elementwise {kind} {operands} : ({types}) -> {T}"


@pytest.mark.parametrize(
    ("pattern", "text", "holds"),
    [
        (op(ActivationOp, x), RELU, True),
        (op(UnaryOp, x), RELU, False),
        (op(ActivationOp | UnaryOp, x), RELU, True),
        (op(ActivationOp, x, kind="relu"), RELU, True),
        (op(ActivationOp, x, kind="tanh"), RELU, False),
        (op(ActivationOp, x, kind=either("tanh", "relu")), RELU, True),
        (op(ActivationOp, x, kind=where(lambda kind: kind.startswith("re"), "a re..")), RELU, True),
        (op(ActivationOp, x, kind="clip", alpha=0, beta=6), CLIP, True),
        (op(ActivationOp, x, kind="clip", alpha=0, beta=5), CLIP, False),
        (op(ActivationOp, x, kind="clip", beta=near(6.001)), CLIP, True),
        (op(ActivationOp, x, kind="clip", beta=near(6.1)), CLIP, False),
        (op(ActivationOp, x, kind="clip", beta=positive()), CLIP, True),
        (op(ActivationOp, x, kind="clip", alpha=positive()), CLIP, False),
        (op(ActivationOp, input=x), RELU, True),
        (op(ActivationOp, value(element="float32", rank=2)), RELU, True),
        (op(ActivationOp, value(element=either("float16", "bfloat16"))), RELU, False),
        (op(ActivationOp, value(rank=4)), RELU, False),
        (op(ActivationOp, constant()), RELU, False),
        (op(UnaryOp, x, kind="exp") | op(ActivationOp, x, kind="relu"), RELU, True),
        (op(ElementwiseOp, x, number(3)), with_number("sum", 3), True),
        (op(ElementwiseOp, x, number(3)), with_number("sum", 4), False),
        (op(ElementwiseOp, x, number(0.1)), with_number("sum", 0.1), True),
        (op(ElementwiseOp, x, number(near(6))), with_number("sum", 6.0001), True),
        (op(ElementwiseOp, x, number(near(0))), with_number("sum", 0.0001), True),
        (op(ElementwiseOp, number(), x), with_number("sum", 3), False),
        (binary("sum", number(), x), with_number("sum", 3), True),
        (binary("sub", number(), x), with_number("sub", 3), False),
        (binary("sub", number(), x), with_number("sub", 3, is_first=True), True),
        (op(ElementwiseOp, x, x, kind="prod"), f"%y = trt.elementwise prod %x, %x : {BINARY}", True),
        (op(ElementwiseOp, x, x, kind="prod"), with_number("prod", 3), False),
        (op(ElementwiseOp, x, ...), with_number("prod", 3), True),
        (op(ElementwiseOp, x), with_number("prod", 3), False),
        (op(ElementwiseOp, x, constant("c", where(lambda a: a.size == 1, "one"))), with_number("prod", 3), True),
        (op(ElementwiseOp, x, constant("c", where(lambda a: a.size == 2, "two"))), with_number("prod", 3), False),
    ],
)
def test_one_layer(pattern: Pattern, text: str, holds: bool) -> None:
    assert (matches(pattern, text) is not None) is holds


def test_absent_operands() -> None:
    mode = "{mode = #trt<scale_mode uniform>}"
    scale = (
        "%s = trt.constant {value = dense<2.0> : tensor<f32>} : tensor<f32>\n"
        + f"%y = trt.scale %x scale(%s : tensor<f32>) {mode} : {UNARY}"
    )
    assert matches(op(ScaleOp, input=x, scale=constant("s"), shift=None, power=None), scale) is not None
    assert matches(op(ScaleOp, input=x, scale=None), scale) is None
    assert matches(op(ScaleOp, input=x, shift=constant()), scale) is None


JOINED = f"""
%a = trt.unary neg %x : {UNARY} loc("a")
%b = trt.unary exp %x : {UNARY} loc("b")
%j = trt.concatenation %x, %a, %b {{axis = 0 : i64}} : ({T}, {T}, {T}) -> tensor<6x3xf32>
%y = trt.activation relu %x : {UNARY}
"""


def test_one_of_several_operands() -> None:
    found = matches(op(ConcatenationOp, inputs=some(op(UnaryOp, x, kind="exp").named("part"))), JOINED)
    assert found is not None
    assert found["part"].results[0].name_hint == "b"
    assert matches(op(ConcatenationOp, inputs=some(op(ActivationOp, x))), JOINED) is None


def test_each_of_several_operands_is_tried() -> None:
    part = op(UnaryOp, x).where(lambda found: found.kind.data == "exp", "it is no exp")
    found = matches(op(ConcatenationOp, inputs=some(part.named("part"))), JOINED)
    assert found is not None
    assert found["part"].results[0].name_hint == "b"


def test_what_is_missing_is_said_in_the_words_of_the_pattern() -> None:
    said = "missed: it joins no activation"
    assert declines(op(ConcatenationOp, inputs=some(op(ActivationOp).missing("it joins no activation"))), JOINED) == [
        said
    ]
    assert declines(op(UnaryOp, op(ActivationOp).missing("it joins no activation")), JOINED) == [said, said]


CHAIN = f"""
%a = trt.unary neg %x : {UNARY} loc("a")
%b = trt.unary exp %a : {UNARY} loc("b")
%c = trt.unary neg %b : {UNARY} loc("c")
%y = trt.activation relu %c : {UNARY} loc("end")
"""


def test_repeated_parts() -> None:
    steps = repeated(lambda inner: op(UnaryOp, inner).collected("steps"), x)
    found = matches(op(ActivationOp, steps), CHAIN)
    assert found is not None
    assert [one.kind.data for one in found["steps"]] == ["neg", "exp", "neg"]
    assert found["x"].name_hint == "x"
    assert matches(op(ActivationOp, repeated(lambda inner: op(UnaryOp, inner), x, most=2)), CHAIN) is not None
    assert matches(op(ActivationOp, repeated(lambda inner: op(UnaryOp, inner), x, least=4)), CHAIN) is None
    negations = repeated(lambda inner: op(UnaryOp, inner, kind="neg").collected("negs"), x)
    found = matches(op(ActivationOp, negations), CHAIN)
    assert found is not None
    assert len(found["negs"]) == 1, "the chain ends where another layer stands"


def test_the_longest_chain_gives_way_to_what_is_behind_it() -> None:
    last = op(UnaryOp, x, kind="neg").named("first")
    found = matches(op(ActivationOp, repeated(lambda inner: op(UnaryOp, inner), last)), CHAIN)
    assert found is not None
    assert found["first"].output.name_hint == "a"


def test_optional_parts() -> None:
    pattern = op(ActivationOp, optional(lambda inner: op(UnaryOp, inner, kind="neg").named("neg"), x))
    found = matches(pattern, CHAIN)
    assert found is not None
    assert found["neg"].output.name_hint == "c"
    found = matches(pattern, RELU)
    assert found is not None
    assert found["neg"] is None


def test_each_operand_of_a_variable_number() -> None:
    both = f"%a = trt.unary neg %x : {UNARY}\n%b = trt.unary exp %x : {UNARY}\n"
    joined = both + f"%j = trt.concatenation %a, %b {{axis = 0 : i64}} : ({T}, {T}) -> tensor<4x3xf32>\n" + RELU
    negations = op(ConcatenationOp, inputs=each(op(UnaryOp, x, kind="neg")))
    assert matches(negations, joined) is None
    assert matches(negations, joined.replace("exp", "neg")) is not None
    found = matches(op(ConcatenationOp, inputs=each(value().collected("parts"))), joined)
    assert found is not None
    assert [one.name_hint for one in found["parts"]] == ["a", "b"]
    assert matches(op(ConcatenationOp, inputs=[value("a"), value("b")]), joined) is not None
    assert matches(op(ConcatenationOp, inputs=[value("a")]), joined) is None


def test_another_result() -> None:
    text = f"""
    func.func @main(%x: {T}) -> tensor<2x1xi64> {{
      %v, %i = trt.topk max %x {{axis = 1 : i64, k = 1 : i64}} : ({T}) -> (tensor<2x1xf32>, tensor<2x1xi64>)
      %y = trt.unary abs %i : (tensor<2x1xi64>) -> tensor<2x1xi64>
      func.return %y : tensor<2x1xi64>
    }}"""
    assert matches(op(UnaryOp, op(TopkOp).result_number(1)), text) is not None
    assert matches(op(UnaryOp, op(TopkOp)), text) is None
    assert matches(op(UnaryOp, op(TopkOp).result_number(2)), text) is None


TWICE = f"""
%a = trt.unary exp %x : {UNARY} loc("exp")
%s = trt.activation sigmoid %a : {UNARY} loc("gate")
%y = trt.elementwise prod %s, %a : {BINARY} loc("mul")
"""


def test_a_name_in_two_places_is_one_value() -> None:
    assert matches(binary("prod", x, op(ActivationOp, x, kind="sigmoid")), TWICE) is not None
    assert matches(binary("prod", x, op(ActivationOp, x, kind="sigmoid")), TWICE.replace("%s, %a", "%s, %x")) is None


def test_readers_inside_the_match_do_not_count() -> None:
    inner = op(UnaryOp, x, kind="exp").named("exp")
    assert matches(binary("prod", inner, op(ActivationOp, inner)), TWICE) is not None
    assert matches(binary("prod", inner, value()), TWICE) is None
    assert matches(binary("prod", inner.shared(), value()), TWICE) is not None


@pytest.mark.parametrize(
    ("pattern", "text", "reason"),
    [
        (op(ActivationOp, value(rank=4)), RELU, "declined: the rank of an input is 2, not 4"),
        (
            op(ActivationOp, value(element="float16")),
            RELU,
            "declined: the element type of an input is float32, not float16",
        ),
        (op(ActivationOp, value().where(lambda v: False, "it is Monday")), RELU, "declined: it is Monday"),
        (op(ActivationOp, x).where(lambda one: one.kind.data == "tanh", "no tanh"), RELU, "declined: no tanh"),
        (op(ActivationOp, x).unless(lambda one: f"it is {one.kind.data}"), RELU, "declined: it is relu"),
        (binary("sum", x, number(near(6))), with_number("sum", 5), "declined: the constant is 5, not near 6"),
        (binary("sum", x, number(3)), with_number("sum", 5), "declined: the constant is 5, not 3"),
        (
            binary("sum", x, constant("c", where(lambda a: a.size > 1, "a row"))),
            with_number("sum", 5),
            "declined: the constant is not a row",
        ),
        (binary("prod", op(UnaryOp, x), value()), TWICE, "declined: exp has other readers"),
        (
            op(ActivationOp, op(UnaryOp, op(UnaryOp, x, kind="neg"))),
            CHAIN,
            "missed: kind of b (trt.unary) is exp, not neg",
        ),
        (
            op(ActivationOp, op(UnaryOp, op(SoftmaxOp, x))),
            CHAIN,
            "missed: b (trt.unary) stands where trt.softmax is looked for",
        ),
        (op(ActivationOp, x), RELU, "declined: it matched"),
    ],
)
def test_reasons(pattern: Pattern, text: str, reason: str) -> None:
    assert declines(pattern, text) == [reason]


def test_the_reason_is_that_of_the_way_with_the_fewest_failures() -> None:
    """A sum of two constants: one order fails at both numbers, the other at one."""
    text = (
        splat(3, "a")
        + splat(5, "b")
        + f"%s = trt.elementwise sum %a, %b : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xf32>\n{RELU}"
    )
    assert declines(binary("sum", number(5), number(4)), text) == ["declined: the constant is 3, not 4"]


def test_what_is_no_layer_of_the_pattern_is_silent() -> None:
    assert declines(op(ActivationOp, op(UnaryOp, x)), RELU) == []
    assert declines(op(ActivationOp, x, kind="tanh"), RELU) == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: op(ActivationOp, knd="relu"),
            "trt.activation: it has no operand or property 'knd'; did you mean kind?",
        ),
        (lambda: op(ActivationOp, kind="rely"), "a pattern of trt.activation: kind is 'rely'"),
        (
            lambda: op(ActivationOp | UnaryOp, alpha=1.0),
            "a pattern of trt.unary: it has no operand or property 'alpha'",
        ),
        (lambda: op(ActivationOp, x, x), "a pattern of trt.activation: it has 2 operands, but the op 1"),
        (lambda: op(ConcatenationOp, each(x)), "each(..) stands for an operand by its name"),
        (lambda: op(ConcatenationOp, some(x)), "and so does some(..)"),
    ],
)
def test_patterns_that_cannot_be_meant(make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(InvalidInputError, match=re.escape(said)):
        make()
