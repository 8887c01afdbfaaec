"""Launches of each family: right ones are inside of their extents whatever the lengths, others are refused."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from family_models import FAMILIES
from onnx import helper
from onnx_models import model_of

from mlirt.builder.build import BuildOptions, build_plan
from mlirt.builder.extents import launch_reader
from mlirt.builder.extents.contract import contract_from
from mlirt.builder.extents.kernel_reader import Access
from mlirt.builder.extents.launch_reader import LaunchReader
from mlirt.builder.plan_writer.manifest import manifest_of
from mlirt.builder.tactics.tuning import tuning
from mlirt.dialects.context import RtContext
from mlirt.dialects.kernel.core import FuncOp
from mlirt.errors import CompileError, PlanError
from mlirt.frontend.onnx.importer import import_model
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.manifest import BufferArgument, Manifest
from mlirt.runtime.plan_file import Plan, make_plan
from mlirt.runtime.shape_binding import bind_shapes

Inputs = Mapping[str, tuple[str, list[int | str]]]
_LENGTHS = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65)


def weight(*shape: int, dtype: str = "float32") -> Any:
    return np.ones(shape, dtype)


def node(kind: str, names: str, outputs: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, names.split(" "), outputs.split(), name="layer1", **attributes)


F, L = "float32", "int64"
IMAGE: Inputs = {"x": (F, ["n", 16, "h", "w"])}
ROWS: Inputs = {"x": (F, ["n", "m"])}
SCALES = np.array([1, 1, 2.5, 2], np.float32)
PADS: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
CASES: list[tuple[str, onnx.NodeProto, Inputs, dict[str, Any]]] = [
    ("convolution", node("Conv", "x w", **PADS), IMAGE, {"w": weight(24, 16, 3, 3)}),
    ("convolution", node("Conv", "x w", strides=[2, 2], **PADS), IMAGE, {"w": weight(20, 16, 3, 3)}),
    ("convolution", node("Conv", "x w"), IMAGE, {"w": weight(40, 16, 1, 1)}),
    ("winograd", node("Conv", "x w", **PADS), {"x": (F, ["n", 64, 13, 29])}, {"w": weight(64, 64, 3, 3)}),
    ("winograd", node("Conv", "x w", **PADS), {"x": (F, ["n", 64, "h", 40])}, {"w": weight(72, 64, 3, 3)}),
    ("depthwise", node("Conv", "x w", group=16, **PADS), IMAGE, {"w": weight(16, 1, 3, 3)}),
    ("", node("ConvTranspose", "x w", strides=[2, 2]), IMAGE, {"w": weight(16, 8, 3, 3)}),
    ("window", node("MaxPool", "x", strides=[2, 2], **PADS), IMAGE, {}),
    ("matmul", node("MatMul", "x w"), {"x": (F, ["n", "m", 40])}, {"w": weight(40, 50)}),
    ("matmul", node("MatMul", "x z"), {"x": (F, ["n", "m"]), "z": (F, ["m", "k"])}, {}),
    ("matmul", node("MatMul", "x z"), {"x": (F, ["n", 40, 32]), "z": (F, ["n", 32, 42])}, {}),
    ("matmul", node("MatMul", "x z"), {"x": (F, ["n", 4, 50, 64]), "z": (F, ["n", 4, 64, 50])}, {}),
    ("softmax", node("Softmax", "x"), ROWS, {}),
    ("", node("LayerNormalization", "x w"), {"x": (F, ["n", "m", 40])}, {"w": weight(40)}),
    ("reduction", node("ReduceSum", "x a", keepdims=0), ROWS, {"a": np.array([0])}),
    ("reduction", node("ReduceMax", "x", keepdims=0, axes=[1]), ROWS, {}),
    ("cumulative", node("CumSum", "x a"), ROWS, {"a": np.array(1)}),
    ("topk", node("TopK", "x k", "y z"), {"x": (F, ["n", 70])}, {"k": np.array([4])}),
    ("topk", node("TopK", "x k", "y z"), {"x": (F, ["n", 70])}, {"k": np.array([50])}),
    ("resize", node("Resize", "x  s", mode="linear"), {"x": (F, ["n", 16, 7, 17])}, {"s": SCALES}),
    ("resize", node("Resize", "x  s", mode="cubic"), IMAGE, {"s": SCALES}),
    ("resize", node("Resize", "x  s", mode="nearest"), {"x": (F, ["n", 3, 9, 5])}, {"s": SCALES}),
    ("", node("Pad", "x p"), ROWS, {"p": np.array([1, 2, 3, 4])}),
    ("", node("Pad", "x p", mode="reflect"), {"x": (F, ["n", 19])}, {"p": np.array([0, 2, 0, 4])}),
    ("", node("Pad", "x p", mode="reflect"), {"x": (F, ["n", "h", "m"])}, {"p": np.array([0, 2, 1, 0, 1, 3])}),
    ("", node("Tile", "x r"), ROWS, {"r": np.array([2, 3])}),
    ("", node("Concat", "x z", axis=0), {"x": (F, ["n", "m"]), "z": (F, ["k", "m"])}, {}),
    ("", node("Slice", "x s e a t"), ROWS, {"s": [-1], "e": [-(2**63)], "a": [1], "t": [-1]}),
    ("", node("Transpose", "x", perm=[0, 3, 1, 2]), IMAGE, {}),
    ("", node("Add", "x z"), {"x": (F, ["n", "m"]), "z": (F, ["m"])}, {}),
    ("gather", node("Gather", "x i", axis=1), {"x": (F, ["n", "m"]), "i": (L, ["k"])}, {}),
    (
        "scatter",
        node("ScatterElements", "x i z"),
        {"x": (F, ["n", "m"]), "i": (L, ["k", "m"]), "z": (F, ["k", "m"])},
        {},
    ),
    (
        "rnn",
        node("LSTM", "x w r", hidden_size=24),
        {"x": (F, ["n", "m", 9])},
        {"w": weight(1, 96, 9), "r": weight(1, 96, 24)},
    ),
    (
        "rnn",
        node("GRU", "x w r  l", hidden_size=8),
        {"x": (F, ["n", "m", 9]), "l": ("int32", ["m"])},
        {"w": weight(1, 24, 9), "r": weight(1, 24, 8)},
    ),
]


def without_code(module: Any, machine: Any, report: Any) -> tuple[dict[str, bytes], dict[str, dict[str, object]]]:
    """What stands for machine code in plans that nobody runs."""
    names = [op.sym_name.data for op in module.body.block.ops if isinstance(op, FuncOp)]
    return {f"{name}.o": b"" for name in [*names, "main"]}, {
        name: {"symbol": name, "object": f"{name}.o"} for name in names
    }


def plan_of(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The plan of a model for this CPU, with no code in it."""
    monkeypatch.setattr("mlirt.builder.build._cpu_code", without_code)
    context = RtContext()
    return build_plan(import_model(model, context), context, "cpu")


