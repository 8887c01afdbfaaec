"""What the inspector and the profiler call a layer: several functions of each element in one launch are a PWN."""

from collections.abc import Container, Mapping, Sequence
from itertools import count
from typing import cast

LAUNCH = "launch"
"""Where a record has its number, from 1, among several launches of its layer."""
_JOINED, _BESIDE = " + ", " || "


def told_name(record: Mapping[str, object]) -> str:
    """`PWN(add1, relu1)` for layers that became one pointwise launch (tensorrt-features.md#24.2), `conv1 || conv2` for
    convolutions of one input that are computed together (tensorrt-features.md#23.26), else the name. Where a layer
    has several launches, one has its name and the second, for example, `[launch 2]` behind it.
    """
    name = _told_name(record)
    return f"{name} [launch {record[LAUNCH]}]" if LAUNCH in record else name


def numbered(records: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """The same records; of those with one name all but one are numbered, so that no two are told the same name.

    The first that does not only change an order of elements keeps the name.
    """
    groups: dict[str, list[int]] = {}
    for place, record in enumerate(records):
        groups.setdefault(told_name(record), []).append(place)
    found, taken = list(records), set(groups)
    for places in groups.values():
        kept = next((at for at in places if not str(records[at].get("family")).startswith("reformat")), places[0])
        for number, place in enumerate(places, 1):
            if place != kept:
                found[place] = _renamed(records[place], number, taken)
                taken.add(told_name(found[place]))
    return found


def _renamed(record: Mapping[str, object], number: int, taken: Container[str]) -> Mapping[str, object]:
    """With this number, or a larger one where a layer of the network has that name."""
    return next(one for one in ({**record, LAUNCH: k} for k in count(number)) if told_name(one) not in taken)


def _told_name(record: Mapping[str, object]) -> str:
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
