"""The sizes of a Winograd convolution: how many tasks there are, and where in memory lies what they make; no IR."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.kernel.worker import slots_for
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.kernels.convolution.cpu.winograd_choice import Cut, Image


@dataclass(frozen=True)
class Plan:
    """The sizes that follow from a result of `batch` x `rows` x `length` pixels and how it is cut, in elements.

    `image` is that result as it was when the cut was chosen: where its sizes are known only at run time, a guess. With
    a `dilation` the patches of its first phase (every so many rows and pixels, from the first on) come first, then
    those of the phase one pixel further on, and so on. All phases have as many patches as the first one.
    """

    image: Image
    cut: Cut
    batch: Dim
    rows: Dim
    length: Dim
    dilation: tuple[int, int] = (1, 1)

    @property
    def phases(self) -> int:
        return self.dilation[0] * self.dilation[1]

    @property
    def across(self) -> Dim:
        """Patches in a row."""
        return ceil_div(ceil_div(self.length, self.dilation[1]), self.cut.scheme.result)

    @property
    def per_phase(self) -> Dim:
        """Patches in a phase of an image."""
        return self.across * ceil_div(ceil_div(self.rows, self.dilation[0]), self.cut.scheme.result)

    @property
    def patches(self) -> Dim:
        """Patches in an image."""
        return self.per_phase * self.phases

    @property
    def pieces(self) -> Dim:
        """Into how many pieces an image is cut."""
        return ceil_div(self.patches, self.cut.per_task)

    @property
    def tasks(self) -> Dim:
        return self.batch * self.pieces * self.cut.groups

    @property
    def slots(self) -> Dim:
        """How many tasks are under way at once."""
        return slots_for(self.tasks)

    @property
    def blocks_per_group(self) -> int:
        return self.cut.panels_per_group * self.cut.shape.blocks

    @property
    def input_block(self) -> Dim:
        """From a block of channels of the transformed input to the next one."""
        return (self.pieces if self.cut.is_shared else 1) * (self.cut.per_task * self.image.lanes)

    @property
    def input_point(self) -> Dim:
        """From a point of the transformed input to the next one."""
        return self.input_block * self.image.blocks_in + self._apart

    @property
    def input_size(self) -> Dim:
        """The transformed input of a task, or of an image."""
        return self.input_point * self.cut.scheme.points

    @property
    def output_block(self) -> int:
        """From a block of channels of the accumulators to the next one."""
        return self.cut.per_task * self.image.lanes

    @property
    def output_point(self) -> int:
        """From a point of the accumulators to the next one."""
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
    def task_size(self) -> Dim:
        """What a task has for itself."""
        return (0 if self.cut.is_shared else self.input_size) + self.cut.scheme.points * self.output_point

    @property
    def memory_size(self) -> Dim:
        """The memory of the tasks that are under way at once, and the transformed input that they share."""
        return self.slots * self.task_size + (self.batch * self.input_size if self.cut.is_shared else 0)

    @property
    def is_exact(self) -> bool:
        """Whether no patch reaches beyond the result."""
        down, across = (step * self.cut.scheme.result for step in self.dilation)
        return self.rows % down == 0 == self.length % across
