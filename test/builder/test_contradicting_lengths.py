"""Every op of the importer that needs something of its lengths refuses a run whose lengths contradict it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of, numbers

import mlirt
from mlirt.errors import MlirtError

Shape = tuple[int, ...]
Spec = tuple[str, list[Any]]


@dataclass(frozen=True)
class Case:
    """A node with inputs of dynamic shapes; shapes that fit it, and others that do not."""

    op: str
    inputs: Mapping[str, Spec]
    fits: Sequence[Shape]
    contradicts: Sequence[Sequence[Shape]]
    weights: Mapping[str, Any] = field(default_factory=dict[str, Any])
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    opset: int = 17
    order: str = ""
    """The names of the node's inputs, where they are not those of the inputs and then of the weights."""

    def engine(self, target: str) -> mlirt.Engine:
        names = self.order.split() if self.order else [*self.inputs, *self.weights]
        outputs = [f"y{k}" for k in range(self.outputs)]
        node = helper.make_node(
            self.op, [name.replace("-", "") for name in names], outputs, name="layer1", **self.attributes
        )
        model = model_of([node], dict(self.inputs), outputs, dict(self.weights), opset=self.opset)
        return mlirt.compile(model, target)  # pyright: ignore[reportReturnType]

    def feeds(self, shapes: Sequence[Shape]) -> dict[str, Any]:
        specs = zip(self.inputs.items(), shapes, strict=True)
        return {name: np.ones(shape, dtype) for (name, (dtype, _)), shape in specs}


F, I32, L = "float32", "int32", "int64"


def given(*dims: Any, dtype: str = F) -> Spec:
    return dtype, list(dims)


