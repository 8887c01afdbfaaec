"""Profiles of `mlirt.compile` and rt-exec are kept in the plan, and runs stay within them (tensorrt-features.md#30.2).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, parser
from onnx_models import model_of, write_model

import mlirt
from mlirt.builder.profiles import Profiles
from mlirt.errors import InvalidInputError
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.profile_ranges import ShapeRange
from mlirt.tools import rt_exec

TWO_TO_FOUR = {"x": [(2, 3), (2, 3), (4, 3)]}
APART = [{"x": [(1, 3), (1, 3), (2, 3)]}, {"x": [(5, 3), (6, 3), (7, 3)]}]
SUM = """
<ir_version: 8, opset_import: ["" : 17]>
total (float[n, 3] x, float[m, 3] y) => (float[k, 3] z) { z = Concat <axis = 0> (x, y) }
"""


def relu() -> onnx.ModelProto:
    return model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", ["n", 3])}, ["y"])


def engine_of(profiles: Profiles | None, target: str = "cpu") -> Engine:
    engine = mlirt.compile(relu(), target, profiles=profiles)
    assert isinstance(engine, Engine)
    return engine


def rows(count: int) -> dict[str, Any]:
    return {"x": np.linspace(-1, 1, 3 * count, dtype=np.float32).reshape(count, 3)}


@pytest.mark.parametrize("saved", [False, True])
def test_runs_stay_within_a_profile(tmp_path: Path, saved: bool) -> None:
    engine = engine_of(TWO_TO_FOUR)
    if saved:
        engine.save(tmp_path / "a.plan")
        engine = load(tmp_path / "a.plan")
    assert engine.profiles == ({"x": ShapeRange((2, 3), (2, 3), (4, 3))},)
    for count in (2, 4):
        np.testing.assert_array_equal(engine.run(rows(count))["y"], np.maximum(rows(count)["x"], 0))
    for count in (1, 5, 9):
        with pytest.raises(InvalidInputError, match=f"axis 0 of input 'x' is {count}, profile 0 allows 2 to 4"):
            engine.run(rows(count))
    assert engine.run(rows(3))["y"].shape == (3, 3)


def test_several_profiles() -> None:
    engine = engine_of(APART)
    for count in (1, 2, 5, 7):
        assert engine.run(rows(count))["y"].shape == (count, 3)
    for count in (0, 3, 4, 8):
        with pytest.raises(InvalidInputError, match=r"profile 0 allows 1 to 2; .*profile 1 allows 5 to 7"):
            engine.run(rows(count))


def test_one_profile_covers_all_inputs() -> None:
    """The shapes of a run are not gathered from several profiles."""
    profiles = [{"x": [(a, 3)] * 3, "y": [(b, 3)] * 3} for a, b in ((1, 2), (3, 4))]
    engine = mlirt.compile(parser.parse_model(SUM), "cpu", profiles=profiles)
    one = {count: np.ones((count, 3), np.float32) for count in range(1, 5)}
    assert engine.run({"x": one[3], "y": one[4]})["z"].shape == (7, 3)
    with pytest.raises(InvalidInputError, match="axis 0 of input 'y' is 4, profile 0 allows 2 to 2"):
        engine.run({"x": one[1], "y": one[4]})


def test_the_interpreter_keeps_to_them_too() -> None:
    engine = mlirt.compile(relu(), "reference", profiles=TWO_TO_FOUR)
    assert engine.run(rows(4))["y"].shape == (4, 3)
    with pytest.raises(InvalidInputError, match="axis 0 of input 'x' is 5, profile 0 allows 2 to 4"):
        engine.run(rows(5))


def test_without_a_profile_all_shapes_are_right() -> None:
    engine = engine_of(None)
    assert engine.profiles == ()
    assert engine.run(rows(9))["y"].shape == (9, 3)


def test_plans_for_a_gpu_have_them() -> None:
    plan = engine_of(APART, "cuda").plan
    assert [dict(one)["x"].optimum for one in plan.manifest.profiles] == [(1, 3), (6, 3)]


def test_refitted_engines_keep_them() -> None:
    product = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ("float32", ["n", 3])}, ["y"])
    product.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((3, 2), np.float32), "w"))
    engine = mlirt.compile(product, "cpu", profiles=TWO_TO_FOUR, refittable=True)
    assert isinstance(engine, Engine)
    other = mlirt.refit(engine, {"w": np.zeros((3, 2), np.float32)})
    assert other.profiles == engine.profiles
    with pytest.raises(InvalidInputError, match="profile 0 allows 2 to 4"):
        other.run(rows(5))


def test_engines_by_tensorrt_names_see_them() -> None:
    engine = mlirt.Runtime(mlirt.Logger()).deserialize_cuda_engine(mlirt_plan(APART))
    assert engine is not None
    assert engine.num_optimization_profiles == 2
    assert engine.get_tensor_profile_shape("x", 1) == [(5, 3), (6, 3), (7, 3)]
    context = engine.create_execution_context()
    assert not context.set_input_shape("x", (5, 3))
    assert context.set_optimization_profile_async(1, 0)
    assert context.set_input_shape("x", (5, 3))
    told = json.loads(engine.create_engine_inspector().get_engine_information(mlirt.LayerInformationFormat.JSON))
    assert told["Profiles"][1] == {"x": {"min": [5, 3], "opt": [6, 3], "max": [7, 3]}}


def mlirt_plan(profiles: Profiles) -> bytes:
    from mlirt.runtime.plan_file import plan_bytes

    plan = engine_of(profiles).plan
    return plan_bytes(plan.manifest_json, plan.sections, plan.weights)


@pytest.mark.parametrize(
    ("profiles", "why"),
    [
        ([TWO_TO_FOUR, {"x": [(1,), (1,), (1,)]}], "their shapes have 2 and 1 dimensions"),
        ([3], "by input name, got int"),
        ("x", "by input name, got str"),
        ([{"z": [(1,), (1,), (1,)]}], r"there is a profile for 'z', but the inputs of the network are \['x'\]"),
    ],
)
def test_what_is_no_profile(profiles: Any, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        engine_of(profiles)


def test_flags_of_trtexec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--minShapes, --optShapes and --maxShapes hold for the run and for the plan; the opt is what is run by itself."""
    model, plan = tmp_path / "r.onnx", tmp_path / "r.plan"
    write_model(relu(), model)
    spec = ["--minShapes=x:2x3", "--optShapes=x:3x3", "--maxShapes=x:4x3", "--target=cpu", "--warmUp=0", "--duration=0"]
    assert rt_exec.main([f"--onnx={model}", *spec, "--shapes=x:9x3"]) == 1
    assert "axis 0 of input 'x' is 9, profile 0 allows 2 to 4" in capsys.readouterr().err
    told = tmp_path / "layers.json"
    assert rt_exec.main([f"--onnx={model}", *spec, f"--saveEngine={plan}", f"--exportLayerInfo={told}"]) == 0
    assert json.loads(told.read_text())["Profiles"] == [{"x": {"min": [2, 3], "opt": [3, 3], "max": [4, 3]}}]
    out = tmp_path / "y.json"
    assert rt_exec.main([f"--loadEngine={plan}", "--warmUp=0", "--duration=0", f"--exportOutput={out}"]) == 0
    assert json.loads(out.read_text())[0]["dimensions"] == "3x3"
    capsys.readouterr()
    assert rt_exec.main([f"--loadEngine={plan}", "--shapes=x:1x3"]) == 1
    assert "axis 0 of input 'x' is 1, profile 0 allows 2 to 4" in capsys.readouterr().err
