"""What TensorRT's builder refuses of a network though mlirt can build it: INT8 without scales, and INT8 in loops.

`limits_count` says whether these limits hold; `mlirt.compile` and IR have none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i8

from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.tensor_types import element_of
from mlirt.errors import InvalidModelError
from mlirt.tensorrt.build_enums import BuilderFlag
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.layer_enums import LayerType
from mlirt.tensorrt.limits import limits_count, way_out

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.api.builder_config import IBuilderConfig
    from mlirt.frontend.network.definition import INetworkDefinition
    from mlirt.frontend.network.record import LayerRecord
    from mlirt.frontend.network.tensor import ITensor
    from mlirt.tensorrt.reporting import Reporter

_OF_BYTES = (LayerType.PLUGIN_V2, LayerType.PLUGIN)
"""Layers that say themselves what bytes mean: plugins, and nodes of models that TensorRT has no layer for."""
_MOVERS = (
    LayerType.SHUFFLE, LayerType.SLICE, LayerType.CONCATENATION, LayerType.GATHER, LayerType.SELECT, LayerType.PADDING,
    LayerType.SCATTER, LayerType.IDENTITY, LayerType.CONDITIONAL_INPUT, LayerType.CONDITIONAL_OUTPUT,
    LayerType.LOOP_OUTPUT, LayerType.ITERATOR, LayerType.RECURRENCE,
)  # fmt: skip
"""Layers that take bytes from one place to another."""
_CONVERSIONS = (LayerType.QUANTIZE, LayerType.DEQUANTIZE)
_LOOP_ENTRIES = (LayerType.ITERATOR, LayerType.RECURRENCE)


def layers_in_loops(network: INetworkDefinition) -> list[LayerRecord]:
    """The layers that depend on the state of a loop: those between its entries and its outputs, in order."""
    found = {record for record in network.graph.records if record.type in _LOOP_ENTRIES}
    waiting = list(found)
    readers = _readers(network)
    while waiting:
        for output in waiting.pop().outputs:
            for reader in readers.get(output, ()):
                if reader not in found and reader.type is not LayerType.LOOP_OUTPUT:
                    found.add(reader)
                    waiting.append(reader)
    return [record for record in network.graph.records if record in found]


def check_scales(module: ModuleOp, network: INetworkDefinition, config: IBuilderConfig) -> None:
    """Raise `InvalidModelError` for an INT8 input or output without a range, a calibrator or a quantize layer at the
    border (tensorrt-features.md#5.10). Those that a model has as INT8 are integers, as ONNX says, and need none.
    """
    if not limits_count() or config.int8_calibrator is not None:
        return
    readers = _readers(network)
    kinds = entry_function(module).function_type  # the tensors themselves would ask their layers again
    sides = (("input", network.graph.inputs, kinds.inputs), ("output", network.graph.outputs, kinds.outputs))
    for kind, tensors, types in sides:
        for tensor, of in zip(tensors, types.data, strict=False):
            if element_of(of) != i8 or _is_of_model(tensor):
                continue
            if not (_is_read_by_scale(tensor, readers) if kind == "input" else _is_made_by_scale(tensor)):
                layer = "a dequantize layer that reads it" if kind == "input" else "a quantize layer that makes it"
                raise InvalidModelError(
                    f"{tensor.name}: the INT8 {kind} of the network has no scale: expected a dynamic range, a "
                    f"calibrator or {layer}; {way_out()}"
                )


def _is_of_model(tensor: ITensor) -> bool:
    """Whether a model says that the tensor is of INT8, rather than the program that builds the network."""
    if tensor.producer is None:
        return tensor.model_dtype is DataType.INT8
    return tensor.given_dtype is None and tensor.producer.template is not None


def _is_read_by_scale(tensor: ITensor, readers: dict[ITensor, list[LayerRecord]]) -> bool:
    """Whether all that reads bytes knows what they mean: dequantize layers, perhaps behind layers that move bytes."""
    if tensor.range is not None:
        return True
    own = readers.get(tensor, [])
    return bool(own) and all(
        record.type in (*_CONVERSIONS, *_OF_BYTES) or _moves_to_scale(record, readers) for record in own
    )


def _moves_to_scale(record: LayerRecord, readers: dict[ITensor, list[LayerRecord]]) -> bool:
    return record.type in _MOVERS and all(_is_read_by_scale(one, readers) for one in record.outputs)


def _is_made_by_scale(tensor: ITensor) -> bool:
    """Whether bytes come from a quantize layer or a range, perhaps through layers that move bytes."""
    if tensor.range is not None:
        return True
    record = tensor.producer
    if record is None:
        return False
    if record.type in (*_CONVERSIONS, *_OF_BYTES, LayerType.CONSTANT):
        return True
    if record.type not in _MOVERS:
        return False
    given = [one for one in record.inputs if one is not None and one.dtype is DataType.INT8]
    return bool(given) and all(one.is_network_input or _is_made_by_scale(one) for one in given)


def check_loops(network: INetworkDefinition, config: IBuilderConfig, reporter: Reporter) -> None:
    """Raise `InvalidModelError` for INT8 inside of loops: they compute in floats (tensorrt-features.md#7.17)."""
    if not limits_count():
        return
    obey = config.get_flag(BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    for record in layers_in_loops(network):
        text = f"{record.name}: layers of a loop compute in FP32 or FP16, not in INT8"
        if record.type in _CONVERSIONS or (obey and record.precision is DataType.INT8):
            raise InvalidModelError(f"{text}; quantize outside of the loop, or {way_out()}")
        given = [one.dtype for one in record.inputs if one is not None] if record.type in _LOOP_ENTRIES else []
        if DataType.INT8 in given:
            raise InvalidModelError(f"{text}: it takes INT8 in; dequantize before the loop, or {way_out()}")
        if record.precision is DataType.INT8:
            reporter.warning(f"{text}; the precision that is set counts for nothing")


def _readers(network: INetworkDefinition) -> dict[ITensor, list[LayerRecord]]:
    found: dict[ITensor, list[LayerRecord]] = {}
    for record in network.graph.records:
        for one in record.inputs:
            if one is not None:
                found.setdefault(one, []).append(record)
    return found
