"""Equal ops are lowered once; what comes out is what comes out when each is lowered by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from lowered_network import parse_module
from onnx import helper
from onnx_models import model_of
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from mlirt.dialects.interpreter import input_names
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.dialects.xdsl_compat import module_text
from mlirt.frontend.onnx.importer import import_model
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.passes.lowering.convert_fused_to_kernel import ConvertFusedToKernelPass
from mlirt.passes.pipeline import PipelineOptions, run_passes, run_phases
from mlirt.tools.input_files import new_context

Layer = Callable[[int, str], tuple[list[onnx.NodeProto], dict[str, Any]]]


def chain(layer: Layer, count: int, shape: Sequence[int | str], constants: dict[str, Any] | None = None) -> Any:
    """Layers one behind the other; the first reads `y0`, the last writes `y<count>`."""
    nodes: list[onnx.NodeProto] = []
    stored = dict(constants or {})
    for number in range(count):
        more, weights = layer(number, f"y{number}")
        nodes += more
        stored |= weights
    return model_of(nodes, {"y0": ("float32", shape)}, [f"y{count}"], stored)


def random(*shape: int, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def convolution(number: int, source: str) -> tuple[list[onnx.NodeProto], dict[str, Any]]:
    names = [f"w{number}", f"b{number}"]
    made = helper.make_node("Conv", [source, *names], [f"c{number}"], pads=[1, 1, 1, 1])
    weights = {names[0]: random(32, 32, 3, 3, seed=number), names[1]: random(32, seed=number + 100)}
    return [made, helper.make_node("Relu", [f"c{number}"], [f"y{number + 1}"])], weights


def product(number: int, source: str) -> tuple[list[onnx.NodeProto], dict[str, Any]]:
    names = [f"w{number}", f"b{number}"]
    nodes = [
        helper.make_node("MatMul", [source, names[0]], [f"m{number}"]),
        helper.make_node("Add", [f"m{number}", names[1]], [f"a{number}"]),
        helper.make_node("Tanh", [f"a{number}"], [f"y{number + 1}"]),
    ]
    return nodes, {names[0]: random(64, 64, seed=number), names[1]: random(64, seed=number + 100)}


def copies(number: int, source: str) -> tuple[list[onnx.NodeProto], dict[str, Any]]:
    """Tensors that are copied whole, and joined with constants."""
    nodes = [
        helper.make_node("Transpose", [source], [f"t{number}"], perm=[1, 0]),
        helper.make_node("Concat", [f"t{number}", f"k{number}"], [f"j{number}"], axis=0),
        helper.make_node("ReduceMax", [f"j{number}"], [f"r{number}"], axes=[0], keepdims=1),
        helper.make_node("Add", [f"r{number}", source], [f"y{number + 1}"]),
    ]
    return nodes, {f"k{number}": random(3, 16, seed=number)}


Branch = Callable[[int], tuple[list[onnx.NodeProto], dict[str, Any]]]


def joined(branch: Branch, count: int, shape: Sequence[int | str], axis: int, groups: int = 1) -> Any:
    """Branches that read `x` and write `y<k>`, which are joined along an axis, in groups that are joined behind it."""
    nodes: list[onnx.NodeProto] = []
    stored: dict[str, Any] = {}
    for number in range(count):
        more, weights = branch(number)
        nodes += more
        stored |= weights
    size = count // groups
    for group in range(groups):
        parts = [f"y{number}" for number in range(group * size, (group + 1) * size)]
        nodes.append(helper.make_node("Concat", parts, [f"g{group}"], axis=axis))
    nodes.append(helper.make_node("Concat", [f"g{group}" for group in range(groups)], ["z"], axis=0))
    return model_of(nodes, {"x": ("float32", shape)}, ["z"], stored)


def columns(width: int, depth: int = 64) -> Branch:
    """A product with a bias, `width` columns wide."""

    def branch(number: int) -> tuple[list[onnx.NodeProto], dict[str, Any]]:
        names = [f"w{number}", f"b{number}"]
        nodes = [
            helper.make_node("MatMul", ["x", names[0]], [f"m{number}"]),
            helper.make_node("Add", [f"m{number}", names[1]], [f"y{number}"]),
        ]
        return nodes, {names[0]: random(depth, width, seed=number), names[1]: random(width, seed=number + 100)}

    return branch


def images(number: int) -> tuple[list[onnx.NodeProto], dict[str, Any]]:
    """A convolution whose input is another one's than those of its siblings."""
    nodes = [
        helper.make_node("Add", ["x", f"k{number}"], [f"a{number}"]),
        helper.make_node("Relu", [f"a{number}"], [f"r{number}"]),
        helper.make_node("Conv", [f"r{number}", f"w{number}"], [f"c{number}"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", [f"c{number}"], [f"y{number}"]),
    ]
    return nodes, {f"k{number}": random(1, 32, 1, 1, seed=number), f"w{number}": random(16, 32, 3, 3, seed=number)}


def scaled(number: int) -> tuple[list[onnx.NodeProto], dict[str, Any]]:
    """Elementwise, with a line of numbers."""
    nodes = [
        helper.make_node("Mul", ["x", f"k{number}"], [f"m{number}"]),
        helper.make_node("Tanh", [f"m{number}"], [f"y{number}"]),
    ]
    return nodes, {f"k{number}": random(256, seed=number)}


def lowered(model: onnx.ModelProto, target: str, precision: str, *, repeats: bool) -> ModuleOp:
    context = new_context()
    module = import_model(model, context)
    run_phases(module, context, last="layout", options=PipelineOptions(target=target, precision=precision))
    run_passes(module, context, [ConvertFusedToKernelPass(target, repeats=repeats)])
    return module


@pytest.fixture
def by_tactic(monkeypatch: pytest.MonkeyPatch) -> list[Operation]:
    """The ops that a tactic has lowered."""
    found: list[Operation] = []
    lower = Lowering._lower_by_tactic  # pyright: ignore[reportPrivateUsage]

    def counted(self: Lowering, op: Operation) -> None:
        found.append(op)
        lower(self, op)

    monkeypatch.setattr(Lowering, "_lower_by_tactic", counted)
    return found


CASES = {
    "convolution": (convolution, 12, (1, 32, 12, 12), 4),
    "convolution, dynamic": (convolution, 8, ("n", 32, 12, "w"), 4),
    "product": (product, 12, (24, 64), 2),
    "product, dynamic": (product, 12, ("n", 64), 2),
    "copies": (copies, 6, (16, 16), 14),
}


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("case", CASES)
def test_equal_ops_are_lowered_as_if_each_were_alone(case: str, target: str) -> None:
    layer, count, shape, _ = CASES[case]
    model = chain(layer, count, shape)
    texts = [module_text(lowered(model, target, "fp32", repeats=repeats)) for repeats in (True, False)]
    assert texts[0] == texts[1]


def of_one_weight(number: int, source: str) -> tuple[list[onnx.NodeProto], dict[str, Any]]:
    nodes = [
        helper.make_node("MatMul", [source, "shared"], [f"m{number}"]),
        helper.make_node("Relu", [f"m{number}"], [f"y{number + 1}"]),
    ]
    return nodes, {"shared": random(64, 64, seed=0)}


@pytest.mark.parametrize("target", ["cuda", "cpu"])
def test_a_weight_that_equal_ops_share_is_packed_for_the_first_two(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[object] = []
    pack = Lowering.packed

    def recorded(self: Lowering, value: Any, *args: Any, **kwargs: Any) -> Any:
        packed.append(value)
        return pack(self, value, *args, **kwargs)

    alone = lowered(chain(of_one_weight, 8, [64, 64]), target, "fp16", repeats=False)
    monkeypatch.setattr(Lowering, "packed", recorded)
    repeated = lowered(chain(of_one_weight, 8, [64, 64]), target, "fp16", repeats=True)
    assert 1 <= len(packed) <= 3
    assert module_text(repeated) == module_text(alone)


@pytest.mark.parametrize("case", CASES)
def test_equal_ops_are_lowered_once(case: str, by_tactic: list[Operation]) -> None:
    layer, count, shape, most = CASES[case]
    lowered(chain(layer, count, shape), "cpu", "fp32", repeats=True)
    once = len(by_tactic)
    assert once <= most
    by_tactic.clear()
    lowered(chain(layer, count, shape), "cpu", "fp32", repeats=False)
    assert len(by_tactic) >= count


@dataclass(frozen=True)
class Joined:
    """A case of `joined`, and how many ops tactics lower at most."""

    branch: Branch
    count: int
    shape: Sequence[int | str]
    axis: int
    groups: int
    most: int

    def model(self) -> onnx.ModelProto:
        return joined(self.branch, self.count, self.shape, self.axis, self.groups)


JOINED = {
    "columns": Joined(columns(32), 24, (4, 64), 1, 1, 6),
    "columns of odd width": Joined(columns(5), 40, (4, 64), 1, 1, 19),
    "whole lines": Joined(columns(256), 24, (4, 64), 1, 1, 3),
    "large tiles": Joined(columns(128, 256), 12, (256, 256), 1, 1, 4),
    "rows of a dynamic length": Joined(columns(32), 12, ("n", 64), 1, 1, 6),
    "one below the other": Joined(columns(64), 12, (16, 64), 0, 1, 3),
    "one below the other, dynamic": Joined(columns(64), 12, ("n", 64), 0, 1, 13),
    "in groups": Joined(columns(256), 12, (4, 64), 1, 3, 7),
    "images": Joined(images, 12, (1, 32, 16, 16), 1, 1, 8),
    "elementwise": Joined(scaled, 12, (8, 256), 1, 1, 3),
}


@pytest.mark.parametrize(("target", "precision"), [("cpu", "fp32"), ("cuda", "fp32"), ("cuda", "fp16")])
@pytest.mark.parametrize("case", JOINED)
def test_equal_parts_of_a_concatenation_are_lowered_as_if_each_were_alone(
    case: str, target: str, precision: str
) -> None:
    model = JOINED[case].model()
    texts = [module_text(lowered(model, target, precision, repeats=repeats)) for repeats in (True, False)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("case", JOINED)
def test_equal_parts_of_a_concatenation_are_lowered_once(case: str, by_tactic: list[Operation]) -> None:
    lowered(JOINED[case].model(), "cpu", "fp32", repeats=True)
    assert len(by_tactic) <= JOINED[case].most


# Three layers `x * a + b` whose constants are read by the tactic (one element) or left where they lie (four).
SCALED = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
{layers}
  func.return %y{count} : tensor<4xf32>
}}
"""
LAYER = """
  %a{k} = trt.constant {{value = dense<{a}> : {type}}} : {type}
  %b{k} = trt.constant {{value = dense<{b}> : {type}}} : {type}
  %y{k} = fused.pointwise {source}, %a{k}, %b{k} {{access = [#fused.access<["d0"]>, #fused.access<["{at}"]>,
      #fused.access<["{at}"]>]}} : (tensor<4xf32>, {type}, {type}) -> tensor<4xf32> {{
  ^bb0(%e: f32, %f: f32, %g: f32):
    %u = arith.mulf %e, %f : f32
    %v = arith.addf %u, %g : f32
    fused.yield %v : f32
  }}
"""


@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize(
    "constants",
    [[(2.5, 3.5), (2.5, 3.5), (4.5, 3.5)], [(2.5, 2.5), (3.5, 4.5), (5.5, 5.5)], [(3.5, 4.5), (5.5, 5.5), (6.5, 7.5)]],
    ids=["one differs", "the first are equal", "the second are equal"],
)
def test_elements_that_a_tactic_reads_and_constants_with_equal_bytes(
    length: int, constants: list[tuple[float, float]]
) -> None:
    type_ = f"tensor<{length}xf32>"
    layers = [
        LAYER.format(k=k, a=a, b=b, type=type_, at="d0" if length > 1 else "0", source=f"%y{k - 1}" if k else "%x")
        for k, (a, b) in enumerate(constants)
    ]
    text = SCALED.format(layers="".join(layers), count=len(constants) - 1)
    found: list[Any] = []
    x = np.arange(4, dtype=np.float32)
    for repeats in (True, False):
        module, context = parse_module(text)
        name = input_names(next(op for op in module.ops if isinstance(op, FuncOp)))[0]
        run_passes(module, context, [ConvertFusedToKernelPass("cpu", tactic="generic", repeats=repeats)])
        found += run_plan(module, context, {name: x}).values()
    expected = x
    for a, b in constants:
        expected = expected * np.float32(a) + np.float32(b)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], expected)
