"""`mlirt.BuildConfig`: settings are checked where they are said, compared, replaced, kept in files, and documented."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of, write_model

import mlirt
from mlirt.builder.api.network_build import build_config
from mlirt.builder.config.build_config import BuildConfig, default_of, settings
from mlirt.builder.config.keywords import Keywords
from mlirt.errors import InvalidInputError
from mlirt.passes.pipeline_edits import Pipeline
from mlirt.passes.remarks import Remarks
from mlirt.tensorrt.reporting import Reporter

FULL = BuildConfig(
    "cpu",
    "int8",
    [{"x": [(1, 3), (2, 3), (4, 3)]}, {"x": [(4, 3), (8, 3), (8, 3)]}],
    input_shapes={"y": ["n", 3], "z": None},
    constants={"axes": np.array([1, 2]), "half": np.array([[np.inf, 0.1]], np.float16), "none": np.zeros((0, 3))},
    calibration=Path("a.calib"),
    dynamic_ranges={"x": (-1.0, 2.0), "y": 3},
    layer_precisions={"*": "fp32"},
    obey_layer_precisions=True,
    workspace=1 << 20,
    pipeline=Pipeline.default().without("cse").after("cleanup", "dce"),
    plugins=[Path("a.py"), "b.py"],
    input_formats=["fp16:chw"],
    tactic_sources=["CUDNN"],
    shape_cache_mb=0.5,
)


def network() -> onnx.ModelProto:
    return model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", ["n", 3])}, ["y"])


def test_settings_are_kept_in_one_form() -> None:
    assert FULL.profiles == ({"x": ((1, 3), (2, 3), (4, 3))}, {"x": ((4, 3), (8, 3), (8, 3))})
    assert FULL.plugins == ("a.py", "b.py")
    assert FULL.calibration == "a.calib"
    shapes: dict[str, Any] = {"x": [1, 3]}
    kept = BuildConfig(input_shapes=shapes)
    shapes["x"] = [2, 3]
    assert kept.input_shapes == {"x": [1, 3]}
    with pytest.raises(AttributeError):
        kept.target = "cpu"  # pyright: ignore[reportAttributeAccessIssue]


def test_equality_and_replacement() -> None:
    assert BuildConfig() == BuildConfig()
    assert FULL.replace(constants={**FULL.constants}) == FULL
    assert FULL.replace(constants={**FULL.constants, "axes": np.array([1, 3])}) != FULL
    assert FULL.replace(constants={**FULL.constants, "axes": np.array([1, 2], np.int32)}) != FULL
    assert BuildConfig(threads=1).replace(threads=None) == BuildConfig()
    assert BuildConfig() != "cpu"
    assert repr(BuildConfig("cpu", threads=2)) == "BuildConfig(target='cpu', threads=2)"


def test_files(tmp_path: Path) -> None:
    assert BuildConfig.from_json(FULL.to_json()) == FULL
    FULL.save(tmp_path / "a.json")
    assert BuildConfig.load(tmp_path / "a.json") == FULL
    assert json.loads(BuildConfig("cpu").to_json()) == {"target": "cpu"}
    text = (
        'target = "cpu"\nprofiles = [{x = [[1, 3], [2, 3], [4, 3]]}]\npipeline = ["without=cse"]\n[state]\nh0 = "h1"\n'
    )
    (tmp_path / "a.toml").write_text(text)
    wanted = BuildConfig("cpu", profiles={"x": [(1, 3), (2, 3), (4, 3)]}, pipeline=Pipeline.default().without("cse"))
    assert BuildConfig.load(tmp_path / "a.toml") == wanted.replace(state={"h0": "h1"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "this is no JSON"),
        ("[1]", "expected settings of a build by name, got list"),
        ('{"tagret": "cpu"}', "there is no setting 'tagret' of a build; did you mean 'target'?"),
        ('{"progress": 1}', "progress: an object of the program, which no file can hold"),
        ('{"constants": {"x": {"dtype": "float33", "shape": [1], "values": [1]}}}', "constants: .*float33"),
        ('{"constants": {"x": {"dtype": "float32", "shape": [3], "values": [1]}}}', "constants: .*reshape"),
        ('{"threads": 0}', "threads: expected a whole number from 1 on, got 0"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=re.escape(str(path)) + ": " + message):
        BuildConfig.load(path)


def test_what_no_file_can_hold(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="remarks: a file cannot hold Remarks"):
        BuildConfig(remarks=Remarks()).to_json()
    with pytest.raises(InvalidInputError, match="calibration: a file cannot hold bytes"):
        BuildConfig("cpu", "int8", calibration=b"1").to_json()
    with pytest.raises(InvalidInputError, match=r"the configuration .* cannot be read: No such file"):
        BuildConfig.load(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target": "cudaa"}, "target 'cudaa' is not known; expected one of .*; did you mean 'cuda'"),
        ({"precision": "int9"}, "precision 'int9' is not known; expected one of .*; did you mean 'int8'"),
        ({"heuristik": True}, "there is no setting 'heuristik' of a build; did you mean 'heuristic'"),
        ({"heuristic": "yes"}, "heuristic: expected True or False, got 'yes'"),
        ({"streams": True}, "streams: expected a whole number from 1 on, got True"),
        ({"workspace": -1}, "workspace: expected a whole number from 0 on, got -1"),
        ({"avg_timing_iterations": 0}, "avg_timing_iterations: expected a whole number from 1 on"),
        ({"spin_ms": "5"}, "spin_ms: expected a number from 0 on, got '5'"),
        ({"shape_cache_mb": float("inf")}, "shape_cache_mb: expected a number from 0 on, got inf"),
        ({"outputs": "y"}, r"outputs: expected a list of names, such as \['y'\]"),
        ({"debug": ["y", 1]}, "debug: expected a list of names, but 1 is none"),
        ({"state": ["h0"]}, r"state: expected values by name, such as .*, got \['h0'\]"),
        ({"layer_precisions": {"a": "fp8"}}, "layer_precisions of 'a': a layer cannot be asked to compute in 'fp8'"),
        ({"tactic_sources": ["CUBLAS"]}, "tactic_sources: tactic source 'CUBLAS' is not used"),
        ({"output_formats": ["fp16"]}, "output_formats: 'fp16': expected TYPE:FORMAT"),
        ({"from_phase": "fussion"}, "from_phase: there is no phase 'fussion'"),
        ({"pipeline": ["wthout=cse"]}, "pipeline: the pipeline edit 'wthout=cse' cannot be read: .*; did you mean"),
        ({"profiles": {"x": [[2], [1], [3]]}}, "profile of input 'x': expected min <= opt <= max"),
        ({"profiles": {"x": 3}}, "profiles: "),
        ({"device": "h300"}, "device: there is no device 'h300'"),
        ({"device": 3}, "device: expected a name of a device, such as 'h100-pcie', or its file, got 3"),
        ({"weights": 3}, "weights: expected a path, got 3"),
        ({"plugins": 3}, "plugins: expected a list of paths, got 3"),
        ({"calibration": "a.calib"}, "calibration and ranges are for precision int8, but the precision is fp32"),
        ({"debug": ["y"], "state": {"h0": "h1"}}, "debug tensors are for networks without state"),
        ({"target": "reference", "state": {"h0": "h1"}}, "target reference keeps no state"),
        ({"target": "reference", "pipeline": ["without=cse"]}, "no pipeline can be changed"),
    ],
)
def test_settings_that_do_not_fit(given: dict[str, Any], message: str) -> None:
    """The same words, whichever way they are said."""
    with pytest.raises(InvalidInputError, match=message):
        BuildConfig().replace(**given)
    with pytest.raises(InvalidInputError, match=message):
        mlirt.compile(network(), **given)


def test_keywords_are_the_settings() -> None:
    """Checkers and editors know every setting by its name and type."""
    types = {one.name: str(one.type) for one in settings()}
    del types["precision"], types["profiles"]
    keywords = {name: getattr(hint, "__forward_arg__", hint) for name, hint in Keywords.__annotations__.items()}
    assert list(keywords) == list(types)
    assert all(keywords[name].removesuffix(" | None") == hint.removesuffix(" | None") for name, hint in types.items())


def test_every_setting_is_said_to_be_something_with_its_unit() -> None:
    from mlirt.tools.documentation.config_page import described_settings

    described = described_settings()
    assert list(described) == [one.name for one in settings()]
    assert all(len(text) > 10 and text.endswith(".") for text in described.values())


def test_defaults_fit_their_own_checks() -> None:
    assert BuildConfig().changes() == {}
    for one in settings():
        assert BuildConfig().replace(**{one.name: default_of(one)}) == BuildConfig()


def test_compile_takes_it_and_keywords_go_before_it() -> None:
    config = BuildConfig("reference", profiles={"x": [(1, 3), (2, 3), (8, 3)]})
    engine: Any = mlirt.compile(network(), config=config)
    assert (engine.target, engine.inputs[0].shape) == ("reference", ("n", 3))
    other: Any = mlirt.compile(network(), "cpu", config=config)
    assert other.target == "cpu"
    assert mlirt.compile(network(), config=config, input_shapes={"x": [2, 3]}, profiles=()).inputs[0].shape == (2, 3)
    with pytest.raises(InvalidInputError, match="the target is given twice: 'cpu' and 'cuda'"):
        mlirt.compile(network(), "cpu", target="cuda")


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlirt.tools.documentation.config_page import config_page

    monkeypatch.chdir(tmp_path)
    example = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "small_network.py"))
    Path("small.onnx").write_bytes(example["small_network"]().SerializeToString())
    code = config_page().split("```python\n")[1].split("```")[0]
    exec(compile(f"import mlirt\n{code}", "build-config.md", "exec"))
    assert BuildConfig.load("small.json").precision == "int8"


def test_how_engines_run_is_in_it_too() -> None:
    engine: Any = mlirt.compile(network(), config=BuildConfig("cpu", threads=1, streams=1, shape_cache_mb=0))
    assert engine.target == "cpu"
    with pytest.raises(InvalidInputError, match="threads"):
        mlirt.compile(network(), config=BuildConfig("cpu"), threads=0)


def test_calibration_runs_where_it_says(tmp_path: Path) -> None:
    write_model(network(), tmp_path / "a.onnx")
    config = BuildConfig("cpu", input_shapes={"x": [2, 3]})
    data = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    found = mlirt.calibrate(tmp_path / "a.onnx", data, "minmax", progress=False, config=config)
    again = mlirt.calibrate(
        tmp_path / "a.onnx", data, "minmax", target="cpu", input_shapes={"x": [2, 3]}, progress=False
    )
    assert found.scales == again.scales
    with pytest.raises(InvalidInputError, match="it has 4 samples, a batch of the network takes 8"):
        mlirt.calibrate(tmp_path / "a.onnx", data, "minmax", progress=False, config=config, input_shapes={"x": [8, 3]})


def test_the_device_goes_before_what_is_here() -> None:
    assert BuildConfig(device="h100-pcie").chosen_target() == "cuda"
    assert BuildConfig(device="cpu-avx2").chosen_target() == "cpu"
    with pytest.raises(InvalidInputError, match="the device h100-pcie is for target cuda, not cpu"):
        mlirt.compile(network(), config=BuildConfig("cpu", device="h100-pcie"))
    engine: Any = mlirt.compile(network(), config=BuildConfig(device="cpu-128", input_shapes={"x": [2, 3]}))
    assert engine.plan.manifest.target.device == "cpu-128: vectors of 128 bits"
    assert BuildConfig.from_json(BuildConfig(device="h200+processors=148").to_json()).device == "h200+processors=148"


def test_a_selector_is_asked_on_a_cpu() -> None:
    class Nothing:
        def select_algorithms(self, context: Any, choices: Any) -> list[int]:
            return []

        def report_algorithms(self, contexts: Any, choices: Any) -> None:
            pass

    config = BuildConfig("cpu", algorithm_selector=Nothing(), reject_empty_algorithms=True)
    product = model_of(
        [helper.make_node("MatMul", ["x", "y"], ["z"])], {"x": ("float32", [8, 8]), "y": ("float32", [8, 8])}, ["z"]
    )
    with pytest.raises(InvalidInputError, match="the algorithm selector allows none"):
        mlirt.compile(product, config=config)


def test_tensorrts_configuration_becomes_one() -> None:
    import mlirt.tensorrt as trt

    logger = trt.Logger()
    builder = trt.Builder(logger)
    network = builder.create_network(1)
    config = builder.create_builder_config()
    reporter = Reporter(logger)
    usual = build_config(network, config, "cpu", reporter).replace(progress=None)
    assert usual == BuildConfig("cpu")
    assert build_config(network, config, "cuda", reporter).precision == "tf32"
    for flag in (trt.BuilderFlag.FP16, trt.BuilderFlag.REFIT, trt.BuilderFlag.ENABLE_TACTIC_HEURISTIC):
        config.set_flag(flag)
    config.set_flag(trt.BuilderFlag.REJECT_EMPTY_ALGORITHMS)
    config.avg_timing_iterations, config.min_timing_iterations = 3, 4
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 20)
    config.set_tactic_sources(1 << int(trt.TacticSource.CUBLAS_LT))
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 3), (2, 3), (4, 3))
    config.add_optimization_profile(profile)
    assert build_config(network, config, "cuda", reporter).replace(progress=None) == BuildConfig(
        "cuda",
        "fp16",
        {"x": [(1, 3), (2, 3), (4, 3)]},
        refittable=True,
        heuristic=True,
        reject_empty_algorithms=True,
        avg_timing_iterations=3,
        min_timing_iterations=4,
        workspace=1 << 20,
        tactic_sources=["CUBLAS_LT"],
    )


def test_strict_types_refuse_a_selector_that_allows_nothing() -> None:
    """tensorrt-features.md#3.5."""
    import mlirt.tensorrt as trt

    logger = trt.Logger()
    builder = trt.Builder(logger)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.STRICT_TYPES)
    assert build_config(builder.create_network(1), config, "cpu", Reporter(logger)).reject_empty_algorithms
