"""The sizes of a Winograd convolution: how many tasks there are, and where in memory lies what they make; no IR."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.passes.lowering.convolution.cpu_winograd_choice import Cut, Image


@dataclass(frozen=True)
class Plan:
    """The sizes that follow from an image and how it is cut; they count elements."""

    image: Image
    cut: Cut

    @property
    def across(self) -> int:
        """Patches in a row."""
        return -(-self.image.length // self.cut.scheme.result)

    @property
    def pieces(self) -> int:
        """Into how many pieces an image is cut."""
        return -(-self.image.patches(self.cut.scheme) // self.cut.per_task)

    @property
    def tasks(self) -> int:
        return self.image.batch * self.pieces * self.cut.groups

    @property
    def blocks_per_group(self) -> int:
        return self.cut.panels_per_group * self.cut.shape.blocks

    @property
    def input_block(self) -> int:
        """From a block of channels of the transformed input to the next one."""
        return self.cut.per_task * self.image.lanes * (self.pieces if self.cut.is_shared else 1)

    @property
    def input_point(self) -> int:
        """From a point of the transformed input to the next one."""
        return self.image.blocks_in * self.input_block + self._apart

    @property
    def input_size(self) -> int:
        """The transformed input of a task, or of an image."""
        return self.cut.scheme.points * self.input_point

    @property
    def output_block(self) -> int:
        """From a block of channels of the sums to the next one."""
        return self.cut.per_task * self.image.lanes

    @property
    def output_point(self) -> int:
        """From a point of the sums to the next one."""
        return self.blocks_per_group * self.output_block + self._apart

    @property
    def _apart(self) -> int:
        """Points that lie a power of two apart would compete for a few places of the first-level cache."""
        return self.image.lanes

    @property
    def panel_size(self) -> int:
        """From a panel of weights to the next one."""
        return self.image.blocks_in * self.image.lanes**2 * self.cut.shape.blocks

    @property
    def task_size(self) -> int:
        """What a task has for itself."""
        return self.cut.scheme.points * self.output_point + (0 if self.cut.is_shared else self.input_size)

    @property
    def memory_size(self) -> int:
        """The memory of all tasks."""
        return self.tasks * self.task_size + (self.image.batch * self.input_size if self.cut.is_shared else 0)

    @property
    def is_exact(self) -> bool:
        """Whether no patch reaches beyond the result."""
        return self.image.rows % self.cut.scheme.result == 0 == self.image.length % self.cut.scheme.result
