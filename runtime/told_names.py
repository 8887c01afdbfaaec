"""What the inspector and the profiler call a layer: several functions of each element in one launch are a PWN."""

from collections.abc import Mapping

_JOINED = " + "


def told_name(record: Mapping[str, object]) -> str:
    """`PWN(add1, relu1)` for layers that became one pointwise launch (tensorrt-features.md#24.2), else the name."""
    name = str(record.get("name", ""))
    is_joined = record.get("family") == "pointwise" and _JOINED in name
    return f"PWN({', '.join(name.split(_JOINED))})" if is_joined else name
