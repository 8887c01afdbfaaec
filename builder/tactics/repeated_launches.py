"""The records of a plan that does the same several times, with several copies of its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlirt.builder.tactics.network_of_one_op import EDGE

Record = dict[str, Any]


def repeated(manifest: Mapping[str, Any], calls: int, copies: int) -> tuple[list[Record], list[Record]]:
    """The buffers and the launches of so many calls, which take turns with the copies of the weights.

    Launches at the edges are done once: those in front of the others, and those behind them.
    """
    own = [place for place, launch in enumerate(manifest["launches"]) if launch["layer"] != EDGE]
    first, last = (own[0], own[-1] + 1) if own else (0, 0)
    repeats = manifest["launches"][first:last]
    before, behind = manifest["launches"][:first], manifest["launches"][last:]
    steps = len(before) + len(repeats) * calls + len(behind)
    buffers: list[Record] = [{**buffer, "first": 0, "last": max(steps - 1, 0)} for buffer in manifest["buffers"]]
    weights = [place for place, buffer in enumerate(buffers) if buffer["kind"] == "weight"]
    places = [{place: place for place in weights}]
    for copy in range(1, copies):
        places.append({place: len(buffers) + number for number, place in enumerate(weights)})
        buffers += [{**buffers[place], "weight": copy_key(buffers[place]["weight"], copy)} for place in weights]
    launches = [
        {**launch, "args": [_moved(argument, places[call % copies]) for argument in launch["args"]]}
        for call in range(calls)
        for launch in repeats
    ]
    return buffers, [*before, *launches, *behind]


def copy_key(key: str, copy: int) -> str:
    """The name of a copy of a weight; the first has its own."""
    return f"{key} copy {copy}" if copy else key


def _moved(argument: Record, places: Mapping[int, int]) -> Record:
    """An argument with its buffer, if it is a weight, exchanged for a copy."""
    if "map" in argument:
        return {"map": _moved(argument["map"], places)}
    if argument.get("buffer") not in places:
        return argument
    return {**argument, "buffer": places[argument["buffer"]]}
