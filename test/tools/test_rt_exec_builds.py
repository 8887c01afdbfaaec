"""rt-exec: flags that are for building, and what the builder is asked for (tensorrt-features.md#16.5, 30.2)."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of, numbers, write_model
from rt_exec_runs import QUICK, failure, run, tiny_plan_file

from mlirt.builder.config.build_config import BuildConfig
from mlirt.errors import CompileError
from mlirt.frontend.onnx.sparse_weights import two_of_four
from mlirt.runtime.engine import load


@pytest.fixture
def plan(tmp_path: Path) -> str:
    return tiny_plan_file(tmp_path)


Builder = Callable[..., Any]


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Callable[[Builder], None]:
    """Puts a function in the place of mlirt.builder.compile.compile."""

    def install(function: Builder) -> None:
        module = ModuleType("mlirt.builder.compile")
        module.__dict__["compile"] = function
        monkeypatch.setitem(sys.modules, "mlirt.builder.compile", module)

    return install


def test_building(builder: Callable[[Builder], None], plan: str, tmp_path: Path) -> None:
    asked: list[BuildConfig] = []

    def build(path: str, *, config: BuildConfig) -> Any:
        assert path == model
        asked.append(config.replace(progress=None))
        assert config.progress is not None
        config.progress("kernels", 1, 2)
        return load(plan)

    builder(build)
    (tmp_path / "m.onnx").write_bytes(b"onnx")
    model, saved = str(tmp_path / "m.onnx"), tmp_path / "b.plan"
    ranges = ["--minShapes=x:1x4", "--maxShapes=x:8x4"]
    assert (
        run(f"--onnx={model}", "--fp16", "--target=cpu", *ranges, "--shapes=x:2x4", f"--saveEngine={saved}", *QUICK)
        == 0
    )
    assert run(f"--onnx={model}", "--shapes=x:2x4", "--buildOnly", "--verbose") == 0
    cache = str(tmp_path / "t")
    assert run(f"--onnx={model}", "--buildOnly", f"--timingCacheFile={cache}", "--heuristic", "--minTiming=3") == 0
    assert run(f"--onnx={model}", "--buildOnly", "--tacticSources=-CUDNN,+CUBLAS_LT") == 0
    assert run(f"--onnx={model}", "--buildOnly", "--shapeCache=1.5") == 0
    assert run(f"--onnx={model}", "--buildOnly", "--threads=6", "--streams=3") == 0
    usual = BuildConfig(streams=1)
    assert asked == [
        usual.replace(target="cpu", precision="fp16", profiles={"x": ((1, 4), (2, 4), (8, 4))}),
        usual.replace(profiles={"x": ((2, 4), (2, 4), (2, 4))}),
        usual.replace(timing_cache=cache, heuristic=True, min_timing_iterations=3),
        usual.replace(tactic_sources=["CUBLAS_LT"]),
        usual.replace(shape_cache_mb=1.5),
        usual.replace(threads=6, streams=3),
    ]
    assert saved.read_bytes() == Path(plan).read_bytes()


def test_flags_go_before_the_settings_of_a_file(
    builder: Callable[[Builder], None], plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[BuildConfig] = []

    def build(path: str, *, config: BuildConfig) -> Any:
        asked.append(config.replace(progress=None))
        return load(plan)

    builder(build)
    (tmp_path / "m.onnx").write_bytes(b"onnx")
    kept = BuildConfig(
        "cpu", "int8+fp16", {"x": [(1, 4), (2, 4), (8, 4)]}, calibration="a.calib", streams=2, workspace=1 << 20
    )
    kept.save(tmp_path / "a.json")
    file, model = f"--config={tmp_path / 'a.json'}", f"--onnx={tmp_path / 'm.onnx'}"
    assert run(model, file, "--buildOnly") == 0
    assert run(model, file, "--buildOnly", "--shapes=x:3x4") == 0
    assert run(model, file, "--buildOnly", "--int8", "--streams=1", "--workspace=2", "--avgTiming=10") == 0
    assert run(model, file, "--buildOnly", "--minShapes=x:1x4", "--maxShapes=x:2x4", "--target=auto") == 0
    assert asked[:2] == [kept, kept]
    assert asked[2] == kept.replace(precision="int8", streams=1, workspace=2 << 20)
    assert asked[3] == kept.replace(profiles={"x": [(1, 4), (2, 4), (2, 4)]}, target="auto")
    kept.replace(device="cpu-avx2").save(tmp_path / "a.json")
    for flags in ([], ["--device=0"], ["--device=cpu-128"]):
        assert run(model, file, "--buildOnly", *flags) == 0
    assert [one.device for one in asked[4:]] == ["cpu-avx2", "cpu-avx2", "cpu-128"]
    (tmp_path / "b.toml").write_text("precison = 'fp16'")
    message = failure(capsys, model, f"--config={tmp_path / 'b.toml'}")
    assert "b.toml: there is no setting 'precison' of a build; did you mean 'precision'?" in message
    assert "--config is for building" in failure(capsys, f"--loadEngine={plan}", file)


def test_a_build_that_fails(
    builder: Callable[[Builder], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise CompileError("layer 'conv1': it is\nbroken")

    def crash(*_: Any, **__: Any) -> Any:
        raise RuntimeError("oh")

    (tmp_path / "m.onnx").write_bytes(b"onnx")
    model, saved = f"--onnx={tmp_path / 'm.onnx'}", tmp_path / "b.plan"
    builder(broken)
    assert r"[E] layer 'conv1': it is\nbroken" + "\n" in failure(capsys, model, f"--saveEngine={saved}")
    builder(crash)
    assert "[E] internal error: RuntimeError: oh (--verbose shows where)\n" in failure(
        capsys, model, f"--saveEngine={saved}"
    )
    assert run(model, "--verbose") == 1
    assert "Traceback" in capsys.readouterr().err
    assert not saved.exists()


def test_forced_sparsity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """tensorrt-features.md#16.5: the engine computes with two zeros in four, and a warning names the weights."""
    model, weights = tmp_path / "a.onnx", numbers(8, 5, seed=3)
    write_model(
        model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ("float32", (2, 8))}, ["y"], {"w": weights}),
        model,
    )
    np.save(tmp_path / "x.npy", x := numbers(2, 8, seed=4))
    flags = ["--target=cpu", f"--loadInputs=x:{tmp_path / 'x.npy'}", f"--exportOutput={tmp_path / 'y.npz'}", *QUICK]
    assert run(f"--onnx={model}", "--sparsity=force", *flags) == 0
    assert "--sparsity=force: the weights were overwritten, outputs are not those of the model: w" in "".join(
        capsys.readouterr()
    )
    sparse = two_of_four(weights, 0)
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], x @ sparse, rtol=1e-4, atol=1e-5)
    assert not np.allclose(x @ sparse, x @ weights, atol=1e-2)


