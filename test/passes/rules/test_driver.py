"""What the driver does with rules: names, places, the end of it, reasons, and no work where no root is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from rules_at_work import applied_to
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f64
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.locations import name_of
from mlirt.dialects.trt.activation import ActivationKind, ActivationKindAttr, ActivationOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.topk import TopkOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.errors import CompileError, InvalidInputError
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, Rule, RulePass, binary, constant, layer, number, op, rule, value
from mlirt.passes.rules.driver import rules_of
from mlirt.passes.rules.search import Search
from mlirt.tools.input_files import InputFile, load_text, new_context

T = "tensor<2x3xf32>"
UNARY = f"({T}) -> {T}"
x = value("x")
RELU = op(ActivationOp, x, kind="relu")
TWO = op(ActivationOp, op(ActivationOp, x, kind="relu").named("first"), kind="relu").named("second")
RELUS = f"""
%a = trt.activation relu %x : {UNARY} loc("a")
%b = trt.activation relu %a : {UNARY} loc("b")
%c = trt.activation relu %b : {UNARY} loc("c")
%y = trt.activation relu %c : {UNARY} loc("d")
"""


def test_names_and_places_are_kept() -> None:
    outcome = applied_to(RELUS, Rule(TWO, layer(ActivationOp, x, kind="relu")))
    (left,) = outcome.ops()
    assert name_of(left) == "a + b + c + d"
    assert left.results[0].name_hint == "y"
    assert outcome.applied == 3
    assert [one.split(": ")[0] for one in outcome.remarks] == ["applied"] * 3
    assert outcome.remarks[-1] == "applied: a + b + c + d (trt.activation)"


def test_a_part_of_the_pattern_takes_the_place_of_the_root() -> None:
    outcome = applied_to(RELUS, Rule(op(UnaryOp, x) | RELU, x))
    assert outcome.ops() == []
    assert outcome.remarks[0] == "applied: a (trt.activation): it is left out"


def test_expressions_nest_and_take_properties_over() -> None:
    text = f'%y = trt.activation clip %x {{alpha = 0.5, beta = 6.0}} : {UNARY} loc("clip")'
    inner = layer(ActivationOp, x, like="clip", beta=lambda m: m.captured("clip").beta.value.data + 1)
    outer = layer(UnaryOp, layer(UnaryOp, inner, kind="neg"), kind="neg")
    outcome = applied_to(text, Rule(op(ActivationOp, x, kind="clip", beta=6.0).named("clip"), outer))
    clip, *negations = outcome.ops()
    assert isinstance(clip, ActivationOp)
    assert (clip.alpha.value.data, clip.beta.value.data) == (0.5, 7.0)
    assert [(one.name, name_of(one)) for one in negations] == [("trt.unary", "clip")] * 2


def test_a_function_asks_for_what_its_parameters_name() -> None:
    seen: list[Any] = []

    def rewrite(m: Match, second: ActivationOp, x: SSAValue, ctx: object, self: RulePass) -> Outcome:
        seen.extend((m.root is second, m["first"].owner is m.captured("first"), ctx is m.ctx, self.name))
        return m.make(UnaryOp, x, kind="abs")

    outcome = applied_to(RELUS, Rule(TWO, rewrite, "ask"))
    assert seen[:4] == [True, True, True, "rules-under-test"]
    assert set(outcome.names()) == {"unary"}


def test_a_name_that_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(InvalidInputError, match="rule ask: its rewrite asks for 'y'; the pattern has first, second, x"):
        Rule(TWO, _asks_for_y, "ask")
    with pytest.raises(InvalidInputError, match="asks for 'z'"):
        Rule(TWO, layer(UnaryOp, value("z"), kind="abs"), "ask")
    with pytest.raises(InvalidInputError, match=r"^a rule: its root must be an op"):
        Rule(x, x)


@pytest.mark.parametrize(
    ("rewrite", "said"),
    [
        (layer(ActivationOp, x), "trt.activation needs the property 'kind'"),
        (layer(ActivationOp, x, kind="rely"), "'rely' is none of relu, "),
        (lambda: 3, "its rewrite gave 3, expected an op, a value or several"),
    ],
)
def test_rewrites_that_make_nothing(rewrite: Any, said: str) -> None:
    with pytest.raises(CompileError, match=r"rule of trt.activation relu at a: " + re.escape(said)):
        applied_to(RELUS, Rule(RELU, rewrite))


def test_a_rule_alone_is_no_tuple_of_rules() -> None:
    class AlonePass(RulePass):
        name = "alone"
        rules = Rule(RELU, x)  # pyright: ignore[reportAssignmentType]

    with pytest.raises(InvalidInputError, match="pass alone: rules: expected a tuple of rules"):
        rules_of(AlonePass)


def _asks_for_y(y: SSAValue) -> Outcome:
    return y


def test_a_rule_without_end_is_named_with_its_layer() -> None:
    there = rule(op(ActivationOp, x, kind="relu"))(_to("tanh"))
    back = rule(op(ActivationOp, x, kind="tanh"))(_to("relu"))
    with pytest.raises(CompileError, match=r"rule made goes on without end \(\d+ rewrites, the last at d\)"):
        applied_to(f'%y = trt.activation relu %x : {UNARY} loc("d")', there, back)


def _to(kind: str) -> Any:
    def made(m: Match, x: SSAValue) -> Outcome:
        return m.make(ActivationOp, x, kind=kind)

    return made


def test_an_op_that_is_changed_in_place_is_looked_at_again_at_once() -> None:
    seen: list[str] = []

    def count_down(m: Match, clip: ActivationOp) -> Outcome:
        seen.append(name_of(clip))
        assert clip.beta is not None
        left = clip.beta.value.data - 1
        if left < 0:
            return "it is 0"
        clip.properties["beta"] = FloatAttr(left, f64)
        m.note = f"{left:g} is left"
        return clip

    text = f"""
    %a = trt.activation clip %x {{alpha = 0.0, beta = 2.0}} : {UNARY} loc("a")
    %y = trt.activation clip %a {{alpha = 0.0, beta = 1.0}} : {UNARY} loc("b")
    """
    outcome = applied_to(text, Rule(op(ActivationOp, kind="clip").named("clip"), count_down))
    assert seen[:5] == ["a", "a", "a", "b", "b"]
    assert outcome.names() == ["activation", "activation"]
    assert outcome.remarks[0] == "applied: a (trt.activation): 1 is left"
    assert "declined: b (trt.activation): it is 0" in outcome.remarks


def test_the_outcome_may_take_the_place_of_an_op_behind_the_root() -> None:
    def join_with_readers(m: Match, first: ActivationOp) -> Outcome:
        (second,) = (use.operation for use in first.output.uses)
        if not isinstance(second, ActivationOp):
            return "nothing is behind it"
        (third,) = (use.operation for use in second.output.uses)
        m.replaces(third, second)
        return m.make(UnaryOp, first.input, kind="abs")

    text = f"""
    %a = trt.activation relu %x : {UNARY} loc("a")
    %b = trt.activation tanh %a : {UNARY} loc("b")
    %c = trt.activation tanh %b : {UNARY} loc("c")
    %y = trt.activation sigmoid %c : {UNARY} loc("d")
    """
    outcome = applied_to(text, Rule(op(ActivationOp, kind="relu").named("first"), join_with_readers))
    assert [(one.name, name_of(one)) for one in outcome.ops()] == [("trt.unary", "a"), ("trt.activation", "d")]
    assert outcome.remarks == ["applied: a (trt.unary)"]


@dataclass(frozen=True)
class OneSweepPass(RulePass):
    """Looks at each op once."""

    name = "one-sweep"
    again = False

    @rule(op(ActivationOp, x, kind="relu"))
    def flip(self, m: Match, x: SSAValue) -> Outcome:
        return m.make(ActivationOp, x, kind="relu")


def test_one_sweep_does_not_look_at_what_it_makes() -> None:
    ctx = new_context()
    body = f"%y = trt.activation relu %x : {UNARY}\nfunc.return %y : {T}"
    module, _ = load_text(ctx, f"func.func @main(%x: {T}) -> {T} {{\n{body}\n}}", InputFile("a.mlir"))
    before = [one for one in module.walk() if isinstance(one, ActivationOp)]
    OneSweepPass().apply(ctx, module)
    after = [one for one in module.walk() if isinstance(one, ActivationOp)]
    assert len(after) == 1
    assert after != before


def test_places_and_what_is_known_of_the_block() -> None:
    asked: list[int] = []
    places: list[int] = []

    def count(block: Block) -> int:
        asked.append(1)
        return len(list(block.ops))

    def note(m: Match, first: ActivationOp, second: ActivationOp) -> Outcome:
        assert m.analysis(count) == 5
        places.extend((m.place(first), m.place(second)))
        assert m.place(m.make(ActivationOp, first.input, kind="tanh")) == m.place(second)
        return "only looked at"

    applied_to(RELUS, Rule(TWO, note))
    assert len(asked) == 1
    assert places == [0, 1, 1, 2, 2, 3]


def test_many_rewrites_with_an_end_are_no_endless_rule() -> None:
    lines = [f"%v{n} = trt.activation relu %{f'v{n - 1}' if n else 'x'} : {UNARY}" for n in range(300)]
    outcome = applied_to(
        "\n".join(lines) + f"\n%y = trt.unary abs %v299 : {UNARY}", Rule(TWO, layer(ActivationOp, x, kind="relu"))
    )
    assert outcome.applied == 299
    assert outcome.names() == ["activation", "unary"]


def test_what_is_read_elsewhere_stays() -> None:
    text = f"""
    %a = trt.activation relu %x : {UNARY} loc("a")
    %b = trt.activation relu %a : {UNARY} loc("b")
    %y = trt.elementwise sum %a, %b : ({T}, {T}) -> {T} loc("sum")
    """
    declined = applied_to(text, Rule(TWO, layer(ActivationOp, x, kind="relu")))
    assert declined.names() == ["activation", "activation", "elementwise"]
    assert declined.remarks == ["declined: b (trt.activation): a has other readers"]
    first = op(ActivationOp, x, kind="relu").named("first").shared()
    shared = applied_to(text, Rule(op(ActivationOp, first, kind="relu"), layer(UnaryOp, x, kind="abs")))
    assert [name_of(one) for one in shared.ops()] == ["a", "b", "sum"]


def test_what_stands_for_the_root_may_be_a_matched_layer() -> None:
    first = op(ActivationOp, x, kind="relu").named("first")
    outcome = applied_to(RELUS, Rule(op(ActivationOp, first, kind="relu"), first))
    assert [name_of(one) for one in outcome.ops()] == ["a"]


def test_a_result_of_another_type_is_refused() -> None:
    text = f"""
    %c = trt.constant {{value = dense<0.0> : {T}}} : {T}
    %n = trt.constant {{value = dense<0.0> : tensor<1x1xf32>}} : tensor<1x1xf32>
    %y = trt.elementwise sum %x, %n : ({T}, tensor<1x1xf32>) -> {T} loc("sum")
    """
    outcome = applied_to(text, Rule(binary("sum", value(), constant("c")), constant("c")))
    assert outcome.remarks == [f"declined: sum (trt.elementwise): the new result would be tensor<1x1xf32>, not {T}"]


def test_a_rewrite_that_declines_leaves_nothing_behind() -> None:
    def rewrite(m: Match, x: SSAValue) -> Outcome:
        m.make(UnaryOp, x, kind="abs")
        return "{second} is fine as it is, {whatever} too"

    outcome = applied_to(RELUS, Rule(TWO, rewrite, "no"))
    assert outcome.names() == ["activation"] * 4
    assert outcome.remarks[-1] == "declined: d (trt.activation): d is fine as it is, whatever too"


def test_the_next_order_of_operands_is_tried_where_a_rewrite_declines() -> None:
    def rewrite(m: Match, c: SSAValue, d: SSAValue) -> Outcome:
        return c if m.number("d") == 0 else "it is not 0"

    text = f"""
    %c = trt.constant {{value = dense<0.0> : {T}}} : {T}
    %d = trt.constant {{value = dense<1.0> : {T}}} : {T}
    %y = trt.elementwise sum %c, %d : ({T}, {T}) -> {T}
    """
    outcome = applied_to(text, Rule(binary("sum", number().named("c"), number().named("d")), rewrite))
    assert outcome.applied == 1
    assert outcome.ops() == []


def test_rules_in_order() -> None:
    first, second = Rule(RELU, layer(UnaryOp, x, kind="abs")), Rule(RELU, layer(UnaryOp, x, kind="neg"))
    outcome = applied_to(RELUS, first, second)
    assert {one.kind.data for one in outcome.ops() if isinstance(one, UnaryOp)} == {"abs"}


def test_a_layer_may_be_changed_where_it_is() -> None:
    def rewrite(relu: ActivationOp) -> Outcome:
        relu.kind = ActivationKindAttr(ActivationKind.TANH)
        return relu

    outcome = applied_to(RELUS, Rule(RELU.named("relu"), rewrite))
    assert [name_of(one) for one in outcome.ops()] == ["a", "b", "c", "d"]
    assert outcome.applied == 4


def test_all_results_of_the_root() -> None:
    text = f"""
    func.func @main(%x: {T}) -> (tensor<2x1xf32>, tensor<2x1xi64>) {{
      %v, %i = trt.topk max %x {{axis = 1 : i64, k = 1 : i64}} : ({T}) -> (tensor<2x1xf32>, tensor<2x1xi64>) loc("top")
      func.return %v, %i : tensor<2x1xf32>, tensor<2x1xi64>
    }}"""

    def rewrite(m: Match, x: SSAValue, top: TopkOp) -> Outcome:
        return m.make(TopkOp, x, **{**top.properties, "kind": "min"})

    (left,) = applied_to(text, Rule(op(TopkOp, x, kind="max").named("top"), rewrite)).ops()
    assert isinstance(left, TopkOp)
    assert (left.kind.data, name_of(left)) == ("min", "top")
    assert [one.name_hint for one in left.results] == ["v", "i"]
    assert all(one.first_use is not None for one in left.results)


BRANCH = f"""
func.func @main(%x: {T}, %c: tensor<i1>) -> {T} {{
  %a = trt.activation relu %x : {UNARY} loc("outside")
  %k = tensor.extract %c[] : tensor<i1>
  %y = scf.if %k -> ({T}) {{
    %b = trt.activation relu %a : {UNARY} loc("inside")
    scf.yield %b : {T}
  }} else {{
    %d = trt.activation relu %x : {UNARY} loc("c")
    %e = trt.activation relu %d : {UNARY} loc("d")
    scf.yield %e : {T}
  }}
  func.return %y : {T}
}}
"""


def test_branches() -> None:
    outcome = applied_to(BRANCH, Rule(TWO, layer(ActivationOp, x, kind="relu")))
    assert outcome.remarks == [
        "declined: inside (trt.activation): outside is in another block",
        "applied: c + d (trt.activation)",
    ]


def test_the_ir_is_the_same_whether_somebody_listens_or_not() -> None:
    rules = [Rule(TWO, layer(ActivationOp, x, kind="relu"))]
    for text in (RELUS, BRANCH):
        heard, silent = applied_to(text, *rules), applied_to(text, *rules, listens=False)
        assert str(heard.module) == str(silent.module)


def test_nothing_is_searched_for_where_no_root_is(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Operation] = []

    class Counted(Search):
        def __init__(self, root: Operation, ctx: Context, **given: Any) -> None:
            made.append(root)
            super().__init__(root, ctx, **given)

    monkeypatch.setattr("mlirt.passes.rules.driver.Search", Counted)
    rules = [Rule(binary("sum", x, x), x), Rule(op(UnaryOp, x, kind="abs"), x)]
    applied_to(RELUS, *rules)
    assert made == []
    applied_to(RELUS, Rule(TWO, layer(ActivationOp, x, kind="relu")), listens=False)
    assert len(made) == 3, "one for each ReLU behind a ReLU"


@dataclass(frozen=True)
class ScaleByOptionPass(RulePass):
    """A pass with an option and two rules."""

    name = "scale-by-option"
    most: int = option(1, at_least=0)

    @rule(op(UnaryOp, x, kind="abs"))
    def drop(self, x: SSAValue) -> Outcome:
        return x if self.most > 1 else "most is too small"

    rules = (Rule(op(UnaryOp, x, kind="neg"), layer(ActivationOp, x, kind="tanh")),)


@pytest.mark.parametrize(("most", "left"), [(1, ["trt.unary", "trt.activation"]), (2, ["trt.activation"])])
def test_rules_of_a_class_see_its_options(most: int, left: list[str]) -> None:
    assert [one.name for one in rules_of(ScaleByOptionPass)] == ["drop", ""]

    class Derived(ScaleByOptionPass):
        pass

    assert rules_of(Derived) == rules_of(ScaleByOptionPass)
    text = f"%a = trt.unary abs %x : {UNARY}\n%y = trt.unary neg %a : {UNARY}"
    ctx = new_context()
    head = f"func.func @main(%x: {T}) -> {T} {{\n{text}\nfunc.return %y : {T}\n}}"
    module, _ = load_text(ctx, head, InputFile("a.mlir"))
    ScaleByOptionPass(most).apply(ctx, module)
    assert _layers(module) == left


def _layers(module: ModuleOp) -> list[str]:
    return [one.name for one in module.walk() if isinstance(one, ActivationOp | UnaryOp | ElementwiseOp)]
