"""IR of every phase runs on inputs, and is built, with the same numbers."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import pytest

import mlirt
from mlirt.errors import InvalidInputError
from mlirt.passes.phases import phase_names
from mlirt.tools import rt_exec, rt_opt, rt_report
from mlirt.tools.run_inputs import InputSpec

TWO = """
func.func @first(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = trt.activation relu %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}
func.func @second(%a: tensor<2xf32>, %b: tensor<?xi32, #trt.dims<["n"]>>)
    -> (tensor<2xf32>, tensor<?xi32, #trt.dims<["n"]>>) {
  %y = trt.unary neg %a : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y, %b : tensor<2xf32>, tensor<?xi32, #trt.dims<["n"]>>
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("two.mlir").write_text(TWO, encoding="utf-8")
    Path("bad.npz").write_bytes(b"PK\x03\x04 and no more")
    return tmp_path


def _write_small_network(folder: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "small_network.py"
    onnx.save(runpy.run_path(str(script))["small_network"](), folder / "small.onnx")  # pyright: ignore[reportUnknownMemberType]


def dumped(folder: Path) -> list[Path]:
    """The dumps of the small network."""
    _write_small_network(folder)
    assert rt_opt.main(["small.onnx", "--to=memory", "--dump-phases=dumps", "-o", "/dev/null"]) == 0
    return sorted((folder / "dumps").glob("*.mlir"))


IMAGE = np.random.default_rng(1).normal(size=(3, 3, 8, 8)).astype(np.float32)


def test_every_dump_runs(folder: Path) -> None:
    files = dumped(folder)
    assert [file.stem[3:] for file in files] == list(phase_names())
    np.savez("image.npz", image=IMAGE)
    expected = mlirt.compile("small.onnx", "reference").run({"image": IMAGE})["scores"]
    for file in files:
        for target in ("cpu",) if file.stem[3:] == "memory" else ("reference", "cpu"):
            arguments = ["--input=image.npz", "--output=out.npz", "-o", "/dev/null"]
            assert rt_opt.main([str(file), f"--run={target}", *arguments]) == 0
            np.testing.assert_allclose(np.load("out.npz")["scores"], expected, rtol=1e-4, atol=1e-5)


def test_dumps_give_the_bits_of_the_whole_build(folder: Path) -> None:
    """From any phase on the engine is the same, for a network that is compiled for this machine."""
    _write_small_network(folder)
    whole = mlirt.compile("small.onnx", "cpu", dump_phases="dumps").run({"image": IMAGE})["scores"]
    for file in sorted(Path("dumps").glob("*.mlir")):
        assert mlirt.compile(file, "cpu").run({"image": IMAGE})["scores"].tobytes() == whole.tobytes(), file.name


def test_an_edited_dump_is_another_network(folder: Path) -> None:
    dumped(folder)
    file = Path("dumps/03-fusion.mlir")
    text = file.read_text(encoding="utf-8")
    assert "arith.maximumf" in text
    Path("dumps/edited.mlir").write_text(text.replace("arith.maximumf", "arith.minimumf"), encoding="utf-8")
    plain, edited = (mlirt.compile(path, "cpu").run({"image": IMAGE})["scores"] for path in (file, "dumps/edited.mlir"))
    assert not np.allclose(plain, edited)


SMALL = """
func.func @main(%x: tensor<8x16xf32> {trt.name = "x"}) -> (tensor<8x16xf32> {trt.name = "y"}) {
  %a = trt.activation relu %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = trt.unary neg %a : (tensor<8x16xf32>) -> tensor<8x16xf32>
  func.return %y : tensor<8x16xf32>
}
"""


def test_dumps_for_a_gpu_run_on_the_interpreter_and_are_built(folder: Path) -> None:
    Path("net.mlir").write_text(SMALL, encoding="utf-8")
    flags = ["--target=cuda", "--to=memory", "--dump-phases=dumps", "-o", "/dev/null"]
    assert rt_opt.main(["net.mlir", *flags]) == 0
    x = np.random.default_rng(2).normal(size=(8, 16)).astype(np.float32)
    np.save("x.npy", x)
    for file in sorted(Path("dumps").glob("*.mlir")):
        arguments = ["--input=x=x.npy", "--output=out.npz", "-o", "/dev/null"]
        assert rt_opt.main([str(file), "--run=reference", *arguments]) == 0
        assert np.array_equal(np.load("out.npz")["y"], -np.maximum(x, 0))
    for name in ("03-fusion", "04-layout", "05-lowering", "06-memory"):
        engine = mlirt.compile(f"dumps/{name}.mlir", "cuda")
        assert isinstance(engine, mlirt.Engine)
        assert [layer["family"] for layer in engine.layers] == ["pointwise"]
    with pytest.raises(mlirt.InvalidInputError, match="made for cuda, and cannot be built for cpu from lowering on"):
        mlirt.compile("dumps/04-layout.mlir", "cpu")
    assert mlirt.compile("dumps/03-fusion.mlir", "cpu").run({"x": x})["y"].shape == (8, 16)


def test_from_and_weights(folder: Path) -> None:
    dumped(folder)
    Path("alone").mkdir()
    Path("dumps/03-fusion.mlir").rename("alone/a.mlir")
    with pytest.raises(mlirt.InvalidInputError, match=r"no a.safetensors; name their file: --weights=FILE"):
        mlirt.compile("alone/a.mlir", "cpu")
    engine = mlirt.compile("alone/a.mlir", "cpu", weights="dumps/weights.safetensors", from_phase="layout")
    assert engine.run({"image": IMAGE})["scores"].shape == (3, 10)
    with pytest.raises(mlirt.InvalidInputError, match="there is no phase 'layouts'"):
        mlirt.compile("alone/a.mlir", "cpu", weights="dumps/weights.safetensors", from_phase="layouts")
    with pytest.raises(mlirt.InvalidInputError, match="input_shapes is for ONNX models"):
        mlirt.compile("alone/a.mlir", "cpu", input_shapes={"image": (1, 3, 8, 8)})
    with pytest.raises(mlirt.InvalidInputError, match="are for IR"):
        mlirt.compile("small.onnx", "cpu", from_phase="layout")


@pytest.mark.parametrize("target", ["reference", "cpu"])
def test_a_function_by_its_name(folder: Path, target: str) -> None:
    np.save("a.npy", np.array([1.0, -2.0], np.float32))
    flags = [f"--run={target}", "--function=second", "--input=a=a.npy", "--input=b=random:7", "--shapes=b:5"]
    assert rt_opt.main(["two.mlir", *flags, "--output=out.npz", "-o", "/dev/null"]) == 0
    found = np.load("out.npz")
    assert found["output0"].tolist() == [-1.0, 2.0]
    assert found["output1"].shape == (5,)


def test_the_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--run=reference", "--function=first", "--input=x=zeros", "-p", "convert-trt-to-fused"]
    assert rt_opt.main(["two.mlir", *flags, "-o", "/dev/null"]) == 0
    assert capsys.readouterr().err == "output0: float32 2, min 0, mean 0, max 0\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--run=cpu", "--input=x=zeros"], "the IR has no function main; its functions are: first, second"),
        (["--run=cpu", "--function=third"], "the IR has no function 'third'; its functions are: first, second"),
        (["--run=cpu", "--function=first"], "input 'x' is not given: --input=x=random:0"),
        (
            ["--run=cpu", "--function=first", "--input=others.npz"],
            "input 'x' is not given: others.npz has p, q; inputs are x",
        ),
        (["--run=cpu", "--function=first", "--input=z=zeros"], "the function has no input 'z'; it has x"),
        (["--run=cpu", "--function=first", "--input=x"], "--input=x: expected FILE.npz, NAME=FILE.npy"),
        (["--run=cpu", "--function=first", "--input=x=random:a"], "--input=x=random:a: expected"),
        (["--run=cpu", "--function=first", "--input=x=none.npy"], "--input: cannot read none.npy: No such file"),
        (
            ["--run=cpu", "--function=first", "--input=x=bad.npz"],
            "--input: cannot read bad.npz: File is not a zip file",
        ),
        (["--run=cpu", "--function=first", "--input=x=zeros", "--output=o.txt"], "ends in .npz or .json"),
        (["--input=x=zeros"], "--input is for running: add --run=reference, --run=cpu or --run=cuda"),
        (["--run=cpu"], "nothing to run: expected a function without arguments, or --input=NAME=random:0"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_mistakes(flags: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("others.npz", p=np.zeros(2), q=np.zeros(2))
    assert rt_opt.main(["two.mlir", *flags, "-o", "out.mlir"]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


CHUNKS = """
func.func @negative(%x: tensor<2xf32>) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}
// -----
func.func @test() {
  %x = check.input {value = dense<[1.0, -2.0]> : tensor<2xf32>} : tensor<2xf32>
  %y = trt.activation relu %x : (tensor<2xf32>) -> tensor<2xf32>
  %z = trt.constant {value = dense<[1.0, 0.0]> : tensor<2xf32>} : tensor<2xf32>
  check.expect_close %y, %z : tensor<2xf32>, tensor<2xf32>
  func.return
}
"""


@pytest.mark.usefixtures("folder")
def test_chunks_without_a_test_are_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    Path("chunks.mlir").write_text(CHUNKS, encoding="utf-8")
    arguments = ["chunks.mlir", "--split-input-file", "--run=reference"]
    assert rt_opt.main(arguments) == 0
    out, err = capsys.readouterr()
    assert "@negative" in out
    assert "@test" in out
    assert err == ""
    Path("chunks.mlir").write_text(CHUNKS.replace("[1.0, 0.0]", "[1.0, 5.0]"), encoding="utf-8")
    assert rt_opt.main(arguments) == 1
    assert "chunks.mlir:10:3: error:" in capsys.readouterr().err


def test_rt_exec_and_rt_report(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dumped(folder)
    built = ["--target=cpu", "--buildOnly", "--saveEngine=a.plan"]
    assert rt_exec.main(["--onnx=dumps/04-layout.mlir", *built]) == 0
    assert mlirt.load("a.plan").run({"image": IMAGE})["scores"].shape == (3, 10)
    assert rt_report.main(["dumps/03-fusion.mlir", "--target=cpu", "-o", "a.html"]) == 0
    assert "convolution" in Path("a.html").read_text(encoding="utf-8")
    capfd.readouterr()
    assert rt_exec.main(["--onnx=small.onnx", "--from=fusion", *built]) == 1
    assert "--weights and --from are for IR: give --onnx=FILE.mlir" in capfd.readouterr().err
    assert rt_report.main(["a.plan", "--from=fusion", "-o", "b.html"]) == 1
    assert "--from is for what is built: give FILE.onnx or FILE.mlir" in capfd.readouterr().err


def test_refit_of_ir(folder: Path) -> None:
    dumped(folder)
    engine = mlirt.compile("dumps/03-fusion.mlir", "cpu", refittable=True)
    assert isinstance(engine, mlirt.Engine)
    again = mlirt.refit(engine, {})
    assert again.run({"image": IMAGE})["scores"].tobytes() == engine.run({"image": IMAGE})["scores"].tobytes()


def test_a_plan_is_no_model(folder: Path) -> None:
    Path("a.plan").write_bytes(b"\x89mlirt\r\n" + bytes(100))
    with pytest.raises(mlirt.InvalidModelError, match=r"it is a plan: open it with mlirt.load"):
        mlirt.compile("a.plan", "cpu")


def test_specs() -> None:
    assert InputSpec.parse("x=random") == InputSpec("x", "random")
    assert InputSpec.parse("some.npz") == InputSpec("", "some.npz")
    with pytest.raises(InvalidInputError):
        InputSpec.parse("zeros")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("03-fusion", {"from_phase": "cleanup"}, "holds launches, and cannot start at cleanup: .* is fusion or later"),
        ("03-fusion", {"from_phase": "memory"}, "this IR holds no kernels, and cannot start at memory"),
        ("05-lowering", {"from_phase": "layout"}, "this IR holds kernels, and cannot start at layout"),
        ("03-fusion", {"input_formats": ["fp16:chw"]}, "input_formats is for networks before the phase fusion"),
        ("04-layout", {"layer_precisions": {"conv1": "fp16"}}, "layer_precisions is for networks before"),
    ],
)
def test_what_does_not_go_with_the_phase_of_ir_is_refused(
    folder: Path, name: str, options: dict[str, Any], message: str
) -> None:
    dumped(folder)
    with pytest.raises(mlirt.InvalidInputError, match=message):
        mlirt.compile(f"dumps/{name}.mlir", "cpu", **options)


@pytest.mark.parametrize(("target", "precision"), [("cpu", "int8"), ("cuda", "fp16")])
def test_a_precision_that_is_chosen_by_earlier_phases_is_warned_of(
    folder: Path, target: Literal["cpu", "cuda"], precision: str
) -> None:
    dumped(folder)
    with pytest.warns(UserWarning, match=f"{precision} changes nothing: .* and this IR starts at layout"):
        mlirt.compile("dumps/03-fusion.mlir", target, precision=precision)


def test_dumps_with_locations_have_the_layers_names(folder: Path) -> None:
    _write_small_network(folder)
    flags = ["--to=fusion", "--dump-phases=dumps", "--print-debuginfo", "-o", "/dev/null"]
    assert rt_opt.main(["small.onnx", *flags]) == 0
    engines = [mlirt.compile(f"dumps/{name}.mlir", "cpu") for name in ("00-import", "03-fusion")]
    for engine in engines:
        assert isinstance(engine, mlirt.Engine)
        assert {"conv1 + norm1 + relu1", "conv2 + norm2 + add2 + relu2"} <= {layer["name"] for layer in engine.layers}
