"""A loop as one layer of the inspector, whatever the launches of its iterations are (tensorrt-features.md#7.18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from mlirt.runtime.told_names import numbered

Record = Mapping[str, object]

BODY = "body"
"""Where the record of a loop has those of its launches."""


def loops_as_layers(records: Sequence[Record]) -> list[Record]:
    """The layers of a plan; the launches of a loop are one, which stands where the first of them stood.

    No two are told the same name (`numbered`). A loop reads what its launches read and do not write, and writes what
    they do not read or others do.
    """
    records = numbered(records)
    members: dict[str, list[Record]] = {}
    for record in records:
        if isinstance(loop := record.get("loop"), str):
            members.setdefault(loop, []).append(record)
    found: list[Record] = []
    for record in records:
        loop = record.get("loop")
        body = members.get(loop, []) if isinstance(loop, str) else []
        if len(body) < 2:
            found.append(record)
        elif body[0] is record:
            found.append(_layer(str(loop), body, [one for one in records if one.get("loop") != loop]))
    return found


def _layer(name: str, body: Sequence[Record], others: Sequence[Record]) -> Record:
    read, written = _tensors(body, "inputs"), _tensors(body, "outputs")
    wanted = _tensors(others, "inputs")
    return {
        "name": name,
        "family": "loop",
        "inputs": [tensor for one, tensor in read.items() if one not in written],
        "outputs": [tensor for one, tensor in written.items() if one not in read or one in wanted],
        BODY: list(body),
    }


def _tensors(records: Sequence[Record], kind: str) -> dict[str, Record]:
    """The tensors that layers read or write, by their names, each once."""
    lists = [cast("Sequence[Record]", record.get(kind) or ()) for record in records]
    return {str(one.get("name", "")): one for tensors in lists for one in tensors}
