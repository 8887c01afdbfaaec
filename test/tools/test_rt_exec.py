"""rt-exec: trtexec's lines and files from a loaded plan, and one line with exit code 1 for every mistake.

tensorrt-features.md#30.1, 30.4, 30.5, 30.13.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rt_exec_runs import QUICK, failure, run, tiny_plan_file

from mlirt.builder.host import gpu_is_here
from mlirt.errors import CompileError
from mlirt.runtime.engine import load
from mlirt.tools.trtexec_flags import take_trtexec_flags


@pytest.fixture
def plan(tmp_path: Path) -> str:
    return tiny_plan_file(tmp_path)


def test_metrics(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"--loadEngine={plan}", "--shapes=x:3x4", "--percentile=50,99", *QUICK) == 0
    out = capsys.readouterr().out
    keys = ("min", "max", "mean", "median", r"percentile\(50%\)", r"percentile\(99%\)")
    metric = ", ".join(rf"{key} = \S+ ms" for key in keys) + "\n"
    assert re.search(r"\[I\] Throughput: [\d.e+]+ qps\n", out)
    for name in ("Latency", "Enqueue Time", "H2D Latency", "GPU Compute Time", "D2H Latency"):
        assert re.search(rf"\[I\] {name}: {metric}", out), name
    assert re.search(r"Total Host Walltime: \S+ s\n", out)
    assert re.search(r"Total GPU Compute Time: \S+ s\n", out)
    assert out.count("Average on 10 runs - GPU latency: ") == 2
    assert out.startswith("&&&& RUNNING mlirt.rt_exec [mlirt v")
    assert out.rstrip().split("\n")[-1].startswith("&&&& PASSED mlirt.rt_exec [mlirt v")


def test_all_reports(plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(1).standard_normal((3, 4), np.float32)
    np.save(tmp_path / "x.npy", x)
    names = {key: str(tmp_path / f"{key}.json") for key in ("Output", "Profile", "LayerInfo", "Times")}
    exports = [f"--export{key}={path}" for key, path in names.items()]
    dumps = ["--dumpOutput", "--dumpProfile", "--dumpLayerInfo", "--profilingVerbosity=detailed"]
    assert run(f"--loadEngine={plan}", f"--loadInputs=x:{tmp_path / 'x.npy'}", *exports, *dumps, *QUICK) == 0
    files: dict[str, Any] = {key: json.loads(Path(path).read_text()) for key, path in names.items()}
    want = load(plan).run({"x": x})
    assert files["Output"][0]["name"] == "y"
    assert files["Output"][0]["dimensions"] == "3x4"
    np.testing.assert_array_equal(np.array(files["Output"][0]["values"], np.float32), want["y"].reshape(-1))
    assert files["Profile"][0] == {"count": 10}
    assert [row["name"] for row in files["Profile"][1:]] == ["double", "turn", "weigh"]
    assert sum(row["percentage"] for row in files["Profile"][1:]) == pytest.approx(100)
    times = {"timeMs", "averageMs", "medianMs", "lowerQuartileMs", "upperQuartileMs", "minMs", "maxMs", "percentage"}
    assert set(files["Profile"][1]) == {"name", *times}
    assert files["LayerInfo"] == {
        "Layers": [{"Name": "double", "LayerType": "PointWiseV2", "ParameterType": "PointWiseV2"}],
        "Bindings": ["x", "y", "z"],
    }
    stages = ("Enq", "H2d", "Compute", "D2h")
    keys = {f"{edge}{stage}Ms" for edge in ("start", "end") for stage in stages} | {
        "h2dMs",
        "computeMs",
        "d2hMs",
        "latencyMs",
    }
    assert len(files["Times"]) >= 20
    assert all(set(row) == keys for row in files["Times"])
    assert files["Times"][0]["startEnqMs"] == 0
    out = capsys.readouterr().out
    assert "Output Tensors:" in out
    assert "y: (3x4)" in out
    assert "=== Profile (10 iterations ) ===" in out
    assert re.search(r"Total +\d", out)
    assert "Name: double, LayerType: PointWiseV2" in out


def test_the_inspector_says_names_alone_unless_asked(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"--loadEngine={plan}", "--dumpLayerInfo", "--buildOnly") == 0
    out = capsys.readouterr().out
    assert re.search(r"\[I\]   double\n", out)
    assert "Skipped inference phase since --buildOnly is added." in out


def test_outputs_as_npz_and_raw_inputs(plan: str, tmp_path: Path) -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    (tmp_path / "x.bin").write_bytes(x.tobytes())
    path = tmp_path / "out.npz"
    assert (
        run(
            f"--loadEngine={plan}",
            f"--loadInputs=x:{tmp_path / 'x.bin'}",
            "--shapes=x:2x4",
            f"--exportOutput={path}",
            *QUICK,
        )
        == 0
    )
    with np.load(path) as stored:
        np.testing.assert_array_equal(stored["y"], load(plan).run({"x": x})["y"])


def test_the_command_of_the_guide_runs(plan: str) -> None:
    """tensorrt-features.md#30.15, with a shorter duration."""
    flags = (
        "--verbose --profilingVerbosity=detailed --dumpLayerInfo --dumpProfile --separateProfileRun "
        "--useCudaGraph --noDataTransfers --useSpinWait --duration=0.1"
    )
    assert run(f"--loadEngine={plan}", *flags.split()) == 0


