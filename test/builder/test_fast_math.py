"""Rights of fast math: how they are given, what they change in an engine, and where they are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from onnx_models import model_of

import mlirt
from mlirt.builder.build_keys import model_key
from mlirt.builder.config.build_config import BuildConfig
from mlirt.dialects.fast_math import DEFAULT, RIGHTS, read_rights
from mlirt.passes.phases import TargetMachine, find_phase, specs_of
from mlirt.tools.rt_exec import main as rt_exec


def _model() -> Any:
    from onnx import helper

    nodes = [
        helper.make_node("Mul", ["x", "s"], ["a"]),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("Sub", ["b", "b"], ["c"]),
        helper.make_node("Add", ["c", "b"], ["y"]),
    ]
    weights = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    constants = {"s": np.full((1, 8), 3.0, np.float32), "w": weights}
    return model_of(nodes, {"x": ("float32", (4, 8))}, ["y"], constants)


def test_words_stand_for_rights() -> None:
    assert read_rights("default") == DEFAULT == BuildConfig().fast_math
    assert read_rights("none") == BuildConfig(fast_math="none").fast_math == ()
    assert read_rights(["all"]) == tuple(sorted(RIGHTS))
    assert BuildConfig(fast_math="finite, default").fast_math == ("accurate", "finite", "reassociate")


@pytest.mark.parametrize("given", ["reasociate", ["finite", "quick"], 3, [1]])
def test_what_is_no_right_is_refused(given: Any) -> None:
    with pytest.raises(mlirt.InvalidInputError, match=r"fast_math: .*expected") as error:
        BuildConfig(fast_math=given)
    assert "\n" not in str(error.value)


def test_the_flag_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(_model().SerializeToString())
    assert rt_exec([f"--onnx={path}", "--target=cpu", "--buildOnly", "--fastMath=finit"]) == 1
    assert "--fastMath: there is no fast math 'finit'" in capsys.readouterr().err


def test_passes_need_rights() -> None:
    def names(rights: str) -> list[str]:
        machine = TargetMachine(fast_math=read_rights(rights))
        return [one.partition("{")[0] for one in specs_of(find_phase("cleanup"), "cuda", machine=machine)]

    moved = {"fold-scale-into-convolution", "fold-pooling-into-convolution", "move-sums-before-products"}
    assert moved <= set(names("default"))
    assert not moved & set(names("none"))
    assert "simplify-algebra" in names("none")


def test_keys_and_plans_hold_rights() -> None:
    model = _model()
    configs = [BuildConfig(target="cpu", fast_math=rights) for rights in ("default", "none", "finite")]
    assert len({model_key(model, "cpu", one) for one in configs}) == 3
    infos = [cast("Any", mlirt.compile(model, config=one)).plan.manifest.info for one in configs]
    assert [info.get("fast_math") for info in infos] == [None, [], ["finite"]]


@pytest.mark.parametrize(("rights", "is_nan"), [("none", True), ("default", True), ("all", False)])
def test_engines_compute_what_was_granted(rights: str, is_nan: bool) -> None:
    engine = mlirt.compile(_model(), "cpu", fast_math=rights)
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    weights = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    np.testing.assert_allclose(engine.run({"x": x})["y"], 3 * x @ weights, 1e-4, 1e-5)
    x[0, 0] = np.inf
    assert bool(np.isnan(engine.run({"x": x})["y"][0]).all()) == is_nan


def test_a_refitted_plan_keeps_them() -> None:
    engine = cast("Any", mlirt.compile(_model(), "cpu", fast_math="none", refittable=True))
    assert engine.plan.manifest.info["build"]["fast_math"] == []
    assert isinstance(engine.plan.manifest.info["fast_math"], list)
