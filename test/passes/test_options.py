"""Options of passes: what is legal, and what help says of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.errors import InvalidInputError
from mlirt.passes import registry
from mlirt.passes.options import option, option_infos, refusal
from mlirt.passes.pipeline_text import parse_pipeline


@dataclass(frozen=True)
class SamplePass(ModulePass):
    name = "sample"

    needed: int
    few: int = option(3, at_least=1, at_most=5)
    kind: str = option("a", one_of=("a", "b"))
    some: tuple[int, ...] = option((1, 2), at_least=0)
    text: str = ""
    share: float | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


def test_what_help_says() -> None:
    assert list(map(str, option_infos(SamplePass))) == [
        "needed: int",
        "few: int = 3 (1 to 5)",
        "kind: str = a (one of a, b)",
        "some: int,.. = 1,2 (at least 0)",
        'text: str = ""',
        "share: float = None",
    ]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("few", 0, "option few is 0, expected 1 to 5"),
        ("few", 6, "option few is 6, expected 1 to 5"),
        ("few", 5, None),
        ("kind", "c", "option kind is c, expected one of a, b"),
        ("kind", "b", None),
        ("some", (1, -2), "option some is -2, expected at least 0"),
        ("some", (), None),
        ("needed", -7, None),
    ],
)
def test_values(name: str, value: object, said: str | None) -> None:
    assert refusal(SamplePass, name, value) == said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fuse-pointwise{max-ops=-3}", "pass fuse-pointwise: option max-ops is -3, expected at least 1"),
        ("assign-layouts{target=gpu}", "option target is gpu, expected one of cpu, cuda"),
        ("verify-legality", "pass verify-legality needs the option phase: verify-legality{phase=..}"),
        ("canonicalize,", "a name is missing in the pipeline 'canonicalize,'"),
        (",canonicalize", "a name is missing"),
        ("canonicalize,,cse", "a name is missing"),
        ("canonicalize, ", "a name is missing"),
    ],
)
def test_pipelines_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as found:
        parse_pipeline(text)
    assert message in str(found.value)


def test_every_count_of_a_pass_has_a_least_value() -> None:
    """A negative limit would be obeyed in silence."""
    open_ended = [
        f"{registry.name_of(path)}.{info.name}"
        for path in registry.pass_paths()
        for info in option_infos(registry.load(registry.name_of(path)))
        if info.type == "int" and not info.values
    ]
    assert open_ended == []


def test_help_quotes_no_types() -> None:
    passes = [registry.load(registry.name_of(path)) for path in registry.pass_paths()]
    lines = [str(info) for one in passes for info in option_infos(one)]
    assert lines
    assert not [line for line in lines if "'" in line]
