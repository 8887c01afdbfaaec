"""The machine code of trials: what compiles it for a kind of target, and how their plans hold it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

Codes: TypeAlias = "Mapping[Any, Any]"
"""The code of each source: cubins by architecture, or an object file."""


class Compiler(Protocol):
    """Takes the kernels of trials as they come; those that do not compile are left out."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def take(self, sources: Iterable[Any]) -> None:
        """Kernels that shall be compiled."""
        ...

    def finish(self) -> Codes:
        """The code of all that was taken."""
        ...


@dataclass(frozen=True)
class PlanCode:
    """The `sections` of a plan with the code of its kernels, what their `records` say of it, and the `header`: the
    fields of the manifest that say what it is for.
    """

    sections: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    records: Mapping[str, Mapping[str, object]] = field(default_factory=dict[str, dict[str, object]])
    header: Mapping[str, object] = field(default_factory=dict[str, object])


__all__ = ["Codes", "Compiler", "PlanCode"]
