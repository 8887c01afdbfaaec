"""What an importer refuses, gathered so that all of it is told at once."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.utils.exceptions import VerifyException

from mlirt.errors import Refusal

DAMAGE = (
    VerifyException,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    AttributeError,
    ArithmeticError,
    AssertionError,
)
"""What damaged models make handlers run into; anything else is a defect of the importer."""


@dataclass
class RefusedNodes:
    """Refused nodes in the order in which they were met."""

    _nodes: list[tuple[str, str, str, str, str]] = field(default_factory=list[tuple[str, str, str, str, str]])

    def add(self, operator: str, domain: str, node: str, why: str, way_out: str) -> None:
        self._nodes.append((operator, domain, node, why, way_out))

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def table(self) -> tuple[Refusal, ...]:
        """One row for each operator and reason."""
        rows: dict[tuple[str, str, str, str], list[str]] = {}
        for operator, domain, node, why, way_out in self._nodes:
            rows.setdefault((operator, domain, why, way_out), []).append(node)
        return tuple(
            Refusal(operator, domain, why, way_out, tuple(nodes))
            for (operator, domain, why, way_out), nodes in rows.items()
        )
