"""Libraries that a build may use: their names, TensorRT's mask, trtexec's flag, and what a build without them does."""

from __future__ import annotations

import pytest

from mlirt.builder.tactics.tactic_sources import features_of_sources, sources_of_flag, sources_of_mask
from mlirt.builder.tactics.tuning import tuning
from mlirt.errors import InvalidInputError
from mlirt.tensorrt.build_enums import TacticSource


def test_names_become_features_of_the_target() -> None:
    assert features_of_sources(["CUBLAS_LT"]) == {"cublas_lt"}
    assert features_of_sources(["CUDNN", "CUBLAS_LT"]) == {"cublas_lt", "cudnn"}
    assert features_of_sources([]) == frozenset()


def test_an_unknown_source_is_named() -> None:
    with pytest.raises(InvalidInputError, match="'CUBLAS' is not used: expected some of CUBLAS_LT, CUDNN"):
        features_of_sources(["CUBLAS_LT", "CUBLAS"])


def test_a_mask_names_those_that_are_used() -> None:
    assert sources_of_mask(0) == ()
    assert sources_of_mask(1 << TacticSource.CUBLAS | 1 << TacticSource.JIT_CONVOLUTIONS) == ()
    assert sources_of_mask(1 << TacticSource.CUBLAS_LT | 1 << TacticSource.CUDNN) == ("CUBLAS_LT", "CUDNN")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("+CUBLAS_LT", ("CUBLAS_LT",)),
        ("-CUDNN,+CUBLAS_LT", ("CUBLAS_LT",)),
        ("-CUBLAS_LT", ()),
        ("+CUBLAS_LT,-CUBLAS_LT", ()),
        ("+CUBLAS,+JIT_CONVOLUTIONS", ("CUBLAS", "JIT_CONVOLUTIONS")),
    ],
)
def test_the_flag_of_trtexec(text: str, names: tuple[str, ...]) -> None:
    assert sources_of_flag(text) == names


@pytest.mark.parametrize("text", ["CUBLAS_LT", "+NOTHING", "+CUBLAS_LT,"])
def test_a_flag_that_names_none_of_them_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="CUBLAS_LT"):
        sources_of_flag(text)


def test_a_build_knows_its_sources_and_has_none_by_itself() -> None:
    with tuning(heuristic=True) as choice:
        assert choice.sources == frozenset()
    with tuning(heuristic=True, sources=["CUBLAS_LT"]) as choice:
        assert choice.sources == {"cublas_lt"}
