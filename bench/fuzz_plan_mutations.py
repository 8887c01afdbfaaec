"""Changes fields of a plan file, so that all digests are right again: what the fuzz of plans tries."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import struct
from collections.abc import Iterator
from typing import Any, cast

_HEADER = struct.Struct("<8sQQQ32s")
_ALIGNMENT = 64
_NUMBERS = (0, 1, -1, 2, 3, 7, 16, 63, 64, 255, 4095, 4096, 65535, 2**31 - 1, 2**31, 2**32, 2**40, 2**46, 2**62, 2**63)
_KINDS = ("manifest",) * 8 + ("weights", "index")

Bodies = dict[str, bytes]


def sections_of(plan: bytes) -> Bodies:
    """The sections of a plan file, by name."""
    index_bytes = _HEADER.unpack(plan[: _HEADER.size])[3]
    rows = json.loads(plan[_HEADER.size : _HEADER.size + index_bytes])
    return {name: plan[offset : offset + size] for name, offset, size, _ in rows}


def plan_of(bodies: Bodies, rng: random.Random | None = None) -> bytes:
    """A plan file of sections with right digests; with `rng` one number of the index or the header is changed."""
    reserved = sum(len(json.dumps(name)) + 140 for name in bodies) + 64
    position = _HEADER.size + reserved
    rows: list[list[Any]] = []
    for name, body in bodies.items():
        start = -(-position // _ALIGNMENT) * _ALIGNMENT
        rows.append([name, start, len(body), hashlib.sha256(body).hexdigest()])
        position = start + len(body)
    head = [2, position, reserved]
    if rng is not None and rng.random() < 0.8:
        row = rng.choice(rows)
        place = rng.choice((1, 2))
        row[place] = _changed_number(row[place], rng)
    elif rng is not None:
        place = rng.randrange(3)
        head[place] = min(abs(_changed_number(head[place], rng)), 2**64 - 1)
    index = json.dumps(rows).encode().ljust(reserved)
    pieces = [_HEADER.pack(b"\x89mlirt\r\n", *head, hashlib.sha256(index).digest()), index]
    length = _HEADER.size + reserved
    for body in bodies.values():
        pieces += [bytes(-length % _ALIGNMENT), body]
        length += -length % _ALIGNMENT + len(body)
    return b"".join(pieces)


def mutated(plan: bytes, rng: random.Random) -> tuple[str, bytes]:
    """What was changed, and the plan with it: fields of the manifest, of the weights' header, or of the index."""
    bodies = sections_of(plan)
    kind = rng.choice(_KINDS)
    if kind == "index":
        return _mutated_index(bodies, rng)
    if kind == "weights":
        size = struct.unpack("<Q", bodies["weights"][:8])[0]
        record = json.loads(bodies["weights"][8 : 8 + size])
        text = _mutated_record(record, rng)
        changed = json.dumps(record).encode()
        changed += b" " * (-len(changed) % 8)
        bodies["weights"] = struct.pack("<Q", len(changed)) + changed + bodies["weights"][8 + size :]
        return f"weights {text}", plan_of(bodies)
    record = json.loads(bodies["manifest"])
    text = "; ".join(_mutated_record(record, rng) for _ in range(1 if rng.random() < 0.85 else 2))
    bodies["manifest"] = json.dumps(record).encode()
    return f"manifest {text}", plan_of(bodies)


def _mutated_index(bodies: Bodies, rng: random.Random) -> tuple[str, bytes]:
    if rng.random() < 0.5:
        return "index number", plan_of(bodies, rng)
    a, b = rng.sample(sorted(bodies), 2)
    swapped = {{a: b, b: a}.get(name, name): body for name, body in bodies.items()}
    if rng.random() < 0.3:
        del swapped[a]
        return f"index without {a}", plan_of(swapped)
    return f"index {a} <-> {b}", plan_of(swapped)


def _places(value: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
    """(container, key, path) of everything in a record."""
    items: Iterator[tuple[Any, Any]] = iter(())
    if isinstance(value, dict):
        items = iter(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        items = iter(enumerate(cast("list[Any]", value)))
    for key, inner in items:
        below = f"{path}.{key}"
        yield value, key, below
        yield from _places(inner, below)


def _mutated_record(record: Any, rng: random.Random) -> str:
    places = list(_places(record))
    wanted = rng.random()
    numbers = [one for one in places if type(one[0][one[1]]) in (int, float)]
    if wanted < 0.75 and numbers:
        container, key, path = rng.choice(numbers)
        before = container[key]
        container[key] = _changed_number(before, rng) if isinstance(before, int) else rng.choice((0.0, -1.5, 1e30))
        return f"{path}: {before} -> {container[key]}"
    container, key, path = rng.choice(places)
    if wanted < 0.9:  # what stands in a field of the same name elsewhere
        others = [one[0][one[1]] for one in places if one[1] == key and one[2] != path]
        container[key] = copy.deepcopy(rng.choice(others)) if others else None
        return f"{path}: another's"
    if isinstance(container, list) and rng.random() < 0.5:
        items = cast("list[Any]", container)
        items.insert(key, copy.deepcopy(items[key]))
        return f"{path}: twice"
    del container[key]
    return f"{path}: gone"


def _changed_number(before: int, rng: random.Random) -> int:
    choice = rng.random()
    if choice < 0.35:
        return before + rng.choice((-2, -1, 1, 2, 16, -16, 64))
    if choice < 0.5:
        return before * rng.choice((2, 3, 16, -1))
    if choice < 0.6:
        return before // 2
    return rng.choice(_NUMBERS) if choice < 0.85 else rng.randrange(4096)