X4 = given("n", "c", "h", "w")
CASES = [
    Case("Add", {"x": given("n", 3), "y": given("m", 3)}, [(4, 3), (4, 3)], [[(4, 3), (5, 3)]]),
    Case("Sum", {"x": given("n"), "y": given("m"), "z": given("k")}, [(4,)] * 3, [[(4,), (4,), (3,)]]),
    Case("Max", {"x": given("n"), "y": given("m")}, [(4,)] * 2, [[(4,), (3,)]]),
    Case(
        "Where",
        {"c": given("n", dtype="bool"), "x": given("m"), "y": given("k")},
        [(4,)] * 3,
        [[(4,), (4,), (3,)], [(2,), (4,), (4,)]],
    ),
    Case("PRelu", {"x": given("n", "c", 2), "s": given("d", 1)}, [(1, 3, 2), (3, 1)], [[(1, 3, 2), (2, 1)]], opset=16),
    Case(
        "Concat",
        {"x": given("n", "c"), "y": given("m", "d")},
        [(2, 3), (2, 4)],
        [[(2, 3), (3, 3)]],
        attributes={"axis": 1},
    ),
    Case(
        "MatMul", {"x": given("n", "k"), "y": given("l", "m")}, [(2, 3), (3, 4)], [[(2, 3), (4, 4)], [(2, 3), (1, 4)]]
    ),
    Case("MatMul", {"x": given("b", 2, 3), "y": given("a", 3, 2)}, [(2, 2, 3), (2, 3, 2)], [[(2, 2, 3), (3, 3, 2)]]),
    Case(
        "Gemm",
        {"x": given("n", "k"), "y": given("m", "l")},
        [(2, 3), (4, 3)],
        [[(2, 3), (4, 2)]],
        attributes={"transB": 1},
    ),
    Case(
        "Gemm",
        {"x": given("n", 3), "y": given(3, "m"), "c": given("d")},
        [(2, 3), (3, 4), (4,)],
        [[(2, 3), (3, 4), (3,)]],
    ),
    Case(
        "Einsum",
        {"x": given("i", "j"), "y": given("l", "k")},
        [(2, 3), (3, 4)],
        [[(2, 3), (2, 4)]],
        attributes={"equation": "ij,jk->ik"},
    ),
    Case("Einsum", {"x": given("i", "j")}, [(3, 3)], [[(3, 4)]], attributes={"equation": "ii->i"}),
    Case(
        "Conv", {"x": X4}, [(1, 3, 4, 4)], [[(1, 2, 4, 4)], [(1, 4, 4, 4)], [(1, 3, 2, 4)]], {"k": numbers(2, 3, 3, 3)}
    ),
    Case("Conv", {"x": given("n", "c", "w")}, [(1, 4, 4)], [[(1, 2, 4)]], {"k": numbers(2, 2, 1)}, {"group": 2}),
    Case(
        "Conv",
        {"x": X4, "b": given("d")},
        [(1, 3, 4, 4), (2,)],
        [[(1, 3, 4, 4), (3,)]],
        {"k": numbers(2, 3, 1, 1)},
        order="x k b",
    ),
    Case("ConvTranspose", {"x": X4}, [(1, 3, 2, 2)], [[(1, 2, 2, 2)], [(1, 8, 2, 2)]], {"k": numbers(3, 2, 2, 2)}),
    Case(
        "ConvInteger",
        {"x": given("n", "c", "h", "w", dtype="uint8")},
        [(1, 3, 4, 4)],
        [[(1, 2, 4, 4)], [(1, 3, 1, 4)]],
        {"k": np.ones((2, 3, 2, 2), np.uint8)},
    ),
    Case(
        "MatMulInteger",
        {"x": given("n", "k", dtype="uint8"), "y": given("l", "m", dtype="int8")},
        [(2, 3), (3, 4)],
        [[(2, 3), (4, 4)]],
    ),
    Case("MaxPool", {"x": X4}, [(1, 1, 4, 4)], [[(1, 1, 2, 4)]], attributes={"kernel_shape": [3, 3]}),
    Case("AveragePool", {"x": X4}, [(1, 1, 4, 4)], [[(1, 1, 4, 1)]], attributes={"kernel_shape": [3, 3]}),
    Case(
        "MaxPool",
        {"x": X4},
        [(1, 1, 4, 3)],
        [[(1, 1, 4, 2)], [(1, 1, 4, 0)]],
        attributes={"kernel_shape": [3, 5], "strides": [3, 2], "pads": [0, 1, 1, 0]},
    ),
    Case("LpPool", {"x": X4}, [(1, 1, 4, 4)], [[(1, 1, 2, 4)]], attributes={"kernel_shape": [3, 3]}),
    Case("Reshape", {"x": given("n", 3)}, [(4, 3)], [[(3, 3)], [(5, 3)]], {"s": np.array([2, -1])}),
    Case("Reshape", {"x": given("n", "m")}, [(4, 3)], [[(4, 4)], [(2, 3)]], {"s": np.array([6, 2])}),
    Case("Reshape", {"x": given("n", "m")}, [(4, 6)], [[(4, 5)]], {"s": np.array([0, 2, 3])}),
    Case("Split", {"x": given("n", 2)}, [(8, 2)], [[(7, 2)], [(9, 2)], [(3, 2)]], {"s": np.array([3, 5])}, outputs=2),
    Case("Split", {"x": given("n", 2)}, [(6, 2)], [[(5, 2)]], outputs=2),
    Case(
        "Split",
        {"x": given("n", 2)},
        [(4, 2)],
        [[(5, 2)]],
        attributes={"num_outputs": 4},
        outputs=4,
        opset=18,
    ),
    Case("TopK", {"x": given("n", "m")}, [(2, 5)], [[(2, 4)], [(5, 4)]], {"k": np.array([5])}, outputs=2),
    Case("Squeeze", {"x": given("n", "m")}, [(1, 3)], [[(2, 3)], [(0, 3)]], {"axes": np.array([0])}),
    Case("Expand", {"x": given("n", 3)}, [(2, 3)], [[(3, 3)]], {"s": np.array([2, 3])}),
    Case(
        "GatherElements",
        {"x": given("n", "m"), "i": given("k", "l", dtype=L)},
        [(3, 3), (2, 3)],
        [[(3, 3), (2, 4)]],
        attributes={"axis": 0},
    ),
    Case(
        "GatherND",
        {"x": given("b", "m"), "i": given("a", 1, dtype=L)},
        [(3, 3), (3, 1)],
        [[(3, 3), (2, 1)], [(3, 3), (4, 1)]],
        attributes={"batch_dims": 1},
    ),
    Case(
        "ScatterElements",
        {"x": given("n", "m"), "i": given("k", "l", dtype=L), "u": given("p", "q")},
        [(3, 3), (2, 3), (2, 3)],
        [[(3, 3), (2, 3), (1, 3)], [(3, 3), (2, 4), (2, 4)]],
    ),
    Case(
        "ScatterND",
        {"x": given("n", "m"), "i": given("k", 1, dtype=L), "u": given("p", "q")},
        [(3, 4), (2, 1), (2, 4)],
        [[(3, 4), (2, 1), (3, 4)], [(3, 4), (2, 1), (2, 3)]],
    ),
    Case(
        "BatchNormalization",
        {"x": given("n", "c", 2), **{name: given(name) for name in "sbmv"}},
        [(1, 3, 2), (3,), (3,), (3,), (3,)],
        [
            [(1, 2, 2), (3,), (3,), (3,), (3,)],
            [(1, 3, 2), (2,), (3,), (3,), (3,)],
            [(1, 3, 2), (3,), (3,), (3,), (4,)],
            [(1, 3, 2), (1,), (3,), (3,), (3,)],
        ],
    ),
    Case(
        "InstanceNormalization",
        {"x": given("n", "c", 4), "s": given("d"), "b": given("e")},
        [(1, 3, 4), (3,), (3,)],
        [[(1, 3, 4), (2,), (3,)], [(1, 3, 4), (3,), (4,)], [(1, 1, 4), (3,), (3,)], [(1, 3, 4), (1,), (3,)]],
    ),
    Case(
        "LayerNormalization",
        {"x": given("n", "c"), "s": given("d"), "b": given("e")},
        [(2, 3), (3,), (3,)],
        [[(2, 3), (2,), (3,)], [(2, 3), (3,), (4,)], [(2, 1), (3,), (3,)]],
    ),
    Case(
        "RMSNormalization",
        {"x": given("n", "c"), "s": given("d")},
        [(2, 3), (3,)],
        [[(2, 3), (2,)], [(2, 1), (3,)]],
        opset=23,
    ),
    Case(
        "Attention",
        {
            "q": given("b", "h", "s", 4),
            "k": given("c", "i", "t", 4),
            "v": given("d", "j", "u", 4),
            "m": given("e", "f", "g"),
        },
        [(2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (4, 3, 5)],
        [
            [(2, 4, 3, 4), (1, 2, 5, 4), (2, 2, 5, 4), (4, 3, 5)],
            [(2, 4, 3, 4), (2, 2, 5, 4), (1, 2, 5, 4), (4, 3, 5)],
            [(1, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (4, 3, 5)],
            [(2, 4, 3, 4), (2, 2, 5, 4), (2, 1, 5, 4), (4, 3, 5)],
            [(2, 3, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (1, 3, 5)],
            [(2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 6, 4), (4, 3, 5)],
            [(2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (2, 3, 5)],
            [(2, 4, 1, 4), (2, 2, 5, 4), (2, 2, 5, 4), (4, 3, 5)],
        ],
        opset=23,
    ),
    Case(
        "Attention",
        {"q": given("b", "s", "w"), "k": given("c", "t", "x"), "v": given("d", "u", "y")},
        [(2, 3, 8), (2, 5, 8), (2, 5, 6)],
        [
            [(2, 3, 8), (1, 5, 8), (2, 5, 6)],
            [(2, 3, 8), (2, 5, 8), (1, 5, 6)],
            [(2, 3, 8), (2, 5, 8), (2, 1, 6)],
            [(2, 3, 8), (2, 5, 6), (2, 5, 6)],
            [(2, 3, 7), (2, 5, 8), (2, 5, 6)],
        ],
        attributes={"q_num_heads": 2, "kv_num_heads": 2},
        opset=23,
    ),
    Case(
        "RotaryEmbedding",
        {"x": given("b", "h", "s", "w"), "c": given("d", "t", "k"), "n": given("e", "u", "l")},
        [(2, 3, 4, 8), (2, 4, 4), (2, 4, 4)],
        [
            [(2, 3, 4, 8), (1, 4, 4), (1, 4, 4)],
            [(1, 3, 4, 8), (2, 4, 4), (2, 4, 4)],
            [(2, 3, 4, 8), (2, 1, 4), (2, 1, 4)],
            [(2, 3, 4, 8), (2, 4, 4), (2, 4, 1)],
            [(2, 3, 4, 6), (2, 4, 4), (2, 4, 4)],
            [(2, 3, 4, 8), (2, 4, 1), (2, 4, 1)],
        ],
        opset=23,
    ),
    Case(
        "TensorScatter",
        {"x": given("n", "t", 2), "u": given("m", "s", 2)},
        [(2, 4, 2), (2, 3, 2)],
        [[(2, 4, 2), (2, 5, 2)], [(1, 4, 2), (2, 3, 2)]],
        opset=24,
    ),
    Case(
        "GroupNormalization",
        {"x": given("n", 4, 4), "s": given("d"), "b": given("e")},
        [(1, 4, 4), (4,), (4,)],
        [[(1, 4, 4), (2,), (4,)]],
        attributes={"num_groups": 2},
        opset=21,
    ),
    Case(
        "QuantizeLinear",
        {"x": given("n", "c"), "s": given("d")},
        [(2, 3), (3,)],
        [[(2, 3), (2,)], [(2, 3), (4,)]],
        attributes={"axis": 1},
    ),
    Case(
        "DequantizeLinear",
        {"x": given("n", "c", dtype="int8"), "s": given("d")},
        [(2, 3), (3,)],
        [[(2, 3), (2,)]],
        attributes={"axis": 1},
    ),
    Case("DepthToSpace", {"x": X4}, [(1, 8, 2, 3)], [[(1, 6, 2, 3)], [(1, 1, 4, 4)]], attributes={"blocksize": 2}),
    Case(
        "GroupNormalization",
        {"x": given("n", "c", 4), "s": given("d"), "b": given("e")},
        [(1, 4, 4), (4,), (4,)],
        [[(1, 3, 4), (3,), (3,)], [(1, 2, 4), (4,), (4,)]],
        attributes={"num_groups": 2},
        opset=21,
    ),
    Case("SpaceToDepth", {"x": X4}, [(1, 2, 4, 4)], [[(1, 2, 3, 4)], [(1, 2, 4, 5)]], attributes={"blocksize": 2}),
    Case(
        "GridSample",
        {"x": X4, "g": given("m", "p", "q", 2)},
        [(2, 1, 4, 4), (2, 3, 3, 2)],
        [[(2, 1, 4, 4), (3, 3, 3, 2)]],
    ),
    Case(
        "ReverseSequence",
        {"x": given("t", "n"), "l": given("m", dtype=L)},
        [(3, 2), (2,)],
        [[(3, 2), (3,)], [(3, 2), (1,)]],
    ),
    Case("Pad", {"x": given("n", 3)}, [(4, 3)], [[(2, 3)]], {"p": np.array([-2, 0, -1, 0])}),
    Case(
        "NonMaxSuppression",
        {"x": given("n", "k", 4), "y": given("m", 1, "l")},
        [(1, 3, 4), (1, 1, 3)],
        [[(1, 3, 4), (1, 1, 4)], [(1, 3, 4), (2, 1, 3)]],
        {"count": np.array([2])},
    ),
    Case(
        "RoiAlign",
        {"x": X4, "r": given("k", 4), "i": given("l", dtype=L)},
        [(2, 1, 4, 4), (3, 4), (3,)],
        [[(2, 1, 4, 4), (3, 4), (2,)]],
        attributes={"output_height": 2, "output_width": 2, "sampling_ratio": 1},
    ),
    Case(
        "LSTM",
        {"x": given("t", "n", "e"), "h": given(1, "m", 2)},
        [(2, 3, 4), (1, 3, 2)],
        [[(2, 3, 4), (1, 2, 2)], [(2, 3, 3), (1, 3, 2)]],
        {"w": numbers(1, 8, 4), "r": numbers(1, 8, 2)},
        {"hidden_size": 2},
        order="x w r - - h",
    ),
    Case(
        "GRU",
        {"x": given("t", "n", 4), "l": given("m", dtype=I32)},
        [(2, 3, 4), (3,)],
        [[(2, 3, 4), (2,)]],
        {"w": numbers(1, 6, 4), "r": numbers(1, 6, 2)},
        {"hidden_size": 2},
        order="x w r - l",
    ),
    Case(
        "RNN",
        {"x": given("t", "n", "e")},
        [(2, 3, 4)],
        [[(2, 3, 5)]],
        {"w": numbers(1, 2, 4), "r": numbers(1, 2, 2)},
        {"hidden_size": 2},
    ),
    Case(
        "MaxUnpool",
        {"x": given("n", 1, 2, 2), "i": given("m", 1, 2, 2, dtype=L)},
        [(1, 1, 2, 2)] * 2,
        [[(1, 1, 2, 2), (2, 1, 2, 2)]],
        attributes={"kernel_shape": [2, 2], "strides": [2, 2]},
    ),
    Case(
        "OneHot",
        {"i": given("n", dtype=L), "v": given("m")},
        [(3,), (2,)],
        [[(3,), (3,)]],
        {"depth": np.array(4)},
        order="i depth v",
    ),
    Case(
        "SoftmaxCrossEntropyLoss",
        {"x": given("n", "c"), "l": given("m", dtype=L)},
        [(3, 4), (3,)],
        [[(3, 4), (2,)]],
    ),
    Case(
        "NegativeLogLikelihoodLoss",
        {"x": given("n", "c"), "l": given("m", dtype=L), "w": given("d")},
        [(3, 4), (3,), (4,)],
        [[(3, 4), (4,), (4,)], [(3, 4), (3,), (3,)]],
    ),
    Case(
        "STFT",
        {"x": given("n", "l", 1)},
        [(1, 8, 1)],
        [[(1, 3, 1)]],
        {"step": np.array(2), "window": np.ones(4, np.float32)},
    ),
]


def _name(case: Case) -> str:
    return case.op


@pytest.mark.parametrize("case", CASES, ids=_name)
@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_lengths_that_contradict_a_layer_give_no_result(case: Case, target: str) -> None:
    engine = case.engine(target)
    engine.run(case.feeds(case.fits))
    for shapes in case.contradicts:
        with pytest.raises(MlirtError, match="layer1"):
            engine.run(case.feeds(shapes))
