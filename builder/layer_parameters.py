"""What a network's layers were asked to do, in the words of TensorRT's engine inspector (tensorrt-features.md#17.3,
24.6, 30.14).

Launches are named by the layers that they compute. The parameters of the first of them that has some, and what the
others do to its results, become part of the launch's record in the plan; so do the shapes that the network's tensors
have where a kernel has them in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.integer_list import integers
from mlirt.dialects.locations import name_of
from mlirt.dialects.symbolic_text import to_json
from mlirt.dialects.tensor_names import tensor_names
from mlirt.dialects.tensor_types import dims, element_count, element_name, element_of, is_tensor
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.pooling import PoolingOp
from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.dialects.trt.softmax import SoftmaxOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.dialects.trt.windowed_op import WindowedOp

Record = dict[str, object]

_ELEMENTS = {"float32": "Float", "float16": "Half", "int8": "Int8", "int32": "Int32"}


@dataclass(frozen=True)
class _Layer:
    """What is kept of a layer, whose ops are rewritten meanwhile: values are numbers, True for those of one element."""

    parameters: Record
    word: str
    function: str = ""
    """The kind of a function of each element; empty for other layers."""
    operands: tuple[tuple[int, bool], ...] = ()
    result: int = 0

    @staticmethod
    def of(op: Operation) -> _Layer:
        if not isinstance(op, ActivationOp | ElementwiseOp | UnaryOp):
            return _Layer(_of_layer(op), _word(op))
        operands = tuple((id(value), _is_literal(value)) for value in op.operands)
        return _Layer({}, _word(op), op.kind.data.name.lower(), operands, id(op.results[0]))


class LayerParameters:
    """The layers of a network before it is compiled."""

    def __init__(self, module: ModuleOp) -> None:
        self._layers: dict[str, _Layer] = {}
        self._shapes: dict[str, list[object]] = {}
        for op in module.walk():
            name = name_of(op)
            if name and not isinstance(op, ConstantOp):
                layer = _Layer.of(op)
                if name not in self._layers or layer.parameters:  # of the ops of one layer, the one that has some
                    self._layers[name] = layer
        for value, name in tensor_names(module).items():
            if is_tensor(value.type):
                self._shapes[name] = [to_json(length) for length in dims(value.type)]

    def add_to(self, layers: Sequence[Record]) -> None:
        """Complete the records of launches."""
        self._name_reformatted(layers)
        for record in layers:
            for tensor in (*_records(record.get("inputs")), *_records(record.get("outputs"))):
                if "format" in tensor and str(tensor.get("name", "")) in self._shapes:
                    tensor["logical"] = self._shapes[str(tensor["name"])]
            names = str(record.get("name", "")).split(" + ")
            found = [self._layers[name] for name in names if name in self._layers]
            if found and not str(record.get("family", "")).startswith("reformat"):
                record["parameters"] = _parameters(found)

    def _name_reformatted(self, layers: Sequence[Record]) -> None:
        """Let what a reformat reads or writes in a format have the shape of what is on its other side."""
        for record in layers:
            if not str(record.get("family", "")).startswith("reformat"):
                continue
            for one, other in zip(_records(record.get("inputs")), _records(record.get("outputs")), strict=False):
                for tensor, beside in ((one, other), (other, one)):
                    shape = self._shapes.get(str(beside.get("name", "")), beside.get("shape"))
                    if "format" in tensor and "format" not in beside and isinstance(shape, list):
                        self._shapes.setdefault(str(tensor.get("name", "")), cast("list[object]", shape))


def _parameters(layers: Sequence[_Layer]) -> Record:
    for place, layer in enumerate(layers):
        if layer.parameters:
            return layer.parameters | _epilogue(layer.parameters, layers[place + 1 :])
    return _pointwise(layers) if all(layer.function for layer in layers) else {"ParameterType": layers[0].word}


def _of_layer(op: Operation) -> Record:
    """The parameters of a layer that is more than a function of each element."""
    if isinstance(op, ConvolutionOp | DeconvolutionOp):
        kernel, groups = dims(op.kernel.type), op.num_groups.value.data
        maps = kernel[0] if isinstance(op, ConvolutionOp) else kernel[1] * groups
        kind = "Convolution" if isinstance(op, ConvolutionOp) else "Deconvolution"
        window = {"ParameterType": kind, "Kernel": list(op.sizes()), **_window(op), "Dilation": list(op.dilations())}
        return {**window, "OutMaps": maps, "Groups": groups, **_weights(op.kernel, op.bias)}
    if isinstance(op, PoolingOp):
        return {
            "ParameterType": "Pooling",
            "PoolingType": op.kind.data.name,
            "WindowSize": list(op.sizes()),
            **_window(op),
            "BlendFactor": op.blend_factor.value.data,
            "AverageCountExcludesPadding": int(bool(op.average_count_excludes_padding.value.data)),
        }
    if isinstance(op, FullyConnectedOp):
        return {"ParameterType": "FullyConnected", **_weights(op.kernel, op.bias)}
    if isinstance(op, MatrixMultiplyOp):
        operands: Record = {"OpA": op.lhs_op.data.name, "OpB": op.rhs_op.data.name}
        return {"ParameterType": "MatrixMultiply", **operands, **_weights(op.rhs, None)}
    if isinstance(op, SoftmaxOp):
        return {"ParameterType": "SoftMax", "Axis": op.axis.value.data}
    if isinstance(op, ReduceOp):
        axes = list(integers(op.axes))
        return {"ParameterType": "Reduce", "Operation": op.kind.data.name, "ReduceAxes": axes}
    return {}


def _window(op: WindowedOp) -> Record:
    pads = op.written_padding()
    return {
        "PaddingMode": f"k{op.padding_mode.data.name}",
        "PrePadding": [pre for pre, _ in pads],
        "PostPadding": [post for _, post in pads],
        "Stride": list(op.strides()),
    }


def _weights(kernel: SSAValue, bias: SSAValue | None) -> Record:
    given = {"Weights": kernel, "Bias": bias}
    found: Record = {
        key: {"Type": _ELEMENTS[element_name(element_of(value.type))], "Count": element_count(value.type)}
        for key, value in given.items()
        if value is not None and isinstance(value.owner, ConstantOp)
        if element_name(element_of(value.type)) in _ELEMENTS
    }
    return found | {"HasBias": int(bias is not None), "HasSparseWeights": 0}


def _epilogue(parameters: Record, others: Sequence[_Layer]) -> Record:
    """What is done to the results before they are stored."""
    curves = [layer.function.upper() for layer in others if layer.word == "Activation"]
    lines = _lines([layer for layer in others if layer.function])
    found: Record = {"NbOperations": len(lines), "Operations": lines} if lines else {}
    if parameters["ParameterType"] in ("Convolution", "Deconvolution"):
        found |= {"HasReLU": int(curves == ["RELU"]), "Activation": curves[0] if curves else "NONE"}
    return found


def _pointwise(layers: Sequence[_Layer]) -> Record:
    """The fields of TensorRT's PointWiseV2."""
    inner = {layer.result for layer in layers}
    read = dict.fromkeys(pair for layer in layers for pair in layer.operands if pair[0] not in inner)
    literals = sum(is_literal for _, is_literal in read)
    used = {value for layer in layers for value, _ in layer.operands}
    outputs = [f"var{place}" for place, layer in enumerate(layers) if layer.result not in used]
    lines = _lines(layers)
    return {
        "ParameterType": "PointWise",
        "ParameterSubType": "PointWiseExpression",
        "NbInputArgs": len(read) - literals,
        "InputArgs": [f"arg{place}" for place in range(len(read) - literals)],
        "NbOutputVars": len(outputs),
        "OutputVars": outputs,
        "NbParams": 0,
        "Params": [],
        "NbLiterals": literals,
        "Literals": [f"literal{place}" for place in range(literals)],
        "NbOperations": len(lines),
        "Operations": lines,
    }


def _lines(layers: Sequence[_Layer]) -> list[str]:
    """One assignment for each layer: `var0 = exp(arg0)`."""
    names: dict[int, str] = {}
    counts = {"arg": 0, "literal": 0}
    lines: list[str] = []
    for place, layer in enumerate(layers):
        for value, is_literal in layer.operands:
            if value not in names:
                kind = "literal" if is_literal else "arg"
                names[value] = f"{kind}{counts[kind]}"
                counts[kind] += 1
        names[layer.result] = f"var{place}"
        lines.append(f"var{place} = {layer.function}({', '.join(names[value] for value, _ in layer.operands)})")
    return lines


def _is_literal(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp) and element_count(value.type) == 1


def _word(op: Operation) -> str:
    """TensorRT's word for a kind of layer: `Shuffle` for `trt.shuffle`."""
    return "".join(part.capitalize() for part in op.name.rpartition(".")[2].split("_"))


def _records(value: object) -> list[Record]:
    return cast("list[Record]", value) if isinstance(value, list) else []
