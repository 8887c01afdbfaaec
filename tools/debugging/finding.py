"""What rt-debug says is at fault."""

from __future__ import annotations

from dataclasses import dataclass

ALONE = "no single launch {}: launches that share memory, or their order"
"""What is at fault where each launch is right by itself."""


@dataclass(frozen=True)
class Finding:
    """What is at fault: a pass by its number in the pipeline, or the kernel of a layer; how far off, or its crash."""

    kind: str
    name: str
    number: int = 0
    layers: tuple[str, ...] = ()
    error: float = 0.0
    crash: str = ""

    def lines(self) -> list[str]:
        """The name, and the layers below it."""
        where = f" number {self.number}" if self.number else ""
        how = f" ({self.crash})" if self.crash else f" ({self.error:.3g} off)" if self.error else ""
        return [f"guilty: {self.kind}{where}: {self.name}{how}", *(f"  at {layer}" for layer in self.layers)]
