"""Launches that a plugin computes: what a plan says of them.

In the manifest the record of such a kernel has, in place of code, `"plugin": {"version", "namespace", "state",
"inputs", "elements", "ranks"}`; its `symbol` is the plugin's name. The kernel takes a pointer to each tensor, of which
the first `inputs` are read and the others written, then the lengths of all of them as i64. `elements` and `ranks` have
an entry for each tensor, `state` is the key of the weight whose bytes the plugin is made from (none: no bytes).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlirt.runtime.data_types import SAFETENSORS_NAMES, numpy_dtype
from mlirt.runtime.json_record import JsonRecord

_FIELDS = ("version", "namespace", "state", "inputs", "elements", "ranks")
_MOST_TENSORS = 256
_MAX_RANK = 8


@dataclass(frozen=True)
class PluginCall:
    """Which plugin computes a launch, and what it is passed."""

    name: str
    version: str
    namespace: str
    state: str | None
    inputs: int
    elements: tuple[str, ...]
    ranks: tuple[int, ...]


def parse_plugin(
    record: JsonRecord, args: Sequence[str], written: frozenset[int], weight_sizes: Mapping[str, int]
) -> PluginCall | None:
    """The call of a kernel's record, whose arguments have the types `args`; None for another kind of kernel."""
    if record.get("plugin", None) is None:
        return None
    inner = JsonRecord(record.get("plugin"), f"{record.where}.plugin", _FIELDS)
    elements, ranks = inner.texts("elements", _MOST_TENSORS), _ranks(inner)
    if len(ranks) != len(elements) or any(element not in SAFETENSORS_NAMES for element in elements):
        raise inner.error("elements", "expected a data type and a rank for each tensor")
    if list(args) != ["ptr"] * len(ranks) + ["i64"] * sum(ranks):
        raise record.error("args", f"expected {len(ranks)} pointers and {sum(ranks)} lengths")
    inputs = inner.integer("inputs", 0, len(ranks))
    if written != frozenset(range(inputs, len(ranks))):
        raise record.error("written", "a plugin writes its outputs")
    state = inner.optional_text("state")
    if state is not None and state not in weight_sizes:
        raise inner.error("state", f"there is no weight {state[:80]!r}")
    names = record.text("symbol"), inner.text("version"), inner.text("namespace")
    return PluginCall(*names, state, inputs, elements, ranks)


def _ranks(record: JsonRecord) -> tuple[int, ...]:
    items = record.items("ranks", _MOST_TENSORS)
    found = tuple(one for one in items if isinstance(one, int) and not isinstance(one, bool) and 0 <= one <= _MAX_RANK)
    if len(found) != len(items):
        raise record.error("ranks", f"expected whole numbers up to {_MAX_RANK}")
    return found


def dense_extents(call: PluginCall, args: Sequence[object]) -> dict[int, tuple[int, int]] | str:
    """By place of a tensor's pointer the bytes of a dense tensor of the lengths that follow; or what is wrong."""
    lengths = iter(args[len(call.ranks) :])
    found: dict[int, tuple[int, int]] = {}
    for place, (element, rank) in enumerate(zip(call.elements, call.ranks, strict=True)):
        size = numpy_dtype(element).itemsize
        for length in (next(lengths) for _ in range(rank)):
            if not isinstance(length, int) or length < 0:
                return f"a tensor of its plugin has the length {length}"
            size *= length
        found[place] = (0, size)
    return found
