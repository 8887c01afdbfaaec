"""Which layers of a network leave the range of half precision, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from mlirt.runtime.data_types import numpy_dtype

if TYPE_CHECKING:
    from mlirt.builder.number_range.half_values import HalfValue

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

LOST = 0.01
"""The part of its norm that rounding may take from a tensor; of numbers in range it takes 0.0003 (bfloat16: 0.003)."""
_NAMED = 3  # layers that a sentence names


@dataclass(frozen=True)
class Departure:
    """What the narrower type does to a tensor: how many elements become infinite, what part of the norm is lost."""

    largest: float
    beyond: float
    lost: float

    @property
    def kind(self) -> Literal["overflow", "underflow"] | None:
        """What is wrong; None where the type holds the numbers."""
        return "overflow" if self.beyond else "underflow" if self.lost > LOST else None

    @classmethod
    def of(cls, array: Array, dtype: str, masks: bool = False) -> Departure:
        """Compare float32 numbers with what is left of them; those that are not finite already count for nothing.

        Where `masks`, no number counts that becomes minus infinity.
        """
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            narrow = array.astype(numpy_dtype(dtype)).astype(np.float32)
        known = np.isfinite(array)
        beyond = known & ~np.isfinite(narrow) & ((array > 0) if masks else True)
        rest = known & np.isfinite(narrow)
        exact = array[rest].astype(np.float64)
        norm = float(np.linalg.norm(exact))
        lost = float(np.linalg.norm(exact - narrow[rest])) / norm if norm else 0.0
        return cls(float(np.abs(array[known]).max(initial=0.0)), float(beyond.mean()) if array.size else 0.0, lost)


@dataclass(frozen=True)
class RangeIssue:
    """A layer whose result leaves the range of the type that it is stored in.

    `kind`: "overflow" or "underflow". `share`: the part of the elements that become infinite, or the part of the norm
    that rounding takes. `largest`: the largest magnitude in float32. `layers`: the layer and those that read it.
    """

    layer: str
    tensor: str
    dtype: str
    kind: Literal["overflow", "underflow"]
    share: float
    largest: float
    layers: tuple[str, ...]
    is_own: bool

    @classmethod
    def found(cls, value: HalfValue, what: Departure) -> RangeIssue | None:
        """The issue of a tensor; None where its numbers are in range."""
        if what.kind is None:
            return None
        share = what.beyond if what.kind == "overflow" else what.lost
        return cls(value.layer, value.tensor, value.dtype, what.kind, share, what.largest, value.layers, value.is_own)

    def __str__(self) -> str:
        tensor = f" (tensor {self.tensor!r})" if self.tensor else ""
        if self.kind == "overflow":
            what = f"{self.share:.2%} of its numbers become infinite in {self.dtype}"
        else:
            what = f"its numbers are so small that {self.dtype} loses {self.share:.0%} of their norm"
        return f"layer {self.layer!r}{tensor}: {what}; the largest is {self.largest:.3g}"


@dataclass(frozen=True)
class RangeReport:
    """`issues` in the order of the network, and how many tensors were looked at."""

    issues: list[RangeIssue] = field(default_factory=list[RangeIssue])
    tensors: int = 0

    def __bool__(self) -> bool:
        """Whether anything leaves the range."""
        return bool(self.issues)

    @property
    def layer_precisions(self) -> dict[str, str]:
        """For `mlirt.compile`: the layers that have to compute in float32, those that read such numbers among them."""
        return {name: "fp32" for one in self.issues if not one.is_own for name in one.layers}

    def lines(self) -> list[str]:
        """A line for each issue, and what to do."""
        if not self.issues:
            return [f"The numbers of all {self.tensors} tensors in half precision are in its range."]
        return [*map(str, self.issues), *self.advice()]

    def advice(self) -> list[str]:
        """What to do, for the command line."""
        found: list[str] = []
        if self.layer_precisions:
            flag = ",".join(f"{name}:{text}" for name, text in self.layer_precisions.items())
            found.append(
                "Keep these layers and those that read them in float32: "
                f"--layerPrecisions={flag} --precisionConstraints=obey"
            )
        if any(one.is_own for one in self.issues):
            found.append("Layers that are in half precision in the model itself: build without --fp16")
        return found

    def summary(self) -> str:
        """One sentence for a warning: what leaves the range, where first, and what to do."""
        layers = list(dict.fromkeys(one.layer for one in self.issues))
        types = " and ".join(sorted({one.dtype for one in self.issues}))
        more = f" and {len(layers) - _NAMED} more" if len(layers) > _NAMED else ""
        first = {one.layer: one for one in reversed(self.issues)}
        named = "; ".join(str(first[name]) for name in layers[:_NAMED])
        return (
            f"{_count(layers)} the range of {types}, in the order of the network: {named}{more}. Keep them and the "
            "layers that read them in float32: layer_precisions=mlirt.check_range(model, feeds).layer_precisions, or "
            "the flags that rt-exec --checkRange prints"
        )


def _count(layers: Sequence[str]) -> str:
    return "the results of 1 layer leave" if len(layers) == 1 else f"the results of {len(layers)} layers leave"
