"""Random matrix products and convolutions of one to three dimensions as ONNX models, in every type there is.

Batches have 1 to 9 items; channels and lengths are often odd; epilogues have a bias, a scale, an activation, a
residual; every fifth model has a dynamic batch, and every third of halves reads and gives float32. The same seed gives
the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from graph_writer import GraphWriter
from onnx import TensorProto, helper, numpy_helper
from random_layers import Value, Writer

from mlirt.dialects.float8 import rounded

ELEMENTS = ("fp16", "bf16", "tf32", "fp32", "int8", "int8+fp16", "fp8")
_OFTEN = (0.25, 0.1, 0.15, 0.1, 0.15, 0.1, 0.15)
_MAX_WEIGHTS = 1 << 20
_OPSET = 21  # the first with 8-bit floats
_DYNAMIC = 5
_ROUNDED = 3  # of so many models of halves one reads and gives float32


@dataclass(frozen=True)
class Contraction:
    """A model, the precision to build it with, and what it is in words."""

    name: str
    model: onnx.ModelProto
    precision: str


def random_contraction(seed: int, elements: Sequence[str] = ELEMENTS) -> Contraction:
    """The model of a seed."""
    writer = Writer(GraphWriter(seed), np.random.default_rng([seed, 0xC0]))
    often = np.array([_OFTEN[ELEMENTS.index(one)] for one in elements])
    element = elements[int(writer.random.choice(len(elements), p=often / often.sum()))]
    layer = _KINDS["product" if element == "fp8" else writer.one_of(list(_KINDS))]
    y = layer(writer, element)
    inputs = [_info(name, array.shape, dynamic=seed % _DYNAMIC == 0) for name, array in writer.inputs.items()]
    result = helper.make_tensor_value_info(y.name, TensorProto.FLOAT, [None] * len(y.shape))
    model = writer.graph.model(f"contraction{seed}", inputs, [result], _OPSET)
    if element == "bf16":
        _store_as(model, TensorProto.BFLOAT16, ml_dtypes.bfloat16)
    if element == "fp16" and seed % _ROUNDED:
        _store_as(model, TensorProto.FLOAT16, np.float16)
    precision = {"bf16": "fp16", "fp8": "fp16"}.get(element, element)
    shapes = ", ".join("x".join(map(str, array.shape)) for array in writer.inputs.values())
    kinds = "+".join(dict.fromkeys(node.op_type for node in model.graph.node))
    return Contraction(f"{seed} {element} {kinds} of {shapes}", model, precision)


def _info(name: str, shape: Sequence[int], *, dynamic: bool) -> onnx.ValueInfoProto:
    sizes: list[int | str] = [*shape]
    if dynamic:
        sizes[0] = "batch"
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)


def _store_as(model: onnx.ModelProto, element: int, dtype: Any) -> None:
    """All tensors in another type instead of float32."""
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(dtype), tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = element


def _zeros(shape: Sequence[int]) -> np.ndarray[Any, np.dtype[Any]]:
    """An input: only its shape counts."""
    return np.zeros(tuple(shape), np.float32)


def _weights(writer: Writer, shape: Sequence[int]) -> str:
    """Numbers that repeat, which are quickly made."""
    some = writer.random.standard_normal(min(1009, int(np.prod(shape)))).astype(np.float32)
    return writer.constant(np.resize(some / 8, tuple(shape)))


def _products(writer: Writer, element: str) -> Value:
    """One to three products with known matrices."""
    lead = [writer.batch() for _ in range(writer.one_of([0, 0, 1]))]
    shape = [*lead, writer.one_of([1, writer.between(2, 128), 64 * writer.between(1, 70)]), _length(writer)]
    x = writer.input("x", _zeros(shape))
    for _ in range(writer.one_of([1, 1, 2, 3])):
        columns = min(_length(writer), _MAX_WEIGHTS // x.shape[-1])
        made = (*x.shape[:-1], columns)
        factors = [x, Value(_weights(writer, (x.shape[-1], columns)), (x.shape[-1], columns))]
        if element == "fp8":
            factors = [_dequantized(writer, factors[0], known=False), _dequantized(writer, factors[1], known=True)]
        x = _epilogue(writer, writer.node("MatMul", factors, made), axis=-1)
    return x


def _dequantized(writer: Writer, x: Value, *, known: bool) -> Value:
    """In 8-bit floats and back."""
    scale = writer.constant(np.full((), 0.02, np.float32))
    if known:
        some = writer.random.standard_normal(1009).astype(np.float32)
        stored = writer.constant(rounded(np.resize(some, x.shape)))
    else:
        zero = writer.constant(rounded(np.zeros((), np.float32)))
        stored = writer.node("QuantizeLinear", [x, scale, zero], x.shape).name
    return writer.node("DequantizeLinear", [stored, scale], x.shape)


def _product_of_inputs(writer: Writer, _: str) -> Value:
    """A product of two inputs for each item of a batch, either of them perhaps transposed."""
    batch, rows, depth, columns = writer.batch(), _length(writer), _length(writer), _length(writer)
    sides = list[Value]()
    for name, shape in (("x", (batch, rows, depth)), ("w", (batch, depth, columns))):
        if writer.chance(0.5):
            transposed = writer.input(name, _zeros((shape[0], shape[2], shape[1])))
            sides.append(writer.node("Transpose", [transposed], shape, perm=[0, 2, 1]))
        else:
            sides.append(writer.input(name, _zeros(shape)))
    return _epilogue(writer, writer.node("MatMul", sides, (batch, rows, columns)), axis=-1)


def _length(writer: Writer) -> int:
    """Mostly a multiple of 8, sometimes any number."""
    return 8 * writer.between(1, 160) if writer.chance(0.75) else writer.between(1, 700)


def _convolutions(rank: int, *, transposed: bool = False) -> Callable[[Writer, str], Value]:
    """One to three convolutions over so many dimensions."""
    most = {1: 400, 2: 64, 3: 14}[rank]

    def write(writer: Writer, element: str) -> Value:
        channels = writer.one_of([1, 3, 4, writer.channels(), writer.channels()])
        x = writer.input("x", _zeros((writer.batch(), channels, *(writer.between(5, most) for _ in range(rank)))))
        for _ in range(writer.one_of([1, 1, 2, 3])):
            x = _epilogue(writer, _transposed(writer, x) if transposed else _convolved(writer, x), axis=1)
            if rank == 2 and min(x.shape[2:]) > 4 and writer.chance(0.15):
                shape = *x.shape[:2], *((n - 2) // 2 + 1 for n in x.shape[2:])
                x = writer.node("MaxPool", [x], shape, kernel_shape=[2, 2], strides=[2, 2])
        return x

    return write


def _groups(writer: Writer, inputs: int, outputs: int) -> tuple[int, int]:
    """The number of groups, and the outputs that suit it."""
    if writer.chance(0.2):
        return inputs, inputs * writer.one_of([1, 1, 2])
    if writer.chance(0.2):
        group = writer.one_of([n for n in range(1, inputs + 1) if inputs % n == 0])
        return group, group * max(1, outputs // group)
    return 1, outputs


def _convolved(writer: Writer, x: Value) -> Value:
    batch, inputs, *sizes = x.shape
    group, outputs = _groups(writer, inputs, writer.one_of([writer.channels(), 8 * writer.between(8, 96)]))
    axes = range(len(sizes))
    taps = [writer.one_of([1, 3, 3, 5, 7])] * len(sizes) if writer.chance(0.7) else [writer.between(1, 5) for _ in axes]
    strides, dilations = ([writer.one_of([1, 1, 1, 2, 3]) for _ in axes], [writer.one_of([1, 1, 1, 2]) for _ in axes])
    taps = [tap if d * (tap - 1) < size else 1 for tap, d, size in zip(taps, dilations, sizes, strict=True)]
    while outputs // group * inputs * int(np.prod(taps)) > _MAX_WEIGHTS and outputs > group:
        outputs = max(group, outputs // 2 // group * group)
    before, after = ([writer.between(0, tap // 2) for tap in taps] for _ in range(2))
    if writer.chance(0.6):
        before = after = [d * (tap // 2) for tap, d in zip(taps, dilations, strict=True)]
    columns = zip(sizes, taps, strides, dilations, before, after, strict=True)
    made = [(n + a + b - d * (tap - 1) - 1) // s + 1 for n, tap, s, d, a, b in columns]
    weights = _weights(writer, (outputs, inputs // group, *taps))
    how = {"kernel_shape": taps, "strides": strides, "dilations": dilations, "pads": [*before, *after], "group": group}
    return writer.node("Conv", [x, weights], (batch, outputs, *made), **how)


def _transposed(writer: Writer, x: Value) -> Value:
    batch, inputs, *sizes = x.shape
    group, outputs = _groups(writer, inputs, writer.channels())
    taps = [writer.between(1, 4) for _ in sizes]
    strides = [writer.between(1, 2) if size < 100 else 1 for size in sizes]
    pads = [writer.between(0, (tap - 1) // 2) for tap in taps]
    columns = zip(sizes, taps, strides, pads, strict=True)
    made = [(n - 1) * s + tap - 2 * pad for n, tap, s, pad in columns]
    weights = _weights(writer, (inputs, max(1, outputs // group), *taps))
    how = {"kernel_shape": taps, "strides": strides, "pads": [*pads, *pads], "group": group}
    return writer.node("ConvTranspose", [x, weights], (batch, max(1, outputs // group) * group, *made), **how)


def _epilogue(writer: Writer, x: Value, axis: int) -> Value:
    """What is done to each result: with a number of its column or channel, a function, another tensor."""
    wide = [1] * len(x.shape)
    wide[axis] = x.shape[axis]
    for kind, often in (("Mul", 0.25), ("Add", 0.6)):
        if writer.chance(often):
            x = writer.node(kind, [x, writer.constant(np.resize(np.array([0.5, 1.5], np.float32), wide))], x.shape)
    if writer.chance(0.3) and "r" not in writer.inputs:
        x = writer.node("Add", [x, writer.input("r", _zeros(x.shape))], x.shape)
    return writer.activation(x) if writer.chance(0.7) else x


_KINDS: dict[str, Callable[[Writer, str], Value]] = {
    "product": _products,
    "product of inputs": _product_of_inputs,
    "convolution of images": _convolutions(2),
    "convolution of images again": _convolutions(2),
    "convolution of sequences": _convolutions(1),
    "convolution of volumes": _convolutions(3),
    "transposed convolution": _convolutions(2, transposed=True),
    "transposed convolution of sequences": _convolutions(1, transposed=True),
}
