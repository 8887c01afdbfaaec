"""Groups that were merged into one: which blocks of the input the channels of a panel depend on. No IR."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parts:
    """`count` parts of a group, of `inputs` channels that give `outputs` channels each; between parts the kernel is
    zero.
    """

    count: int
    inputs: int
    outputs: int

    def blocks(self, first: int, stop: int, depth: int) -> range:
        """The blocks of `depth` channels of the input that the channels from `first` to `stop` of the result need."""
        last = min(stop, self.count * self.outputs) - 1
        return range(
            first // self.outputs * self.inputs // depth, -(-(last // self.outputs + 1) * self.inputs // depth)
        )

    def needed(self, panels: int, width: int, depth: int) -> float:
        """Which part of all pairs of a block of the input and a panel of `width` channels is to be multiplied."""
        blocks = -(-self.count * self.inputs // depth)
        found = sum(len(self.blocks(panel * width, (panel + 1) * width, depth)) for panel in range(panels))
        return found / (panels * blocks)
