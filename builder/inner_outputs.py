"""Which tensors of a network are outputs besides, or in place of, its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InnerOutputs:
    """The tensors that are outputs; `only` these, or behind the network's own."""

    names: tuple[str, ...]
    only: bool = False
