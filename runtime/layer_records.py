"""The layers of a plan in the words of TensorRT's engine inspector: names alone, or all that is known of each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import cast

from mlirt.runtime.expressions import ExpressionError, evaluate, parse
from mlirt.runtime.loop_layers import BODY, loops_as_layers
from mlirt.runtime.profile_ranges import ShapeRange
from mlirt.runtime.told_names import LAUNCH, told_name

Record = Mapping[str, object]

_FIELDS = {"FP32": "Float", "FP16": "Half"}
"""How TensorRT calls types of weights."""
_TYPES = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16", "bool": "Bool", "float64": "FP64"}
_VECTORS = {"FP16": 8}
_CHANNEL_MAJOR = ("FP32", "FP16", "Int8")
"""The types whose tensors TensorRT has with channels last."""
_WIDTHS = {2: "Two", 4: "Four", 16: "Sixteen", 32: "Thirty-two"}
_BLOCKS = {2: ("FP16",), 4: ("FP32", "FP16", "Int8"), 16: ("FP16",), 32: ("FP32", "FP16", "Int8")}
"""The widths of vectors for which TensorRT has a format."""
_LINEAR = {"FP16": "Row major linear FP16 format", "Int8": "Row major Int8 format", "Bool": "Row major linear BOOL"}
_OPEN = "N/A due to dynamic shapes"
"""The format of a tensor whose lengths no context has settled (tensorrt-features.md#17.4)."""
_TOLD = ("name", "family", "kernel", "inputs", "outputs", "weights", "parameters", "siblings", BODY, LAUNCH)
_WORDS = {"name": "Name", "family": "LayerType", "kernel": "TacticName"}
_KINDS = {
    "convolution": "Convolution",
    "matmul": "MatrixMultiply",
    "pointwise": "PointWiseV2",
    "reduction": "Reduce",
    "softmax": "SoftMax",
    "topk": "TopK",
    "view": "NoOp",
    "window": "Pooling",
}
"""TensorRT's words for families of kernels; others are capitalised."""


def inspected(
    layers: Sequence[Record],
    bindings: Sequence[str],
    verbosity: str,
    values: Mapping[str, int] | None = None,
    profiles: Sequence[Mapping[str, ShapeRange]] = (),
) -> dict[str, object]:
    """The whole engine; `verbosity` is none, layer_names_only (or default) or detailed (or verbose).

    `values` are what the symbols of dynamic dimensions stand for, where shapes are set; where they are given, tensors
    with other dimensions have no format. `profiles` are told where there are any.
    """
    if verbosity.lower() == "none":
        return {"Layers": [], "Bindings": []}
    found = [inspected_layer(layer, verbosity, values) for layer in loops_as_layers(layers)]
    told: dict[str, object] = {"Layers": found}
    told["Bindings"] = list(bindings)
    return told | ({"Profiles": [_profile(one) for one in profiles]} if profiles else {})


def _profile(profile: Mapping[str, ShapeRange]) -> dict[str, dict[str, list[int]]]:
    return {
        name: {"min": list(one.minimum), "opt": list(one.optimum), "max": list(one.maximum)}
        for name, one in profile.items()
    }


def inspected_layer(layer: Record, verbosity: str, values: Mapping[str, int] | None = None) -> object:
    """One layer: an empty string, its name, or an object; that of a loop has the launches of its iterations too."""
    if verbosity.lower() == "none":
        return ""
    if verbosity.lower() in ("layer_names_only", "default"):
        return told_name(layer)
    told: dict[str, object] = {word: layer[key] for key, word in _WORDS.items() if key in layer}
    if "Name" in told:
        told["Name"] = told_name(layer)
    if "LayerType" in told:
        told["LayerType"] = _kind(str(told["LayerType"]))
    parameters = layer.get("parameters")
    if isinstance(parameters, Mapping):
        told.update(cast("Mapping[str, object]", parameters))
    elif "LayerType" in told:
        told["ParameterType"] = told["LayerType"]
    if "kernel" in layer:
        told["TacticValue"] = f"0x{hashlib.blake2b(str(layer['kernel']).encode(), digest_size=8).hexdigest()}"
    for key, word in (("inputs", "Inputs"), ("outputs", "Outputs")):
        if key in layer:
            told[word] = [_tensor(one, values) for one in _records(layer[key])]
    weights = _records(layer.get("weights"))
    if weights and "Weights" not in told:
        largest = max(weights, key=_count)
        told["Weights"] = {"Type": _FIELDS.get(_type(largest), _type(largest)), "Count": _count(largest)}
    body = _records(layer.get(BODY))
    told |= {"Body": [inspected_layer(one, verbosity, values) for one in body]} if body else {}
    return told | {key: value for key, value in layer.items() if key not in _TOLD}


def _kind(family: str) -> str:
    """A family in TensorRT's words."""
    if family.startswith("reformat"):
        return "Reformat"
    return _KINDS.get(family, "".join(part.capitalize() for part in family.split("_")))


def first_without_elements(layers: Sequence[Record], values: Mapping[str, int]) -> str | None:
    """The first layer whose result has no elements where the symbols have these values, by its name."""
    for layer in layers:
        for output in _records(layer.get("outputs")):
            if any(_is_nothing(length, values) for length in _items(output.get("shape"))):
                return str(layer.get("name", ""))
    return None


def _is_nothing(length: object, values: Mapping[str, int]) -> bool:
    try:
        return evaluate(parse(length, values), values) < 1
    except ExpressionError:
        return False


def _tensor(record: Record, values: Mapping[str, int] | None) -> dict[str, object]:
    lengths = [_length(one, values or {}) for one in _items(record.get("logical", record.get("shape")))]
    is_open = values is not None and -1 in lengths
    told: dict[str, object] = {
        "Name": record.get("name", ""),
        "Location": "Device",
        "Dimensions": lengths,
        "Format/Datatype": _OPEN if is_open else _format(record),
    }
    width = _width(record)
    return told | ({"ChannelsPerVector": width} if width and width not in _known_widths(record) else {})


def _format(record: Record) -> str:
    """How a tensor lies in memory, in TensorRT's words (tensorrt-features.md#5.5); its type alone where there are none
    for it. Vectors of a width that TensorRT lacks have the words of the next wider ones: `_tensor` tells their own.
    """
    kind, order = _type(record), str(record.get("format", "row major linear"))
    shape = [length if isinstance(length, int) else -1 for length in _items(record.get("shape"))]
    if order == "channels last" and kind in _CHANNEL_MAJOR:
        vector = _VECTORS.get(kind, 0)
        is_whole = vector and len(shape) > 1 and shape[1] % vector == 0
        return f"Channel major {kind} format" + (f" where channel % {vector} == 0" if is_whole else "")
    if order == "channels in blocks":
        known, width = _known_widths(record), _width(record)
        wider = next((one for one in known if one >= width), max(known, default=0))
        return f"{_WIDTHS[wider]} wide channel vectorized row major {kind} format" if wider else _FIELDS.get(kind, kind)
    return _LINEAR.get(kind, f"Row major linear {kind}") if order == "row major linear" else _FIELDS.get(kind, kind)


def _width(record: Record) -> int:
    """The channels of a vector; 0 where a tensor has no vectors of them."""
    shape = _items(record.get("shape"))
    width = shape[-1] if shape and record.get("format") == "channels in blocks" else 0
    return width if isinstance(width, int) else 0


def _known_widths(record: Record) -> list[int]:
    """The widths of vectors that TensorRT has for the type of a tensor, in order."""
    return sorted(width for width, kinds in _BLOCKS.items() if _type(record) in kinds)


def _length(length: object, values: Mapping[str, int]) -> int:
    """A length; -1 where it is not known."""
    try:
        return evaluate(parse(length, values), values)
    except ExpressionError:
        return -1


def _count(record: Record) -> int:
    count = 1
    for length in _items(record.get("shape")):
        count *= _length(length, {})
    return count


def _type(record: Record) -> str:
    name = str(record.get("dtype", ""))
    return _TYPES.get(name, name.capitalize())


def _records(value: object) -> list[Record]:
    return [cast("Record", one) for one in _items(value) if isinstance(one, Mapping)]


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
