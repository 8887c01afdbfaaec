"""Layers whose results leave half precision are named, with what keeps them right; other networks are left in peace."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of, numbers, write_model

import mlirt
from mlirt.builder.model_network import asked_precisions, imported
from mlirt.builder.number_range.range_report import Departure
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.layer_precisions import set_layer_precisions
from mlirt.errors import AccuracyWarning, InvalidInputError
from mlirt.passes.pipeline import PipelineOptions, run_passes, run_phases
from mlirt.tools import rt_exec
from mlirt.tools.number_range import report_outputs
from mlirt.tools.rt_exec_arguments import parse_arguments

Array = np.ndarray[Any, np.dtype[Any]]
X = {"x": numbers(2, 8, 6, 6)}


def chain(first: float, second: float, third: float) -> onnx.ModelProto:
    """Three convolutions around activations, each of which multiplies the size of the numbers by about this."""
    nodes = [
        helper.make_node("Conv", ["x", "u"], ["a"], name="conv1"),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        helper.make_node("Conv", ["b", "v"], ["c"], name="conv2"),
        helper.make_node("Relu", ["c"], ["d"], name="relu2"),
        helper.make_node("Conv", ["d", "w"], ["y"], name="conv3"),
    ]
    sizes = zip("uvw", (first, second, third), strict=True)
    weights = {name: numbers(8, 8, 1, 1, seed=k) * np.float32(size) for k, (name, size) in enumerate(sizes)}
    return model_of(nodes, {"x": ("float32", (2, 8, 6, 6))}, ["y"], weights)


def power(exponent: float) -> onnx.ModelProto:
    """A layer that float32 is kept for: what is too large is its result where the next layer reads it."""
    nodes = [
        helper.make_node("Pow", ["x", "e"], ["p"], name="power"),
        helper.make_node("Conv", ["p", "w"], ["y"], name="reader"),
    ]
    constants = {"e": np.array(exponent, np.float32), "w": numbers(8, 8, 1, 1) * np.float32(1e-3)}
    return model_of(nodes, {"x": ("float32", (2, 8, 6, 6))}, ["y"], constants)


def masked(bias: float) -> onnx.ModelProto:
    """Attention with a mask: what is hidden is far below all others, and softmax makes zeros of it."""
    nodes = [
        helper.make_node("MatMul", ["x", "k"], ["scores"], name="scores"),
        helper.make_node("Add", ["scores", "mask"], ["hidden"], name="mask"),
        helper.make_node("Softmax", ["hidden"], ["y"], name="softmax", axis=-1),
    ]
    mask = np.where(np.tri(6, dtype=bool), 0, bias).astype(np.float32)
    constants = {"k": numbers(6, 6) * np.float32(30), "mask": mask}
    return model_of(nodes, {"x": ("float32", (2, 8, 6, 6))}, ["y"], constants)


TABLE: list[tuple[str, onnx.ModelProto, dict[str, Array], list[tuple[str, str]]]] = [
    ("in range", chain(1, 1, 1), X, []),
    ("large, but in range", chain(40, 40, 1e-3), X, []),
    ("overflow in the middle", chain(300, 300, 1e-3), X, [("conv2", "overflow"), ("relu2", "overflow")]),
    ("overflow at the end", chain(40, 40, 40), X, [("conv3", "overflow")]),
    ("underflow in the middle", chain(1e-4, 1e-4, 1e4), X, [("conv2", "underflow"), ("relu2", "underflow")]),
    ("power that is read", power(6), {"x": X["x"] * 4 + 3}, [("power", "overflow")]),
    ("power in range", power(2), X, []),
    ("mask", masked(-3e38), X, []),
    ("large positive scores", masked(3e38), X, [("mask", "overflow")]),
]


@pytest.mark.parametrize(("model", "feeds", "want"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_layers_are_named(model: onnx.ModelProto, feeds: Mapping[str, Array], want: list[tuple[str, str]]) -> None:
    report = mlirt.check_range(model, feeds)
    assert [(one.layer, one.kind) for one in report.issues] == want
    assert report.tensors > 0
    assert bool(report) == bool(want)


def in_half_precision(model: onnx.ModelProto, feeds: Mapping[str, Array], asked: Mapping[str, str]) -> Array:
    """What a device with half precision makes of a network: each stored tensor is rounded."""
    ctx = RtContext()
    module = imported(model, ctx, None, {}, None)
    set_layer_precisions(module, asked_precisions(module, asked))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_phases(module, ctx, last="quantization", options=PipelineOptions("cuda", "fp16"))
        run_passes(module, ctx, "convert-precision{to=f16}")
        with np.errstate(over="ignore", invalid="ignore"):
            (found,) = interpret(module, ctx, feeds).values()
    return found


@pytest.mark.parametrize(("model", "feeds", "want"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_half_precision_is_wrong_where_said_so_and_right_with_the_advice(
    model: onnx.ModelProto, feeds: Mapping[str, Array], want: list[tuple[str, str]]
) -> None:
    exact = mlirt.compile(model, "reference").run(feeds)["y"]
    scale = np.abs(exact).max()
    asked = mlirt.check_range(model, feeds).layer_precisions
    plain, advised = in_half_precision(model, feeds, {}), in_half_precision(model, feeds, asked)
    with np.errstate(invalid="ignore"):
        assert bool(want) == (not np.abs(plain - exact).max() < 0.02 * scale)
    assert np.abs(advised - exact).max() < 0.02 * scale
    assert not mlirt.check_range(model, feeds, layer_precisions=asked)


def test_bfloat16_has_the_range_of_float32() -> None:
    model = chain(300, 300, 1e-3)
    assert mlirt.check_range(model, X, "fp16")
    assert not mlirt.check_range(model, X, "bf16")


def test_the_worst_of_several_runs_counts() -> None:
    small, large = {"x": X["x"] * np.float32(1e-2)}, {"x": X["x"] * np.float32(1e2)}
    model = chain(5, 5, 5)
    assert not mlirt.check_range(model, small)
    (issue,) = mlirt.check_range(model, [small, large, small]).issues
    assert issue.largest == pytest.approx(mlirt.check_range(model, large).issues[0].largest)
    assert (issue.layer, issue.tensor, issue.dtype) == ("conv3", "y", "float16")


def test_inputs_are_random_without_feeds() -> None:
    assert not mlirt.check_range(chain(1, 1, 1))
    assert mlirt.check_range(chain(300, 300, 300))


def test_a_network_in_half_precision_is_told_to_build_without() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], name="narrow", to=onnx.TensorProto.FLOAT16),
        helper.make_node("Mul", ["h", "c"], ["m"], name="times"),
        helper.make_node("Mul", ["m", "d"], ["y"], name="back"),
    ]
    constants = {"c": np.array(6e4, np.float16), "d": np.array(1e-4, np.float16)}
    model = model_of(nodes, {"x": ("float32", (4,))}, ["y"], constants)
    report = mlirt.check_range(model, {"x": np.array([1, 2, 3, 0.5], np.float32)})
    assert [(one.layer, one.share, one.is_own) for one in report.issues] == [("times", 0.5, True)]
    assert report.layer_precisions == {}
    assert "build without --fp16" in report.lines()[-1]


def test_layers_in_loops_are_seen() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["state", "state"], ["square"], name="square"),
            helper.make_node("Identity", ["go_on"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("iteration", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("go_on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", onnx.TensorProto.FLOAT16, [4]),
        ],
        [
            helper.make_tensor_value_info("still", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("square", onnx.TensorProto.FLOAT16, [4]),
        ],
    )
    model = model_of(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], name="loop", body=body)],
        {"n": ("int64", ()), "x": ("float16", (4,))},
        ["y"],
    )
    feeds = {"n": np.array(5), "x": np.full(4, 2, np.float16)}
    assert "square" in [one.layer for one in mlirt.check_range(model, feeds).issues]
    assert not mlirt.check_range(model, {**feeds, "n": np.array(3)})


def test_what_cannot_be_checked() -> None:
    with pytest.raises(InvalidInputError, match="no half precision to check"):
        mlirt.check_range(chain(1, 1, 1), X, "fp32")
    with pytest.raises(InvalidInputError, match="no input 'z'; its inputs are"):
        mlirt.check_range(chain(1, 1, 1), {"z": X["x"]})


def test_numbers_that_are_infinite_anyway_count_for_nothing() -> None:
    array = np.array([np.inf, -np.inf, np.nan, 1, 65519], np.float32)
    assert Departure.of(array, "float16").kind is None
    assert Departure.of(np.array([65520], np.float32), "float16").kind == "overflow"
    assert Departure.of(np.array([-7e4, 1], np.float32), "float16", masks=True).kind is None
    assert Departure.of(np.array([7e4, 1], np.float32), "float16", masks=True).kind == "overflow"
    assert Departure.of(np.array([1, 1e-9, 1e-9], np.float32), "float16").kind is None
    assert Departure.of(np.array([1e-9, 1e-9], np.float32), "float16").kind == "underflow"
    assert Departure.of(np.zeros((0, 3), np.float32), "float16").kind is None


def test_builds_with_samples_warn_by_themselves() -> None:
    """A build for bytes and half precision has data: those of the calibration."""
    model = chain(300, 300, 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        calibration = mlirt.calibrate(model, [X], target="cpu", progress=False)
    kept = {"conv1": "fp32", "relu1": "fp32", "conv2": "fp16", "conv3": "fp32"}
    with pytest.warns(AccuracyWarning, match="FP16: the results of .* leave the range of float16.*conv2"):
        mlirt.compile(model, "cuda", "int8+fp16", calibration=calibration, heuristic=True, layer_precisions=kept)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        mlirt.compile(model, "cuda", "int8", calibration=calibration, heuristic=True)
        mlirt.compile(model, "cpu", "int8+fp16", calibration=calibration)


def test_rt_exec_names_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(chain(300, 300, 1e-3), tmp_path / "wide.onnx")
    write_model(chain(1, 1, 1), tmp_path / "right.onnx")
    np.save(tmp_path / "x.npy", X["x"])
    given = [f"--loadInputs=x:{tmp_path / 'x.npy'}", "--buildOnly", "--heuristic", "--fp16"]
    wide, right = (f"--onnx={tmp_path / name}.onnx" for name in ("wide", "right"))
    assert rt_exec.main([wide, "--target=cpu", "--checkRange", *given]) == 0
    out = capsys.readouterr().out
    assert re.search(r"\[W\] layer 'conv2' \(tensor 'c'\): [\d.]+% of its numbers become infinite in float16;", out)
    flags = re.search(r"--layerPrecisions=\S+ --precisionConstraints=obey", out)
    assert flags is not None
    last = out.rstrip().split("\n")[-1]
    assert last.endswith("# WARNING: FP16: the results of 2 layers leave the range of float16")
    for model, more in ((right, []), (wide, flags[0].split())):
        assert rt_exec.main([model, "--target=cpu", "--checkRange", *given, *more]) == 0
        out = capsys.readouterr().out
        assert "[I] The numbers of all" in out
        assert "WARNING" not in out
    # With inputs that are given, a build in half precision looks at them unasked; on a CPU there is none.
    assert rt_exec.main([wide, "--target=cuda", *given]) == 0
    assert "# WARNING: FP16: the results of 2 layers leave" in capsys.readouterr().out
    for flags_without in (["--target=cpu", *given], ["--target=cuda", *given[1:]], ["--target=cuda", *given[:3]]):
        assert rt_exec.main([wide, *flags_without]) == 0
        assert "WARNING" not in capsys.readouterr().out


def test_outputs_that_are_not_finite_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = model_of([helper.make_node("Log", ["x"], ["y"], name="log")], {"x": ("float32", (4,))}, ["y"])
    write_model(model, tmp_path / "log.onnx")
    np.save(tmp_path / "x.npy", np.array([0, 1, -1, 2], np.float32))
    np.save(tmp_path / "nan.npy", np.array([np.nan, 1, 1, 2], np.float32))
    quick = [f"--onnx={tmp_path / 'log.onnx'}", "--target=cpu", "--warmUp=0", "--duration=0", "--iterations=1"]
    assert rt_exec.main([*quick, f"--loadInputs=x:{tmp_path / 'x.npy'}"]) == 0
    lines = capsys.readouterr().out.rstrip().split("\n")
    assert "[W] output 'y': 2 of 4 numbers are infinite or NaN, but those of all inputs are finite" in lines[-2]
    assert "WARNING" not in lines[-1], "no half precision is the cause"
    assert rt_exec.main([*quick, f"--loadInputs=x:{tmp_path / 'nan.npy'}"]) == 0
    assert "infinite or NaN" not in capsys.readouterr().out


class _HalfEngine:
    """An engine on a GPU, as far as rt-exec looks at it here."""

    target = "cuda"


def test_half_precision_is_named_as_the_cause() -> None:
    found = {"y": np.array([1, np.inf], np.float32), "ids": np.array([1])}
    arguments = parse_arguments(["--onnx=a.onnx", "--fp16"])
    engine: Any = _HalfEngine()
    with pytest.warns(AccuracyWarning, match=r"output 'y': 1 of 2 numbers .*--fp16 --checkRange"):
        report_outputs(engine, arguments, X, found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_outputs(engine, arguments, X, {"y": X["x"]})
        report_outputs(engine, parse_arguments(["--onnx=a.onnx"]), X, found)
