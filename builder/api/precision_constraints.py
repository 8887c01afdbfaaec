"""What a network's layers are asked to compute in, as the builder's flags let it count (tensorrt-features.md#4.3 to
4.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp, UnitAttr, f16

from mlirt.builder.api.tensorrt_limits import layers_in_loops
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.layer_precisions import OBEYED, set_layer_precisions
from mlirt.dialects.tensor_types import element_of
from mlirt.errors import InvalidModelError
from mlirt.tensorrt.build_enums import BuilderFlag
from mlirt.tensorrt.data_types import DataType
from mlirt.tensorrt.limits import limits_count

if TYPE_CHECKING:
    from mlirt.builder.api.builder_config import IBuilderConfig
    from mlirt.frontend.network.definition import INetworkDefinition
    from mlirt.frontend.network.record import LayerRecord
    from mlirt.frontend.network.tensor import ITensor
    from mlirt.tensorrt.reporting import Reporter

_FORMATS = {DataType.FLOAT: "fp32", DataType.HALF: "fp16", DataType.INT8: "int8"}
_PERMISSION = {DataType.HALF: BuilderFlag.FP16, DataType.INT8: BuilderFlag.INT8}
NO_NATIVE_HALF = "Network needs native FP16 and platform does not have native FP16"


def constrain_precisions(
    module: ModuleOp, network: INetworkDefinition, config: IBuilderConfig, reporter: Reporter, target: str
) -> None:
    """Let the module carry what its layers are asked for, where a flag makes that more than a hint.

    Under OBEY raises `InvalidModelError`, naming the layer, for a format that no flag permits; under PREFER it is left
    out with a warning. What passes find impossible later is an error or a warning likewise.
    """
    requests = {record: request for record in network.graph.records if (request := _request(record)) is not None}
    if target == "cpu":
        _warn_of_half(module, network, reporter)
    obey = config.get_flag(BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
    prefer = any(map(config.get_flag, (BuilderFlag.PREFER_PRECISION_CONSTRAINTS, BuilderFlag.STRICT_TYPES)))
    if obey and prefer:
        reporter.warning("OBEY_PRECISION_CONSTRAINTS and PREFER_PRECISION_CONSTRAINTS are both set: OBEY counts")
    if requests and not (obey or prefer):
        names = ", ".join(record.name for record in requests)
        flags = "OBEY_PRECISION_CONSTRAINTS or PREFER_PRECISION_CONSTRAINTS"
        reporter.warning(f"precisions of layers are ignored without {flags}: {names}")
        requests = {}
    asked = _outside_of_int8(network, config, target)
    for record, request in requests.items():
        fault = _fault(record, request, config, target)
        if fault is None:
            asked[record.name] = _FORMATS[request]
        elif obey:
            raise InvalidModelError(fault)
        else:
            reporter.warning(f"{fault}; the layer computes in another precision")
    set_layer_precisions(module, asked)
    if obey and asked:
        module.attributes[OBEYED] = UnitAttr()


def _request(record: LayerRecord) -> DataType | None:
    """What a layer is to compute in: its precision, else the floating-point type of its first output.

    That of a layer which reads no floating-point numbers is a conversion.
    """
    request = record.precision
    if request is None and _has_floats(record.inputs):
        request = record.output_types.get(0)
    return request if request in _FORMATS and _computes(record) else None


def _computes(record: LayerRecord) -> bool:
    """Whether a layer has floating-point outputs at all: only those have a precision to choose."""
    return record.type.name not in ("CONSTANT", "SHAPE") and _has_floats(record.outputs)


def _has_floats(tensors: Sequence[ITensor | None]) -> bool:
    return any(tensor is not None and tensor.dtype in (DataType.FLOAT, DataType.HALF) for tensor in tensors)


def _outside_of_int8(network: INetworkDefinition, config: IBuilderConfig, target: str) -> dict[str, str]:
    """Layers of loops in an INT8 build, which compute in FP16 where it may be and is, else in FP32
    (tensorrt-features.md#7.17).
    """
    if not (limits_count() and config.get_flag(BuilderFlag.INT8)):
        return {}
    half = target == "cuda" and config.get_flag(BuilderFlag.FP16)
    return {record.name: "fp16" if half else "fp32" for record in layers_in_loops(network) if _computes(record)}


def _warn_of_half(module: ModuleOp, network: INetworkDefinition, reporter: Reporter) -> None:
    """Say which inputs and outputs are HALF where no platform computes in it (tensorrt-features.md#21.5)."""
    kinds = entry_function(module).function_type  # the tensors themselves would ask their layers again
    tensors = (*network.graph.inputs, *network.graph.outputs)
    types = (*kinds.inputs.data, *kinds.outputs.data)
    halves = [one.name for one, kind in zip(tensors, types, strict=False) if element_of(kind) == f16]
    if halves:
        reporter.warning(f"{NO_NATIVE_HALF}: {', '.join(halves)} are HALF, and a CPU computes with them in FP32")


def _fault(record: LayerRecord, request: DataType, config: IBuilderConfig, target: str) -> str | None:
    """Why a layer cannot have what it is asked for; None where nothing is known against it."""
    flag = _PERMISSION.get(request)
    if flag is not None and not config.get_flag(flag):
        return f"{record.name}: precision {request.name} is set, but BuilderFlag.{flag.name} is not"
    output = record.output_types.get(0)
    if record.precision is not None and output is not None and _differs(record.precision, output):
        return f"{record.name}: precision {record.precision.name} with an output of {output.name}: no implementation"
    if request is DataType.HALF and target == "cpu":
        return f"{NO_NATIVE_HALF}: layer {record.name} computes in f32, but fp16 was asked for"
    return None


def _differs(precision: DataType, output: DataType) -> bool:
    """Whether an output is of a format that the layer's own does not become; int8 products may have any output, and
    HALF becomes FLOAT by a cast (tensorrt-features.md#4.8, 4.9).
    """
    casts = precision is DataType.INT8 or (precision, output) == (DataType.HALF, DataType.FLOAT)
    return not casts and output in _FORMATS and output is not precision