def shapes_of(manifest: Manifest, seed: str) -> Iterator[list[tuple[int, ...]]]:
    """Random shapes of the inputs."""
    choose = random.Random(seed)
    for _ in range(12):
        lengths = {symbol.name: choose.choice(_LENGTHS) for symbol in manifest.symbols}
        yield [tuple(evaluate(dim, lengths) for dim in one.shape) for one in manifest.given_inputs]


def moved(manifest: Manifest, launch: int, place: int, elements: int) -> Manifest:
    """The manifest with one pointer so many elements farther on."""
    record = manifest.launches[launch]
    pointer = record.args[place]
    assert isinstance(pointer, BufferArgument)
    symbol = manifest.kernels[record.kernel].symbol
    width = next((one.width for one in manifest.contracts[symbol][0].extents if one.place == place), 1)
    other = replace(pointer, offset=("+", pointer.offset, elements * width))
    args = (*record.args[:place], other, *record.args[place + 1 :])
    return replace(
        manifest,
        launches=(*manifest.launches[:launch], replace(record, args=args), *manifest.launches[launch + 1 :]),
    )


def refused(manifest: Manifest, launch: int, shapes: Sequence[tuple[int, ...]], elements: int) -> list[int]:
    """The pointers of a launch that must not be so many elements farther on."""
    found: list[int] = []
    for place, one in enumerate(manifest.launches[launch].args):
        if isinstance(one, BufferArgument):
            try:
                bind_shapes(moved(manifest, launch, place, elements), shapes)
            except PlanError as error:
                if "layer layer1: its kernel would touch bytes" in str(error):
                    found.append(place)
    return found


