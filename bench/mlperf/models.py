"""The ONNX files that systems are opened with: a workload in float32, or quantised once for all of them.

In int8, onnxruntime's static quantiser puts QuantizeLinear and DequantizeLinear around the layers with weights and what
lies between them: ranges of some samples, weights with a scale for each output channel. Layers behind the last product,
such as the decoding of boxes, stay as they are. In a file for GPUs attention stays, too: its products, between which a
softmax rounds nothing, are one launch in half precision. Such a file takes pictures as int8, as MLPerf allows: they
are quantised before the clock starts, with the scale of the first layer.
"""

# onnxruntime has no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from quantized_model import folded

from mlperf.workloads import Arrays, Workload

PRECISIONS = ("fp32", "fp16", "int8")
_PRODUCTS = ("Conv", "ConvTranspose", "MatMul", "Gemm")
_STEP = "step of input "
_CALIBRATION = 4
_MAX_BYTES = 2_000_000_000
_FIRST_CALIBRATION = 1 << 20
"""Samples to calibrate with are none of those that are asked for."""


def model_file(workload: Workload, precision: str, batch: int | None, folder: Path, *, signed: bool = False) -> Path:
    """The file of a workload for batches of a fixed size, or of any size; it is written unless it is there.

    `signed`: int8 without zero points between layers, as GPUs want it, in place of uint8.
    """
    folder.mkdir(parents=True, exist_ok=True)
    makes = workload.half if precision == "fp16" and workload.half is not None else workload.model
    kind = ("int8s" if signed else "int8u") if precision == "int8" else "fp32" if makes is workload.model else "fp16"
    suffix = "" if batch is None else f".b{batch}"
    path = folder / f"{workload.name}.{kind}{suffix}.onnx"
    if path.exists():
        return path
    if precision != "int8":
        proto = makes("batch" if batch is None else batch)
    elif batch is None:
        return _quantised(workload, path, signed)
    else:
        proto = onnx.load(str(model_file(workload, precision, None, folder, signed=signed)))
        _fix(proto, batch)
    _write(proto, path)
    return path


def _write(proto: onnx.ModelProto, path: Path) -> None:
    """All or nothing: a file that is there is whole. Weights of more than a file can have lie beside it."""
    fresh, weights = path.with_suffix(f".{os.getpid()}.part"), path.with_suffix(".weights")
    weights.unlink(missing_ok=True)
    size = sum(len(one.raw_data) for one in proto.graph.initializer)
    onnx.save(proto, fresh, save_as_external_data=size > _MAX_BYTES, location=weights.name)
    fresh.replace(path)


def _fix(proto: onnx.ModelProto, batch: int) -> None:
    """Set the first dimension of what goes in and comes out; what was inferred with an open one is left out."""
    del proto.graph.value_info[:]
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].Clear()
        value.type.tensor_type.shape.dim[0].dim_value = batch


class _Reader:
    """What the quantiser draws its samples from."""

    def __init__(self, workload: Workload) -> None:
        self._samples: Iterator[Arrays] = (workload.sample(_FIRST_CALIBRATION + k) for k in range(_CALIBRATION))

    def get_next(self) -> Arrays | None:
        sample = next(self._samples, None)
        return None if sample is None else {name: array[None] for name, array in sample.items()}


def sampler(workload: Workload, model: Path) -> Callable[[int], Arrays]:
    """The samples as a file takes them: integers where its inputs are."""
    proto = onnx.load(str(model), load_external_data=False)
    steps = {one.key.removeprefix(_STEP): float(one.value) for one in proto.metadata_props if one.key.startswith(_STEP)}

    def sample(index: int) -> Arrays:
        found = workload.sample(index)
        for name, step in steps.items():
            found[name] = np.clip(np.rint(found[name] / np.float32(step)), -128, 127).astype(np.int8)
        return found

    return sample if steps else workload.sample


def _take_integers(proto: onnx.ModelProto) -> None:
    """Let inputs that are quantised before all else, without a zero point, be int8; their steps become metadata."""
    graph, arrays = proto.graph, {one.name: one for one in proto.graph.initializer}
    for value in graph.input:
        readers = [node for node in graph.node if value.name in node.input]
        if not readers or any(node.op_type != "QuantizeLinear" for node in readers):
            continue
        steps = {float(numpy_helper.to_array(arrays[node.input[1]])) for node in readers}
        zeros = {int(numpy_helper.to_array(arrays[node.input[2]])) for node in readers}
        if len(steps) > 1 or zeros != {0} or arrays[readers[0].input[2]].data_type != onnx.TensorProto.INT8:
            continue
        names = {node.output[0] for node in readers}
        for node in readers:
            graph.node.remove(node)
        for node in graph.node:
            node.input[:] = [value.name if name in names else name for name in node.input]
        value.type.tensor_type.elem_type = onnx.TensorProto.INT8
        proto.metadata_props.add(key=_STEP + value.name, value=repr(steps.pop()))


def _quantised(workload: Workload, path: Path, signed: bool) -> Path:
    quantization: Any = import_module("onnxruntime.quantization")
    kinds = quantization.QuantType
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        source, fresh = Path(scratch) / "source.onnx", Path(scratch) / "quantised.onnx"
        onnx.save(workload.model("batch"), source)
        proto = folded(source, Path(scratch))
        _give_each_its_weight(proto.graph)
        onnx.save(proto, source)
        quantization.quantize_static(
            str(source),
            str(fresh),
            _Reader(workload),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            activation_type=kinds.QInt8 if signed else kinds.QUInt8,
            weight_type=kinds.QInt8,
            op_types_to_quantize=list(workload.kinds),
            nodes_to_exclude=behind_products(proto.graph) + (products_of_tensors(proto.graph) if signed else []),
            extra_options={"ActivationSymmetric": signed},
        )
        if signed:
            proto = onnx.load(str(fresh))
            _take_integers(proto)
            onnx.save(proto, fresh)
        fresh.replace(path)
    return path


def behind_products(graph: onnx.GraphProto) -> list[str]:
    """The names of the nodes that no product with weights reads, directly or by way of others."""
    wanted: set[str] = set()
    names: list[str] = []
    for node in reversed(graph.node):
        is_read = any(output in wanted for output in node.output)
        if is_read or (node.op_type in _PRODUCTS and _has_weights(node, graph)):
            wanted.update(node.input)
        else:
            names.append(node.name)
    return names[::-1]


def products_of_tensors(graph: onnx.GraphProto) -> list[str]:
    """The names of the products without weights: those of attention."""
    return [node.name for node in graph.node if node.op_type in _PRODUCTS and not _has_weights(node, graph)]


def _give_each_its_weight(graph: onnx.GraphProto) -> None:
    """Products that share a weight get one each: onnxruntime refuses to quantise a network where they do."""
    known, taken = {one.name: one for one in graph.initializer}, set[str]()
    for number, node in enumerate(graph.node):
        for k, name in enumerate(node.input) if node.op_type in _PRODUCTS else ():
            if name in known and name in taken:
                copy = onnx.TensorProto()
                copy.CopyFrom(known[name])
                copy.name = node.input[k] = f"{name}.of.{number}"
                graph.initializer.append(copy)
            taken.add(name)


def _has_weights(node: onnx.NodeProto, graph: onnx.GraphProto) -> bool:
    known = {one.name for one in graph.initializer}
    constants: Sequence[str] = [node.output[0] for node in graph.node if node.op_type == "Constant"]
    return len(node.input) > 1 and (node.input[1] in known or node.input[1] in constants)
