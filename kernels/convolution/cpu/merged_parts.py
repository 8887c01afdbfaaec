"""Groups that were merged into one: which blocks of the input the channels of a panel depend on. No IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


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

    def most(self, panels: int, width: int, depth: int) -> int:
        """The most blocks that a panel of `width` channels needs: so many of the weights of each are kept."""
        return max(len(self.blocks(panel * width, (panel + 1) * width, depth)) for panel in range(panels))

    def kept(self, packed: Array, width: int, depth: int) -> Array:
        """Of packed weights `[group, panel, block, ..]` those of `most` blocks, from the first that a panel needs on.

        Where fewer are left from there on, the last ones.
        """
        import numpy as np

        _, panels, blocks = packed.shape[:3]
        most = self.most(panels, width, depth)
        starts = [
            min(self.blocks(panel * width, (panel + 1) * width, depth).start, blocks - most) for panel in range(panels)
        ]
        return np.stack([packed[:, panel, start : start + most] for panel, start in enumerate(starts)], axis=1)

    def needed(self, panels: int, width: int, depth: int) -> float:
        """Which part of all pairs of a block of the input and a panel of `width` channels is to be multiplied."""
        blocks = -(-self.count * self.inputs // depth)
        found = sum(len(self.blocks(panel * width, (panel + 1) * width, depth)) for panel in range(panels))
        return found / (panels * blocks)
