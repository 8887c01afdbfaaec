"""What the inspector and the profiler call a layer: several functions of each element in one launch are a PWN."""

from collections.abc import Mapping, Sequence
from typing import cast

_JOINED, _BESIDE = " + ", " || "


def told_name(record: Mapping[str, object]) -> str:
    """`PWN(add1, relu1)` for layers that became one pointwise launch (tensorrt-features.md#24.2), `conv1 || conv2` for
    convolutions of one input that are computed together (tensorrt-features.md#23.26), else the name.
    """
    name = str(record.get("name", ""))
    parts = name.split(_JOINED)
    if record.get("family") == "pointwise" and len(parts) > 1:
        return f"PWN({', '.join(parts)})"
    groups = cast("Sequence[Sequence[str]]", record.get("siblings", ()))
    for group in groups:
        if set(group) <= set(parts):  # the record of a loop has the launches' fields and another name
            rest = [part for part in parts if part not in group]
            parts = [_BESIDE.join(group), *rest]
    return _JOINED.join(parts) if groups else name
