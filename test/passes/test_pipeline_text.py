"""Pipelines as users write them."""

from __future__ import annotations

import pytest

from mlirt.errors import InvalidInputError
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
    ],
)
def test_options_are_checked_by_name(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_pipeline(text)


def test_unknown_option_names_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="has no option 'fase'; it has phase"):
        parse_pipeline("verify-legality{fase=fusion}")


def test_text_of_a_pipeline_reads_back() -> None:
    passes = parse_pipeline("verify-legality{phase=fusion},verify-dominance")
    assert parse_pipeline(pipeline_text(passes)) == passes
