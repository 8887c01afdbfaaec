"""What convolution, deconvolution and pooling share: a window that slides over the last axes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition, opt_prop_def, prop_def

from mlirt.dialects.integer_list import integers_or
from mlirt.dialects.length_requirements import LengthRequirement, at_least
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.window_arithmetic import PaddingMode, Window


@irdl_attr_definition
class PaddingModeAttr(EnumAttribute[PaddingMode], SpacedOpaqueSyntaxAttribute):
    name = "trt.padding_mode"


class WindowedOp(TensorOp, ABC):
    """Absent strides and dilations are 1, absent pads 0; each list has one entry per spatial axis."""

    stride = opt_prop_def(DenseArrayBase.constr(i64))
    dilation = opt_prop_def(DenseArrayBase.constr(i64))
    pre_padding = opt_prop_def(DenseArrayBase.constr(i64))
    post_padding = opt_prop_def(DenseArrayBase.constr(i64))
    padding_mode = prop_def(PaddingModeAttr, default_value=PaddingModeAttr(PaddingMode.EXPLICIT_ROUND_DOWN))

    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """The window's length along each spatial axis."""

    def strides(self) -> tuple[int, ...]:
        return integers_or(self.stride, 1, len(self.sizes()))

    def dilations(self) -> tuple[int, ...]:
        return integers_or(self.dilation, 1, len(self.sizes()))

    def written_padding(self) -> tuple[tuple[int, int], ...]:
        """The pads as the properties give them, before the padding mode has its say."""
        return self._padding_of(len(self.sizes()))

    def _padding_of(self, count: int) -> tuple[tuple[int, int], ...]:
        pre, post = integers_or(self.pre_padding, 0, count), integers_or(self.post_padding, 0, count)
        return tuple(zip(pre, post, strict=True))

    def windows(self) -> tuple[Window, ...]:
        """One window per spatial axis."""
        sizes, mode = self.sizes(), self.padding_mode.data  # asked for once, as a property takes its time
        count = len(sizes)
        steps, spread = integers_or(self.stride, 1, count), integers_or(self.dilation, 1, count)
        geometry = zip(sizes, steps, spread, self._padding_of(count), strict=True)
        return tuple(Window(size, s, d, pre, post, mode) for size, s, d, (pre, post) in geometry)

    def spatial_dims(self) -> tuple[Dim, ...]:
        """The input's lengths along the spatial axes."""
        own = dims(self.operands[0].type)
        return own[len(own) - len(self.sizes()) :]

    def padding(self) -> tuple[tuple[Dim, Dim], ...]:
        """The pads before and after each spatial axis, as the padding mode makes them."""
        return tuple(window.padding(length) for window, length in zip(self.windows(), self.spatial_dims(), strict=True))

    def reach(self, lengths: Sequence[int]) -> list[tuple[int, int]]:
        """The cells before and after an input of these actual lengths that some window touches."""
        result: list[tuple[int, int]] = []
        for window, length in zip(self.windows(), lengths, strict=True):
            pre, post = window.padding(length)
            after = post + window.overhang(length)
            assert isinstance(pre, int)
            assert isinstance(after, int)
            result.append((pre, after))
        return result

    def check_window(self, constraint: str) -> None:
        """Raise unless each list has one entry per spatial axis, and windows, strides and dilations are positive."""
        count = len(self.sizes())
        lists = {
            "stride": self.stride,
            "dilation": self.dilation,
            "pre_padding": self.pre_padding,
            "post_padding": self.post_padding,
        }
        for label, given in lists.items():
            length = count if given is None else len(given)
            require(
                length == count,
                f"{constraint}: {label} of {self.name} has {length} entries, the window has {count} axes",
            )
        positive = min((*self.sizes(), *self.strides(), *self.dilations()), default=1) > 0
        require(positive, f"{constraint}: window, stride and dilation of {self.name} are positive")

    def windows_fit(self, constraint: str) -> Iterator[LengthRequirement]:
        """There is a window along each axis, unless the axis has no cells at all and none is needed."""
        geometry = zip(self.windows(), self.spatial_dims(), self.written_padding(), strict=True)
        for axis, (window, length, pads) in enumerate(geometry):
            has = length + sum(pads)
            fault = (
                f"the window of {self.name} reaches {window.extent} cells, but spatial axis {axis} with its pads has "
                f"only {has}"
            )
            where = 1 if window.takes_short_input else length
            yield at_least(constraint, fault, window.spare_cells(length), 0, where)
