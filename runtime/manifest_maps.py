"""Validates the descriptions of tensors in a plan that devices copy boxes from."""

from collections.abc import Collection

from mlirt.runtime.json_record import JsonRecord
from mlirt.runtime.manifest import MapArgument
from mlirt.runtime.tensor_maps import ELEMENTS, ROUNDED, SWIZZLES, MapLayout

_MAX_RANK = 5
_MAX_CORNER = 1 << 15
_FIELDS = ("buffer", "offset", "element", "sizes", "steps", "box", "swizzle", "lower", "upper", "stride", "tf32")


def map_argument(raw: object, where: str, buffer_count: int, names: Collection[str]) -> MapArgument:
    """The record of one description; a `PlanError` names the field that is wrong."""
    record = JsonRecord(raw, where, _FIELDS)
    element = record.text("element")
    if element not in ELEMENTS:
        raise record.error("element", f"{element[:40]!r} is no element that a device can copy")
    tf32 = record.flag("tf32")
    if tf32 and element != ROUNDED:
        raise record.error("tf32", f"only {ROUNDED} is rounded, not {element}")
    swizzle = record.integer("swizzle", 0, max(SWIZZLES), 0)
    if swizzle not in SWIZZLES:
        raise record.error("swizzle", f"expected one of {SWIZZLES}, got {swizzle}")
    sizes, steps = (tuple(record.formulas(key, names, _MAX_RANK)) for key in ("sizes", "steps"))
    if not sizes or len(sizes) != len(steps):
        raise record.error("steps", f"{len(steps)} steps for {len(sizes)} sizes")
    box = _numbers(record, "box", 1, 1024)
    stride = _numbers(record, "stride", 1, 8)
    lower, upper = (_numbers(record, key, -_MAX_CORNER, _MAX_CORNER) for key in ("lower", "upper"))
    spatial = len(sizes) - 2 if stride else 0
    if any(len(one) != spatial for one in (lower, upper, stride)):
        raise record.error("stride", f"a window over {len(sizes)} dimensions has {spatial} strides and corners")
    if len(box) != (2 if stride else len(sizes)):
        raise record.error("box", f"{len(box)} lengths do not fit {len(sizes)} dimensions")
    return MapArgument(
        buffer=record.index("buffer", buffer_count, "buffers"),
        offset=record.formula("offset", names, 0),
        sizes=sizes,
        steps=steps,
        fixed=MapLayout(element, (), (), box, swizzle, lower, upper, stride, tf32),
    )


def _numbers(record: JsonRecord, key: str, low: int, high: int) -> tuple[int, ...]:
    items = record.items(key, _MAX_RANK, [])
    found = tuple(
        item for item in items if isinstance(item, int) and not isinstance(item, bool) and low <= item <= high
    )
    if len(found) != len(items):
        raise record.error(key, f"expected whole numbers in [{low}, {high}]")
    return found
