"""Random graphs whose inputs have names of their own for their lengths: results and refusals as in onnxruntime."""

from __future__ import annotations

import random

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import Array, model_of, numbers, run_onnxruntime

import mlirt
from mlirt.errors import InvalidInputError

GRAPHS, RUNS = 10, 5
AXES = "nkc"
node = helper.make_node


def graph(draw: random.Random) -> tuple[onnx.ModelProto, list[list[str | int]], list[int]]:
    """A model, the dimensions of its inputs, and the length of each axis where nothing is repeated."""
    sizes = [draw.choice([2, 3, 5, 17]), draw.choice([2, 3, 5, 17]), draw.choice([4, 16, 20])]
    inputs: list[list[str | int]] = [list(AXES)]
    for k in range(1, draw.randint(2, 4)):
        inputs.append([draw.choice([f"{name}{k}", name, size, 1]) for name, size in zip(AXES, sizes, strict=True)])
    values, nodes, weights = [f"x{k}" for k in range(len(inputs))], list[onnx.NodeProto](), dict[str, Array]()
    for place in range(draw.randint(3, 9)):
        values.append(_layer(draw, f"t{place}", values, nodes, weights, sizes[2]))
    needed, kept = {values[-1]}, list[onnx.NodeProto]()
    for one in reversed(nodes):
        if needed & set(one.output):
            needed |= set(one.input)
            kept.insert(0, one)
    declared = {f"x{k}": ("float32", dims) for k, dims in enumerate(inputs)}
    used = {name: array for name, array in weights.items() if name in needed}
    return model_of(kept, declared, [values[-1]], used), inputs, sizes


def _layer(
    draw: random.Random,
    name: str,
    values: list[str],
    nodes: list[onnx.NodeProto],
    weights: dict[str, Array],
    columns: int,
) -> str:
    kinds = ["binary"] * 6 + ["Relu", "Sigmoid", "Softmax", "ReduceMean", "MatMul", "Where", "Transpose", "Concat"]
    kind, one, other = draw.choice(kinds), draw.choice(values), draw.choice(values)
    if kind == "binary":
        nodes.append(node(draw.choice(["Add", "Mul", "Sub", "Max"]), [one, other], [name]))
    elif kind == "Softmax":
        nodes.append(node(kind, [one], [name], axis=draw.randrange(3)))
    elif kind == "ReduceMean":
        nodes.append(node(kind, [one], [name], axes=[draw.randrange(3)]))
    elif kind == "MatMul":
        weights[f"w{name}"] = numbers(columns, columns, seed=len(nodes)) / 4
        nodes.append(node(kind, [one, f"w{name}"], [name]))
    elif kind == "Where":
        nodes.append(node("Greater", [one, other], [f"c{name}"]))
        nodes.append(node(kind, [f"c{name}", draw.choice(values), other], [name]))
    elif kind == "Transpose":
        nodes.append(node(kind, [one], [f"u{name}"], perm=[0, 2, 1]))
        nodes.append(node("Relu", [f"u{name}"], [f"v{name}"]))
        nodes.append(node(kind, [f"v{name}"], [name], perm=[0, 2, 1]))
    elif kind == "Concat":
        weights |= {f"s{name}": np.array([0]), f"e{name}": np.array([1])}
        nodes.append(node(kind, [one, other], [f"u{name}"], axis=1))
        nodes.append(node("Slice", [f"u{name}", f"s{name}", f"e{name}", f"e{name}"], [name]))
    else:
        nodes.append(node(kind, [one], [name]))
    return name


def feeds(draw: random.Random, inputs: list[list[str | int]], sizes: list[int]) -> dict[str, Array]:
    """Each name stands for the length of its axis, or 1, or seldom another one."""
    lengths: dict[str, int] = {}
    shapes = [
        [
            dim if isinstance(dim, int) else lengths.setdefault(dim, draw.choice([size] * 6 + [1] * 4 + [7]))
            for dim, size in zip(dims, sizes, strict=True)
        ]
        for dims in inputs
    ]
    return {f"x{k}": numbers(*shape, seed=k) for k, shape in enumerate(shapes)}


def _run_or_none(model: onnx.ModelProto, arrays: dict[str, Array]) -> Array | None:
    try:
        return run_onnxruntime(model, arrays)[0]
    except Exception:  # onnxruntime has classes of its own for each fault, all derived from this one alone
        return None


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_as_onnxruntime(seed: int) -> None:
    draw = random.Random(seed)
    model, inputs, sizes = graph(draw)
    try:
        engine = mlirt.compile(model, "cpu")
    except mlirt.errors.MlirtError:  # lengths that contradict each other in every run
        assert all(_run_or_none(model, feeds(draw, inputs, sizes)) is None for _ in range(RUNS))
        return
    for _ in range(RUNS):
        arrays = feeds(draw, inputs, sizes)
        used = {value.name: arrays[value.name] for value in model.graph.input}
        want = _run_or_none(model, used)
        if want is None:
            with pytest.raises(InvalidInputError):
                engine.run(used)
        else:
            (got,) = engine.run(used).values()
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, 1e-3, 1e-4)
