"""What an algorithm selector is told of each layer and decides, by TensorRT's names (tensorrt-features.md#15.1 to
15.8).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from fake_timer import FakeTimer, without_compiler
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

import mlirt as trt
from mlirt.builder.profiles import read_profiles
from mlirt.builder.tactics.selection import Tuning, select_tactics
from mlirt.builder.usual_sizes import name_usual_sizes
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.target import Target
from mlirt.errors import CompileError, InvalidInputError
from mlirt.frontend.onnx.importer import import_model
from mlirt.kernels.lib.tactics.registry import TACTIC
from mlirt.passes.pipeline import PipelineOptions, run_phases

_PROFILE = {"x": ((1, 64, 12, 12), (4, 64, 12, 12), (8, 64, 12, 12))}


@pytest.fixture(autouse=True)
def _compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)


class Recorder(trt.IAlgorithmSelector):
    """Notes what it is asked and told; allows what it is told to, by name, and all of what it does not know."""

    def __init__(self, wanted: Sequence[str] = (), *, nothing: bool = False) -> None:
        trt.IAlgorithmSelector.__init__(self)
        self.wanted, self.nothing = wanted, nothing
        self.asked: dict[str, tuple[trt.IAlgorithmContext, Sequence[trt.IAlgorithm]]] = {}
        self.told: list[tuple[trt.IAlgorithmContext, trt.IAlgorithm]] = []

    def select_algorithms(self, context: trt.IAlgorithmContext, choices: Sequence[trt.IAlgorithm]) -> list[int]:
        self.asked[context.name] = context, choices
        if self.nothing:
            return []
        known = [place for place, one in enumerate(choices) if one.name in self.wanted]
        return known or list(range(len(choices)))

    def report_algorithms(self, contexts: Sequence[trt.IAlgorithmContext], choices: Sequence[trt.IAlgorithm]) -> None:
        self.told = list(zip(contexts, choices, strict=True))


class Replayer(Recorder):
    """Allows the variants that another build was told of."""

    def __init__(self, told: Sequence[tuple[trt.IAlgorithmContext, trt.IAlgorithm]]) -> None:
        super().__init__()
        self.variants = {context.name: one.algorithm_variant for context, one in told}

    def select_algorithms(self, context: trt.IAlgorithmContext, choices: Sequence[trt.IAlgorithm]) -> list[int]:
        variant = self.variants[context.name]
        return [place for place, one in enumerate(choices) if one.algorithm_variant == variant]


def model() -> onnx.ModelProto:
    """A convolution with a rectifier, a reshape of its result, and a product."""
    noise = np.random.default_rng(0)
    kernel, weights = (noise.standard_normal(shape).astype(np.float32) for shape in ((64, 64, 3, 3), (144, 40)))
    stored = [numpy_helper.from_array(kernel, "kernel"), numpy_helper.from_array(weights, "weights")]
    stored.append(numpy_helper.from_array(np.array([0, 64, 144]), "shape"))
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["a"], name="relu"),
        helper.make_node("Reshape", ["a", "shape"], ["r"], name="flatten"),
        helper.make_node("MatMul", ["r", "weights"], ["y"], name="product"),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (
        ("x", ("n", 64, 12, 12)), ("y", ("n", 64, 40))))  # fmt: skip
    graph = helper.make_graph(nodes, "three", [x], [y], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def choose(tuning: Tuning) -> dict[str, str]:
    """The tactics that the ops of the network name; those that do not are lowered by the one that is tried first."""
    context, target = RtContext(), Target("cuda")
    module = import_model(model(), context, {}, None)
    name_usual_sizes(module, read_profiles(_PROFILE)[0])
    run_phases(module, context, last="layout", options=PipelineOptions("cuda"))
    select_tactics(module, context, target, tuning, lambda text, done, total: None)
    return _named(module)


def _named(module: ModuleOp) -> dict[str, str]:
    from mlirt.dialects.locations import name_of

    return {name_of(op): str(op.attributes.get(TACTIC)) for op in module.walk() if isinstance(op, FusedOp)}


def test_the_fastest_of_those_that_are_returned_is_taken_and_reported() -> None:
    """tensorrt-features.md#15.1, 15.2."""
    free = Recorder()
    choose(Tuning(FakeTimer(), selector=free))
    _, choices = free.asked["product"]
    some = [choices[2], choices[4]]
    fastest = min(some, key=lambda one: one.timing_msec).name
    recorder = Recorder([one.name for one in some])
    named = choose(Tuning(FakeTimer(), selector=recorder))
    assert named["product"] == f'"{fastest}"'
    assert {context.name: one.name for context, one in recorder.told}["product"] == fastest


