"""Convolutions by cuDNN on a GPU: right results inside the captured graph, the same bits in every run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from convolution_chain import chain
from one_tactic import Onlooker, Only
from repeated_runs import differing_runs

import mlirt
from mlirt.errors import MlirtError
from mlirt.runtime.cudnn import open_cudnn

pytestmark = pytest.mark.gpu

IMAGE, CHANNELS = (2, 64, 56, 54), (128, 128, 64)  # large enough for channels to lie innermost in half precision
TOLERANCES = {"fp16": 3e-3, "tf32": 3e-3, "fp32": 1e-5}


@pytest.mark.parametrize("settings", [{}, {"group": 4}, {"strides": [2, 1], "dilations": [1, 1]}])
@pytest.mark.parametrize("proposal", ["first", "second"])
@pytest.mark.parametrize("precision", TOLERANCES)
def test_a_chain_of_convolutions(precision: str, proposal: str, settings: dict[str, Any]) -> None:
    model, selector = chain(IMAGE, CHANNELS, settings), Only(f"cuda_cudnn:{proposal}")
    ways: dict[str, Any] = {"algorithm_selector": selector, "tactic_sources": ["CUDNN"], "heuristic": True}
    engine = mlirt.compile(model, "cuda", precision, **ways)
    assert selector.name in selector.taken
    x = np.random.default_rng(1).standard_normal(IMAGE, np.float32)
    (want,) = mlirt.compile(model, "reference").run({"x": x}).values()
    (found,) = engine.run({"x": x}).values()
    np.testing.assert_allclose(found, want, atol=TOLERANCES[precision] * float(np.abs(want).max()))
    assert differing_runs(engine, {"x": x}, 20) == []


def test_the_library_is_measured_beside_our_kernels() -> None:
    selector, model = Onlooker(), chain((8, 128, 28, 28), [128, 128], {})
    settings: dict[str, Any] = {"tactic_sources": ["CUDNN"], "min_timing_iterations": 3}
    mlirt.compile(model, "cuda", "fp16", algorithm_selector=selector, **settings)
    assert "cuda_cudnn" in selector.offered
    assert len(selector.offered) > 1


def test_what_the_library_does_not_have_is_an_error() -> None:
    from mlirt.runtime.library_calls import LibraryConvolution

    ones = (1, 1)
    what = LibraryConvolution("cudnn", ("float16",) * 3, "none", False, 60, 0, ones, ones, ones, True, 1)
    with pytest.raises(MlirtError, match=r"cuDNN \d+ has no way number 61"):
        open_cudnn().prepare(what, [256, 512, 1024, 0], [1, 8, 6, 6, 8, 3, 3, 6, 6])