def test_types_and_formats_of_inputs_and_outputs(
    builder: Callable[[Builder], None], plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """tensorrt-features.md#30.2."""
    asked: list[BuildConfig] = []

    def build(path: str, *, config: BuildConfig) -> Any:
        asked.append(config)
        return load(plan)

    builder(build)
    (tmp_path / "m.onnx").write_bytes(b"onnx")
    spec = ["--inputIOFormats=fp16:chw,fp32:hwc+chw", "--outputIOFormats=int8:chw4", "--directIO", "--workspace=0.5"]
    assert run(f"--onnx={tmp_path / 'm.onnx'}", "--buildOnly", *spec) == 0
    assert asked[0].input_formats == ("fp16:chw", "fp32:hwc+chw")
    assert asked[0].output_formats == ("int8:chw4",)
    assert (asked[0].direct_io, asked[0].workspace) == (True, 1 << 19)
    pool = "--memPoolSize=workspace:2,dlaSRAM:1"
    spec = ["--layerOutputTypes=a:fp16+fp32,b:int32,*:fp32", "--layerPrecisions=*:fp16", "--precisionConstraints=obey"]
    assert run(f"--onnx={tmp_path / 'm.onnx'}", "--buildOnly", pool, *spec) == 0
    assert asked[1].workspace == 2 << 20
    assert asked[1].layer_precisions == {"a": "fp16", "*": "fp16"}
    assert "--memPoolSize=dlaSRAM has no effect: there is no DLA." in capsys.readouterr().out
    sources = "--tacticSources=+CUBLAS_LT,+CUBLAS,+JIT_CONVOLUTIONS"
    previews = "--preview=-fasterDynamicShapes0805"
    assert run(f"--onnx={tmp_path / 'm.onnx'}", "--buildOnly", sources, previews) == 0
    assert asked[2].tactic_sources == ("CUBLAS_LT",)
    out = capsys.readouterr().out
    for name in ("--tacticSources=+CUBLAS", "--tacticSources=+JIT_CONVOLUTIONS", previews):
        assert f"[W] {name} has no effect" in out
    previews = "--preview=+disableExternalTacticSourcesForCore0805"
    assert run(f"--onnx={tmp_path / 'm.onnx'}", "--buildOnly", sources, previews) == 0
    assert asked[3].tactic_sources == ()


def test_weights_that_can_be_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str], plan: str) -> None:
    """tensorrt-features.md#30.2 and 30.4: --dumpRefit and --timeRefit."""
    product = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    write_model(model_of([product], {"x": ("float32", [2, 4])}, ["y"], {"w": numbers(4, 3)}), tmp_path / "m.onnx")
    kept = tmp_path / "kept.plan"
    flags = ["--target=cpu", "--refit", "--dumpRefit", "--timeRefit", "--iterations=1", "--buildOnly"]
    assert run(f"--onnx={tmp_path / 'm.onnx'}", f"--saveEngine={kept}", *flags) == 0
    out = capsys.readouterr().out
    assert "[I] Refittable weights:\n" in out
    assert "[I] w (12)\n" in out
    assert re.search(r"Engine refitted 1 times: median = [\d.e+]+ ms", out)
    assert "built without BuilderFlag.REFIT" in failure(capsys, f"--loadEngine={plan}", "--dumpRefit")
