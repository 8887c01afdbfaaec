"""The compiler's pipeline with passes put in, replaced and left out."""

from __future__ import annotations

import pytest

from mlirt.errors import InvalidInputError
from mlirt.passes.phases import phase_names, pipeline_for
from mlirt.passes.pipeline_edits import Edit, Pipeline

TARGET_PRECISIONS = [("cpu", "fp32"), ("cuda", "fp32"), ("cuda", "fp16"), ("cpu", "int8")]


def names(pipeline: Pipeline, phase: str, target: str = "cpu") -> list[str]:
    ((_, specs),) = [one for one in pipeline.phases(target) if one[0].name == phase]
    return [spec.partition("{")[0] for spec in specs]


@pytest.mark.parametrize(("target", "precision"), TARGET_PRECISIONS)
def test_the_default_is_the_compilers_own(target: str, precision: str) -> None:
    assert tuple(Pipeline.default().phases(target, precision)) == pipeline_for(target, precision)
    own = pipeline_for(target, precision, "layout", "memory")
    assert tuple(Pipeline.default().between("layout", "memory", target, precision)) == own


def test_after_and_before() -> None:
    changed = names(Pipeline.default().after("sink-views", "dce,cse").before("sink-views", "canonicalize"), "fusion")
    at = changed.index("sink-views")
    assert changed[at - 1 : at + 3] == ["canonicalize", "sink-views", "dce", "cse"]


def test_options_are_kept() -> None:
    changed = Pipeline.default().after("sink-views", "fuse-pointwise{max-ops=8}")
    ((_, specs),) = changed.between("fusion", "fusion", "cpu")
    assert "fuse-pointwise{max-ops=8}" in specs or "fuse-pointwise{max_ops=8}" in specs


def test_edits_are_made_in_order() -> None:
    both = Pipeline.default().after("sink-views", "dce").replace("dce#4", "cse")
    assert names(both, "fusion").count("dce") == 0
    assert names(both, "fusion").count("cse") == names(Pipeline(), "fusion").count("cse") + 1


def test_every_run_is_replaced_or_left_out() -> None:
    assert "dce" in names(Pipeline(), "cleanup")
    assert "dce" not in str(Pipeline.default().without("dce"))
    assert names(Pipeline.default().without("cleanup/dce"), "quantization")[-2] == "dce"
    assert "dce" not in names(Pipeline.default().without("cleanup/dce"), "cleanup")


def test_one_run_by_its_number() -> None:
    before = names(Pipeline(), "cleanup")
    after = names(Pipeline.default().without("canonicalize#2"), "cleanup")
    assert after.count("canonicalize") == before.count("canonicalize") - 1
    assert after.index("canonicalize") == before.index("canonicalize")


def test_the_ends_of_a_phase() -> None:
    ends = Pipeline.default().after("fusion", "dce").before("fusion", "cse").after("import", "cse")
    assert names(ends, "fusion")[0] == "cse"
    assert names(ends, "fusion")[-2:] == ["dce", "verify-legality"]
    assert names(ends, "import") == ["cse", "verify-legality"]


def test_text() -> None:
    lines = str(Pipeline.default().after("sink-views", "dce")).splitlines()
    assert [line.partition(":")[0] for line in lines] == list(phase_names())
    assert "sink-views,dce,fold-joined-slices" in lines[3]
    assert "fuse-row-reductions" in Pipeline.default().text("cuda")


@pytest.mark.parametrize(
    "text",
    ["after=sink-views:dce", "before=cleanup/cse:cse,dce", "replace=dce#2:canonicalize{max-sweeps=2}", "without=cse"],
)
def test_edits_are_read_as_they_are_written(text: str) -> None:
    assert str(Edit.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("after", "cannot be read: expected after=PLACE:PASSES"),
        ("afer=cse:dce", "did you mean after?"),
        ("after=cse", "cannot be read"),
        ("without=cse:dce", "cannot be read"),
        ("after=sink-views:", "names no pass"),
        ("after=sink-views:dce,", "a name is missing"),
        ("after=sink-view:dce", "did you mean sink-views?"),
        ("after=sink-views:dec", "did you mean dce"),
        ("after=sink-views:fuse-pointwise{max-ops=0}", "option max-ops is 0, expected at least 1"),
        ("after=sink-views:fuse-pointwise{max-op=1}", "has no option 'max-op'"),
        ("after=cse:dce", "runs 4 times (in cleanup, quantization, quantization, fusion); say which, such as cse#1"),
        ("after=cse#9:dce", "runs cse 4 times"),
        ("after=cleanups/cse:dce", "there is no phase 'cleanups'"),
        ("after=layout/cse:dce", "cse does not run in phase layout, but in phase fusion"),
        ("after=fuse-row-reductions:dce", "does not run in the pipeline for cpu, but on cuda"),
        ("without=fusion", "fusion is a phase"),
        ("after=verify-legality:dce", "verify-legality checks the border of each phase, which no edit changes"),
        ("after=a b:dce", "is no place"),
        ("after=cse#0:dce", "'cse#0' is no place: expected PASS, PASS#1 for its first run"),
    ],
)
def test_edits_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as found:
        Pipeline.parse([text]).check("cpu")
    assert message in str(found.value)
    assert "\n" not in str(found.value)


def test_a_change_to_a_phase_that_does_not_run() -> None:
    pipeline = Pipeline.default().after("sink-views", "dce")
    pipeline.check("cpu", first="cleanup", last="fusion")
    with pytest.raises(InvalidInputError, match="phase fusion does not run here"):
        pipeline.check("cpu", last="cleanup")