@pytest.mark.parametrize("is_of_the_compiler", [False, True])
def test_a_launch_of_more_elements_is_refused(is_of_the_compiler: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether somebody has changed the plan, or the compiler is wrong."""

    records: list[dict[str, Any]] = []

    def overrun(record: dict[str, Any]) -> dict[str, Any]:
        number = next(one for one in record["launches"][0]["args"] if "int" in one)
        number["int"] = ["+", number["int"], 1]
        return record

    def kept(module: Any, name: str) -> dict[str, Any]:
        records.append(manifest_of(module, name))
        return overrun(records[-1]) if is_of_the_compiler else records[-1]

    monkeypatch.setattr("mlirt.builder.build.manifest_of", kept)
    plan = plan_of(model_of([node("Relu", "x")], ROWS, ["y"], {}), monkeypatch)
    if not is_of_the_compiler:
        bind_shapes(plan.manifest, [(3, 4)])
        plan = make_plan(overrun(records[-1]), plan.sections, {})
    with pytest.raises(PlanError, match="layer layer1: its kernel would touch bytes 0 to 52 of a buffer of 48 bytes"):
        bind_shapes(plan.manifest, [(3, 4)])


def test_as_many_of_the_largest_as_a_run_says(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of([node("TopK", "x k", "y z")], {"x": (F, ["n", "m"]), "k": (L, [1])}, ["y", "z"], {})
    manifest = plan_of(model, monkeypatch).manifest
    assert any(kernel.name.startswith("select") for kernel in manifest.kernels)
    (count,) = manifest.sizes
    for k in (0, 1, 3, 200):
        program = bind_shapes(manifest, [(2, 200), (1,)], {count: k}).program
        assert set(range(len(manifest.launches))) <= set(program)  # none of them is refused


def _name(case: int) -> str:
    return f"{CASES[case][1].op_type}-{case}"


@pytest.mark.parametrize("case", range(len(CASES)), ids=_name)
def test_right_launches_fit_and_one_element_beyond_does_not(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    family, layer, inputs, weights = CASES[case]
    weights = {name: np.asarray(one) for name, one in weights.items()}
    manifest = plan_of(model_of([layer], inputs, list(layer.output), weights), monkeypatch).manifest
    assert not manifest.sealed
    kernels = [kernel.name for kernel in manifest.kernels]
    launches = [i for i, one in enumerate(manifest.launches) if kernels[one.kernel].startswith(family)]
    assert launches, kernels
    for number, shapes in enumerate(shapes_of(manifest, layer.op_type)):
        bind_shapes(manifest, shapes)
        for launch in launches if number < 3 else []:
            assert refused(manifest, launch, shapes, 1), (kernels[manifest.launches[launch].kernel], shapes)


PIXELS: Inputs = {"x": (F, [2, 32, 14, 14])}
WIDE_PIXELS: Inputs = {"x": (F, [8, 64, 28, 28])}
GPU_CASES: list[tuple[str, onnx.NodeProto, Inputs, dict[str, Any]]] = [
    ("pointwise", node("Relu", "x"), {"x": (F, [5, 77])}, {}),
    ("convolution", node("Conv", "x w"), WIDE_PIXELS, {"w": weight(144, 64, 1, 1)}),
    ("depthwise", node("Conv", "x w", group=32, **PADS), PIXELS, {"w": weight(32, 1, 3, 3)}),
    ("matmul", node("MatMul", "x w"), {"x": (F, [3, 64, 128])}, {"w": weight(128, 96)}),
    ("", node("Softmax", "x"), {"x": (F, [7, 50])}, {}),
    ("", node("ReduceMean", "x", keepdims=0, axes=[1]), {"x": (F, [7, 50, 24])}, {}),
    # Products, convolutions and rows whose sizes are no multiples of anything.
    ("matmul", node("MatMul", "x w"), {"x": (F, [5, 67, 129])}, {"w": weight(129, 95)}),
    ("matmul", node("MatMul", "x w"), {"x": (F, [512, 768])}, {"w": weight(768, 3072)}),
    ("convolution", node("Conv", "x w", **PADS), {"x": (F, [5, 33, 15, 13])}, {"w": weight(47, 33, 3, 3)}),
    (
        "convolution",
        node("ConvTranspose", "x w", strides=[2, 2]),
        {"x": (F, [3, 16, 9, 7])},
        {"w": weight(16, 9, 3, 3)},
    ),
    ("normalization", node("InstanceNormalization", "x s s"), {"x": (F, [3, 5, 9, 7])}, {"s": weight(5)}),
    ("cumulative", node("CumSum", "x a"), {"x": (F, [9, 13])}, {"a": np.array(1)}),
    # Which elements are read or written follows from data.
    ("gather", node("Gather", "x i"), {"x": (F, [30, 24]), "i": (L, [7])}, {}),
    ("topk", node("TopK", "x k", "y z"), {"x": (F, [9, 12])}, {"k": np.array([10])}),
    (
        "rnn",
        node("LSTM", "x w r", "y", hidden_size=9),
        {"x": (F, [5, 3, 7])},
        {"w": weight(1, 36, 7), "r": weight(1, 36, 9)},
    ),
]


def gpu_plan_of(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The plan of a model for a GPU at half precision, with no code in it."""

    def code(module: Any, architectures: Any, report: Any) -> tuple[dict[str, bytes], dict[str, dict[str, object]]]:
        names = [op.sym_name.data for op in module.body.block.ops if isinstance(op, FuncOp)]
        return {name: b"" for name in names}, {name: {"symbol": name, "object": {"sm_90a": name}} for name in names}

    monkeypatch.setattr("mlirt.builder.build._cuda_code", code)
    context = RtContext()
    with tuning(heuristic=True) as choice:
        options = BuildOptions("fp16", tuning=choice, architectures=["sm_90a"])
        return build_plan(import_model(model, context), context, "cuda", options)


def _gpu_name(case: int) -> str:
    return f"{GPU_CASES[case][1].op_type}-{case}"


class _OneMore(LaunchReader):
    """As if each access went one element further."""

    @property
    def accesses(self) -> list[Access]:
        one = self.numbers.constant(1)
        return [replace(found, high=self.numbers.add(found.high or 0, one)) for found in super().accesses]


def _not_kept(*_: object) -> None:
    """Nothing: of a cache, and of blocks that would be enough."""


@pytest.mark.parametrize("case", range(len(GPU_CASES)), ids=_gpu_name)
def test_outermost_blocks_and_iterations_say_what_all_say(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[Any, ...]] = []

    def noted(*given: Any) -> LaunchReader:
        read.append(given)
        return LaunchReader(*given)

    monkeypatch.setattr("mlirt.builder.extents.kept_contracts.LaunchReader", noted)
    monkeypatch.setattr("mlirt.builder.extents.kept_contracts.KernelCache.get", _not_kept)
    _, layer, inputs, weights = GPU_CASES[case]
    arrays = {name: np.asarray(one) for name, one in weights.items()}
    gpu_plan_of(model_of([layer], inputs, list(layer.output), arrays), monkeypatch)
    assert read
    for kernel, constants, grid, _ in read:
        with monkeypatch.context() as patch:
            patch.setattr(launch_reader, "_AT_ONCE", 1)
            patch.setattr(launch_reader, "_FOLLOWED_ITERATIONS", 2)
            outermost = LaunchReader(kernel, constants, grid)
            patch.setattr(launch_reader, "_FOLLOWED_ITERATIONS", 1 << 60)
            patch.setattr(launch_reader, "_AT_ONCE", 1 << 18)
            patch.setattr(LaunchReader, "_follow_outermost", _not_kept)
            every = LaunchReader(kernel, constants, grid)
        assert contract_from(outermost) == contract_from(every), kernel.sym_name
        assert not outermost.is_sure or every.is_sure


def test_a_launch_that_leaves_its_buffers_is_an_error_of_the_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLIRT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("mlirt.builder.extents.kept_contracts.LaunchReader", _OneMore)
    model = model_of([node("Relu", "x")], {"x": (F, [8, 1024])}, ["y"], {})
    with pytest.raises(CompileError, match=r"layer layer1.*: kernel \w+ leaves the buffers of its arguments .*defect"):
        gpu_plan_of(model, monkeypatch)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_contracts_on_a_gpu(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but one: which boxes are kept, and where they go, is up to data."""
    manifest = gpu_plan_of(FAMILIES[family]()[0], monkeypatch).manifest
    sealed = {manifest.kernels[manifest.launches[i].kernel].name.split("_")[0] for i in manifest.sealed}
    assert sealed <= ({"pointwise", "topk"} if family == "suppress" else set())


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_sequences_without_steps_are_not_read_on_a_gpu(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is followed for length 0, too; `CompileError` where the first step's input is read all the same."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    weights = {"w": weight(1, gates * 9, 7), "r": weight(1, gates * 9, 9)}
    layer = node(kind, "x w r", hidden_size=9, direction="reverse")
    manifest = gpu_plan_of(model_of([layer], {"x": (F, ["n", 3, 7])}, ["y"], weights), monkeypatch).manifest
    assert any(kernel.name.startswith("rnn") for kernel in manifest.kernels)


@pytest.mark.parametrize("case", range(len(GPU_CASES)), ids=_gpu_name)
def test_launches_on_a_gpu_fit_and_some_elements_beyond_do_not(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that move vectors, copy asynchronously and use matrix units among them: nothing is sealed."""
    family, layer, inputs, weights = GPU_CASES[case]
    weights = {name: np.asarray(one) for name, one in weights.items()}
    manifest = gpu_plan_of(model_of([layer], inputs, list(layer.output), weights), monkeypatch).manifest
    assert not manifest.sealed
    kernels = [kernel.name for kernel in manifest.kernels]
    launches = [i for i, one in enumerate(manifest.launches) if kernels[one.kernel].startswith(family)]
    assert launches, kernels
    shapes = [tuple(evaluate(dim, {}) for dim in one.shape) for one in manifest.given_inputs]
    bind_shapes(manifest, shapes)
    for launch in launches:
        assert refused(manifest, launch, shapes, 8), kernels[manifest.launches[launch].kernel]
