"""Pipelines as users write them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.errors import InvalidInputError
from mlirt.passes import registry
from mlirt.passes.options import option
from mlirt.passes.pipeline_text import parse_pipeline, parse_specs, pipeline_text


def _parameters(text: str) -> dict[str, tuple[str | int | float | bool, ...]]:
    (spec,) = parse_specs(text)
    return spec.parameters


def test_names_and_order() -> None:
    assert [spec.name for spec in parse_specs("cse, dce ,canonicalize")] == ["cse", "dce", "canonicalize"]
    assert not list(parse_specs(""))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-2", -2), ("1.5", 1.5), ("1e-3", 1e-3), (".5", 0.5), ("true", True), ("cpu", "cpu"), ('"a b"', "a b")],
)
def test_values(text: str, value: object) -> None:
    assert _parameters(f"p{{x={text}}}") == {"x": (value,)}


def test_several_options_and_lists() -> None:
    assert _parameters("p{max-ops=8 tile=16,32 flag name=a}") == {
        "max_ops": (8,),
        "tile": (16, 32),
        "flag": (),
        "name": ("a",),
    }


@pytest.mark.parametrize("text", ["cse{", "cse}", "cse dce", "cse{=1}", "cse{a=}", "{a=1}"])
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_pipeline(text)


def test_unknown_pass_names_its_neighbours() -> None:
    with pytest.raises(InvalidInputError, match=r"no pass 'verify-dominanse'; did you mean verify-dominance"):
        parse_pipeline("verify-dominanse")


def test_a_pass_is_not_called_as_its_file() -> None:
    with pytest.raises(InvalidInputError, match=r"no pass 'fuse_pointwise'; did you mean fuse-pointwise,"):
        parse_pipeline("fuse_pointwise")


def test_each_neighbour_is_named_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_pipeline("canonicalise")
    assert str(caught.value).count("canonicalize,") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fuse-pointwise{max-ops=x}", "option max-ops is x, expected a whole number"),
        ("fuse-pointwise{max-ops}", "option max-ops is nothing, expected a whole number"),
        ("fuse-pointwise{max-opps=1}", "no option 'max-opps'; it has max-operands, max-ops"),
        ("verify-legality{phase=1}", "option phase is 1, expected a word"),
        ("fuse-pointwise{max-ops=true}", "option max-ops is true, expected a whole number"),
        ("fuse-pointwise{max-ops=8 max-ops=9}", "option max-ops is given twice"),
    ],
)
def test_options_are_checked_by_name(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_pipeline(text)


@dataclass(frozen=True)
class ScaledPass(ModulePass):
    """Options of several types."""

    name = "scaled"
    scale: float = option(0.5, at_least=0.0, at_most=4.0)
    rows: int | None = None
    kinds: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Nothing is done."""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("scaled{scale=2}", ScaledPass(scale=2.0)),
        ("scaled{rows=3}", ScaledPass(rows=3)),
        ("scaled{kinds=a,b}", ScaledPass(kinds=("a", "b"))),
        ("scaled{scale=nan}", "option scale is nan, expected 0.0 to 4.0"),
        ("scaled{scale=5}", "option scale is 5.0, expected 0.0 to 4.0"),
        ("scaled{rows=none}", "option rows is none, expected a whole number"),
        ("scaled{kinds=a,2}", "option kinds is a,2, expected a word, or several"),
        ("scaled{scale=1,2}", "option scale is 1,2, expected a number"),
    ],
)
def test_values_by_the_types_of_options(text: str, wanted: ScaledPass | str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load", {"scaled": ScaledPass}.__getitem__)
    if isinstance(wanted, ScaledPass):
        assert parse_pipeline(text) == (wanted,)
        assert str(parse_pipeline(text)) == str((wanted,))
    else:
        with pytest.raises(InvalidInputError, match=re.escape(wanted)):
            parse_pipeline(text)


def test_unknown_option_names_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="has no option 'fase'; it has phase"):
        parse_pipeline("verify-legality{fase=fusion}")


def test_text_of_a_pipeline_reads_back() -> None:
    passes = parse_pipeline("verify-legality{phase=fusion},verify-dominance")
    assert parse_pipeline(pipeline_text(passes)) == passes