def test_a_context_has_the_shapes_of_the_profile() -> None:
    """tensorrt-features.md#15.3: the constants of a layer are not among its inputs."""
    recorder = Recorder()
    choose(Tuning(selector=recorder))
    context, _ = recorder.asked["conv + relu"]
    assert (context.num_inputs, context.num_outputs) == (1, 1)
    assert context.get_shape(0) == ((1, 64, 12, 12), (4, 64, 12, 12), (8, 64, 12, 12))
    assert [shape[0] for shape in context.get_shape(1)] == [1, 4, 8]
    with pytest.raises(InvalidInputError, match="has 2 inputs and outputs, there is no number 2"):
        context.get_shape(2)


def test_an_algorithm_has_a_variant_and_tells_how_its_tensors_lie() -> None:
    """tensorrt-features.md#15.4."""
    recorder = Recorder()
    choose(Tuning(FakeTimer(), selector=recorder))
    _, choices = recorder.asked["product"]
    variants = [one.algorithm_variant for one in choices]
    assert len(set(variants)) == len(choices)
    files = {one.name.partition(":")[0]: one.algorithm_variant.implementation for one in choices}
    assert len(set(files.values())) == len(files)
    given, made = (choices[0].get_algorithm_io_info(index) for index in (0, 1))
    assert (given.tensor_format, given.dtype, given.strides) == (trt.TensorFormat.LINEAR, trt.float32, (9216, 144, 1))
    assert made.strides == (2560, 40, 1)
    assert all(one.timing_msec > 0 for one in choices)
    assert any(one.workspace_size > 0 for one in choices)
    assert min(one.workspace_size for one in choices) == 0


def test_nothing_means_anything_unless_it_is_rejected() -> None:
    """tensorrt-features.md#15.5."""
    assert choose(Tuning(FakeTimer(), selector=Recorder(nothing=True))) == choose(Tuning(FakeTimer()))
    why = "layer conv [+] relu: the algorithm selector allows none of .* REJECT_EMPTY_ALGORITHMS is set"
    with pytest.raises(InvalidInputError, match=why):
        choose(Tuning(FakeTimer(), selector=Recorder(nothing=True), reject_empty=True))


def test_layers_are_those_after_fusion_and_those_without_work_take_no_time() -> None:
    """tensorrt-features.md#15.6, 15.7."""
    recorder = Recorder()
    named = choose(Tuning(FakeTimer(), selector=recorder))
    told = {context.name: one.timing_msec for context, one in recorder.told}
    assert list(told) == list(named) == ["conv + relu", "flatten", "product"]
    assert told["flatten"] == 0
    assert told["product"] > 0


def test_returning_what_was_recorded_gives_the_same_tactics() -> None:
    """tensorrt-features.md#15.8: whatever the times say the second time, and without any."""
    first = Recorder()
    named = choose(Tuning(FakeTimer(lambda place: 100.0 - place), selector=first))
    assert any(name != "None" for name in named.values())
    assert choose(Tuning(FakeTimer(), selector=Replayer(first.told))) == named
    assert choose(Tuning(selector=Replayer(first.told))) == named


def test_a_limit_of_workspace_leaves_out_what_takes_more() -> None:
    """tensorrt-features.md#3.6, 15.17: the error names the layer, what it takes and what it may take."""
    recorder = Recorder()
    choose(Tuning(FakeTimer(), selector=recorder, workspace=1))
    _, choices = recorder.asked["product"]
    assert {one.workspace_size for one in choices} == {0}
    chosen = choose(Tuning(workspace=1 << 40))
    assert chosen == choose(Tuning(workspace=1 << 41))
    assert chosen["product"] == "None", "the one that lowering takes anyway"
    why = "could not find any implementation for node conv [+] relu: the smallest workspace .* 0 bytes, the limit is -1"
    with pytest.raises(CompileError, match=why):
        choose(Tuning(workspace=-1))


def test_layers_of_one_name_are_told_apart() -> None:
    """A record of tactics is by name (Polygraphy's `--save-tactics`): of two layers of one name each keeps its own."""
    noise = np.random.default_rng(0)
    stored = [
        numpy_helper.from_array(noise.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("a", (40, 144)), ("b", (144, 24)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], name="same"),
        helper.make_node("MatMul", ["h", "b"], ["y"], name="same"),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (8, 40)), ("y", (8, 24))))
    graph = helper.make_graph(nodes, "g", [x], [y], stored)
    given = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    recorder = Recorder()
    first = trt.compile(given, target="cpu", algorithm_selector=recorder, fast_math="none")  # or both are one
    names = [context.name for context, _ in recorder.told]
    assert "same" in names
    assert "same_2" in names
    assert len(set(names)) == len(names)
    again = Replayer(recorder.told)
    second = trt.compile(given, target="cpu", algorithm_selector=again, fast_math="none")
    assert [one.algorithm_variant for _, one in again.told] == [one.algorithm_variant for _, one in recorder.told]
    feeds = {"x": noise.standard_normal((8, 40)).astype(np.float32)}
    np.testing.assert_array_equal(first.run(feeds)["y"], second.run(feeds)["y"])