def test_open_dimensions_become_one(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"--loadEngine={plan}", "--dumpOutput", *QUICK) == 0
    out = capsys.readouterr().out
    assert "Automatically overriding shape to: 1x4" in out
    assert "y: (1x4)" in out


def test_shapes_that_no_memory_holds(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "not enough memory" in failure(capsys, f"--loadEngine={plan}", f"--shapes=x:{10**14}x4", *QUICK)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either --onnx=FILE or --loadEngine=FILE"),
        (["--onnx=a", "--loadEngine=b"], "give either"),
        (["--colour=red"], "unrecognized arguments: --colour=red"),
        (["--timingCacheFile=t", "--noBuilderCache", "--onnx=a"], "contradict each other"),
        (["--timingCacheFile=t", "--loadEngine=a"], "--timingCacheFile is for building"),
        (["--safe", "--onnx=a"], "--safe is not supported: there is no safety runtime"),
        (["--uff=a.uff"], "--uff is not supported: convert the model to ONNX"),
        (["--deploy=a.prototxt"], "--deploy is not supported: Caffe models are not read; convert the model to ONNX"),
        (["--useDLACore=0", "--onnx=a"], "there is no DLA compiler in this implementation; --allowGPUFallback runs"),
        (["--layerDeviceTypes=a:DLA", "--onnx=a"], "--layerDeviceTypes is not supported: there is no DLA compiler"),
        (["--batch=4", "--onnx=a"], "the batch is a dimension of the inputs; give it with --shapes"),
        (["--onnx=a", "--layerPrecisions=conv1"], "expected LAYER:fp32, LAYER:fp16 or LAYER:int8"),
        (["--loadEngine=a", "--layerPrecisions=*:fp16"], "--layerPrecisions is for building"),
        (["--accuracyTarget=2", "--onnx=a"], "expected a number from 0 to 1, such as 0.99"),
        (["--streams=0", "--onnx=a"], "--streams: expected a whole number from 1 on"),
        (["--sparsity=force", "--loadEngine=a"], "--sparsity=force is for building"),
        (["--inputIOFormats=fp16:chw", "--loadEngine=a"], "--inputIOFormats is for building"),
        (["--memPoolSize=space:1", "--onnx=a"], "space: expected workspace, dlaSRAM"),
        (["--preview=+bogus", "--onnx=a"], "'+bogus' is no + or - before one of fasterDynamicShapes0805"),
        (["--layerOutputTypes=a:fp8", "--onnx=a"], "expected LAYER:TYPE or LAYER:TYPE+TYPE, TYPE fp32"),
        (["--onnx=/nowhere/a.onnx"], "--onnx=/nowhere/a.onnx: there is no such file"),
        (["--onnx=/"], "--onnx=/: that is a folder"),
        (["--onnx=a", "--saveEngine=/nowhere/a.plan"], "--saveEngine: cannot write /nowhere/a.plan: there is no such"),
        (["--onnx=a", "--timingCacheFile=/nowhere/t"], "--timingCacheFile: cannot write /nowhere/t: there is no such"),
        (["--loadEngine=a", "--exportTimes=/"], "--exportTimes: cannot write /: Is a directory"),
        (["--onnx=a", "--avgTiming=0"], "expected a whole number from 1 on"),
        (["--loadEngine=/nowhere/a.plan"], "cannot open the plan file /nowhere/a.plan: No such file"),
        (["--loadEngine=a", "--fp16"], "--fp16 is for building"),
        (["--onnx=a", "--minShapes=x:1"], "--minShapes and --maxShapes go together"),
        (["--onnx=a", "--shapes=x"], "'x': expected NAME:1x3x224x224"),
        (["--onnx=a", "--shapes=x:1xy"], "expected dimensions such as 1x3x224x224"),
        (["--onnx=a", "--shapes=x:1,x:2"], "x is given twice"),
        (["--onnx=a", "--iterations=-1"], "expected a whole number"),
        (["--onnx=a", "--percentile=101"], "101 is beyond 100"),
        (["--onnx=a", "--exportOutput=o.txt"], "expected a name that ends in .json or .npz"),
        (["--onnx=a", "--target=reference", "--saveEngine=b"], "--target=reference has no plan to save"),
    ],
)
def test_wrong_flags(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in failure(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shapes=q:1x4"], "the engine has no input 'q'; its inputs are ['x']"),
        (["--shapes=x:1x5"], "input 'x': expected shape (n, 4), got (1, 5)"),
        (["--loadInputs=x:/nowhere/x.npy"], "x: cannot read /nowhere/x.npy: No such file"),
        (["--loadInputs=q:{0}"], "the engine has no input 'q'"),
        (["--loadInputs=x:{0}", "--shapes=x:2x4"], "has 3 bytes, but float32 of shape (2, 4) has 32"),
        (["--exportTimes=/nowhere/t.json"], "/nowhere"),
    ],
)
def test_wrong_inputs(
    plan: str, tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short.bin").write_bytes(b"abc")
    filled = [argument.format(tmp_path / "short.bin") for argument in arguments]
    assert message in failure(capsys, f"--loadEngine={plan}", *filled, *QUICK)


def test_a_damaged_plan(tmp_path: Path, plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray(Path(plan).read_bytes())
    data[-1] ^= 1
    (tmp_path / "bad.plan").write_bytes(data)
    assert "damaged plan file" in failure(capsys, f"--loadEngine={tmp_path / 'bad.plan'}")


def test_a_file_that_is_no_array(tmp_path: Path, plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.npy").write_bytes(b"junk")
    assert "cannot read" in failure(capsys, f"--loadEngine={plan}", f"--loadInputs=x:{tmp_path / 'x.npy'}")


def test_inputs_from_npz(tmp_path: Path, plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(1).standard_normal((3, 4), np.float32)
    np.savez(tmp_path / "named.npz", z=x + 1, x=x)
    np.savez(tmp_path / "only.npz", other=x)
    want = load(plan).run({"x": x})["y"]
    for name in ("named", "only"):
        flags = [f"--loadInputs=x:{tmp_path / name}.npz", f"--exportOutput={tmp_path / 'y.npz'}", *QUICK]
        assert run(f"--loadEngine={plan}", *flags) == 0
        np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], want)
    np.savez(tmp_path / "two.npz", a=x, b=x)
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 and no more")
    for name, message in (("two", "two.npz has no array 'x'; it has a, b"), ("bad", "bad.npz: File is not a zip file")):
        assert message in failure(capsys, f"--loadEngine={plan}", f"--loadInputs=x:{tmp_path / name}.npz")


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    assert "--saveEngine FILE" in capsys.readouterr().out


def test_the_tool_starts_without_compiler_or_numpy() -> None:
    script = (
        "import sys; from mlirt.tools import rt_exec; rt_exec.main(['--help'])\n"
        "bad = {'numpy', 'xdsl', 'onnx', 'numba', 'llvmlite'} & set(sys.modules)\n"
        "sys.exit(str(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, stdout=subprocess.DEVNULL)


def test_flags_without_effect(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    """tensorrt-features.md#30.2 and 30.4: scripts for trtexec go on, and are told."""
    flags = "--noTF32 --workspace=4096 --preview=+fasterDynamicShapes0805 --device=0 --sparsity=enable --idleTime=0"
    assert run(f"--loadEngine={plan}", "--shapes=x:1x4", *flags.split(), "--streams=1", *QUICK) == 0
    out = capsys.readouterr().out
    assert "[W] --preview=+fasterDynamicShapes0805 has no effect: shapes are always dynamic this way." in out
    assert "[W] --sparsity=enable has no effect: there are no kernels for sparse weights." in out
    assert "--device" not in out.splitlines()[1]


@pytest.mark.parametrize("more", [[], ["--noDataTransfers"], ["--threads"], ["--threads=6"]])
def test_streams(plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    """tensorrt-features.md#30.4: each stream makes its runs, and all of them count for the throughput of the time they
    took together.
    """
    path = tmp_path / "times.json"
    flags = ["--shapes=x:3x4", "--streams=3", f"--exportTimes={path}", *more, *QUICK]
    assert run(f"--loadEngine={plan}", *flags) == 0
    out = capsys.readouterr().out
    runs = json.loads(path.read_text())
    assert len(runs) == 3 * 20
    ends = [one["endD2hMs"] for one in runs]
    assert ends == sorted(ends)
    assert min(one["startH2dMs"] for one in runs) >= 0
    throughput = re.search(r"Throughput: (\S+) qps", out)
    wall = re.search(r"Total Host Walltime: (\S+) s", out)
    assert throughput is not None
    assert wall is not None
    assert float(throughput[1]) == pytest.approx(60 / float(wall[1]), rel=1e-3)


def test_what_a_stream_raises_is_one_line(
    plan: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise CompileError("the second stream failed")

    monkeypatch.setattr("mlirt.runtime.context.ExecutionContext.run_timed", fail)
    assert "the second stream failed" in failure(
        capsys, f"--loadEngine={plan}", "--shapes=x:1x4", "--streams=2", *QUICK
    )


@pytest.mark.skipif(gpu_is_here(), reason="is about machines without a GPU")
def test_a_device_that_is_not_there(
    plan: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """tensorrt-features.md#30.2: --device, and that a choice which cannot be had leaves no traces."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert run(f"--loadEngine={plan}", "--shapes=x:1x4", "--device=0", *QUICK) == 0
    capsys.readouterr()
    message = failure(capsys, f"--loadEngine={plan}", "--shapes=x:1x4", "--device=1", *QUICK)
    assert "--device=1: there is no such GPU; their numbers start with 0" in message
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--useDLACore=0", "--allowGPUFallback"], "--useDLACore has no effect: there is no DLA compiler"),
        (["--layerDeviceTypes=a:DLA", "--allowGPUFallback"], "--layerDeviceTypes has no effect: there is no DLA"),
        (["--layerDeviceTypes=a:GPU"], "all layers are on the one device"),
        (["--allowGPUFallback"], "--allowGPUFallback has no effect: there is no DLA compiler"),
    ],
)
def test_a_dla_falls_back(flags: list[str], said: str) -> None:
    """tensorrt-features.md#29.11, 30.2: with the flag that permits it, layers of a DLA are on the one device."""
    kept, lines = take_trtexec_flags(["--onnx=a", *flags])
    assert kept == ["--onnx=a"]
    assert len(lines) == 1
    assert said in lines[0]
