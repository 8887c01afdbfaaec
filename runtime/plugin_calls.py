"""Launches that a plugin computes: what a plan says of them.

In the manifest the record of such a kernel has, in place of code, `"plugin": {"version", "namespace", "state",
"inputs", "elements", "ranks"}`; its `symbol` is the plugin's name. The kernel takes a pointer to each tensor, of which
the first `inputs` are read and the others written, then the lengths of all of them as i64. `elements` and `ranks` have
an entry for each tensor, `state` is the key of the weight whose bytes the plugin is made from (none: no bytes).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlirt.runtime.data_types import SAFETENSORS_NAMES, numpy_dtype
from mlirt.runtime.record_kinds import TEXT, numbers, texts, whole
from mlirt.runtime.record_schema import Fault, Given, Kind, Scope, stored

_MAX_TENSORS = 256
_MAX_RANK = 8


def _weight(value: Any, scope: Scope, given: Given) -> str:
    if TEXT.read(value, scope, given) not in scope.weights:
        raise Fault(f"there is no weight {value[:80]!r}")
    return value


@dataclass(frozen=True)
class PluginCall:
    """Which plugin computes a launch, and what it is passed; its name is the kernel's symbol."""

    name: str
    version: str = field(metadata=stored(TEXT))
    namespace: str = field(metadata=stored(TEXT))
    state: str | None = field(metadata=stored(Kind(_weight, "key of a weight"), default=None))
    """The bytes that the plugin is made from; none without it."""
    inputs: int = field(metadata=stored(whole(0, _MAX_TENSORS)))
    """How many of the tensors are read; the others are written."""
    elements: tuple[str, ...] = field(metadata=stored(texts(_MAX_TENSORS)))
    """The element type of each tensor."""
    ranks: tuple[int, ...] = field(
        metadata=stored(numbers(0, _MAX_RANK, _MAX_TENSORS, f"expected whole numbers up to {_MAX_RANK}"))
    )
    """The number of dimensions of each."""

    def check(self, scope: Scope) -> None:
        """Each tensor has a type and a rank, and the inputs are among them."""
        if len(self.ranks) != len(self.elements) or any(one not in SAFETENSORS_NAMES for one in self.elements):
            raise Fault("expected a data type and a rank for each tensor", ".elements")
        if self.inputs > len(self.ranks):
            raise Fault(f"expected a whole number in [0, {len(self.ranks)}], got {self.inputs}", ".inputs")

    def check_kernel(self, args: Sequence[str], written: frozenset[int]) -> None:
        """A kernel of these arguments stands for the call: a pointer to each tensor, then all their lengths."""
        if list(args) != ["ptr"] * len(self.ranks) + ["i64"] * sum(self.ranks):
            raise Fault(f"expected {len(self.ranks)} pointers and {sum(self.ranks)} lengths", ".args")
        if written != frozenset(range(self.inputs, len(self.ranks))):
            raise Fault("a plugin writes its outputs", ".written")


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
