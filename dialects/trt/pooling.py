"""Pooling: the largest, the mean, or a blend of both, in each window of the input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import auto
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, FloatAttr, TensorType, f64, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.str_enum import StrEnum

from mlirt.dialects.integer_list import integers
from mlirt.dialects.length_requirements import LengthRequirement
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import Tensor, dims, rank, with_dims
from mlirt.dialects.trt.operand_checks import numbers
from mlirt.dialects.trt.windowed_op import WindowedOp
from mlirt.dialects.window_arithmetic import PaddingMode, ShortInput, Window

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@irdl_attr_definition
class ShortInputAttr(EnumAttribute[ShortInput], SpacedOpaqueSyntaxAttribute):
    name = "trt.short_input"


class PoolingKind(StrEnum):
    MAX = auto()
    AVERAGE = auto()
    MAX_AVERAGE_BLEND = auto()


@irdl_attr_definition
class PoolingKindAttr(EnumAttribute[PoolingKind], SpacedOpaqueSyntaxAttribute):
    name = "trt.pooling_kind"


@irdl_op_definition
class PoolingOp(WindowedOp):
    """Reduce each window over the last axes to one value (tensorrt-features.md#1.26a-1.26d).

    `max` takes the largest cell; cells of padding are minus infinity (the smallest integer), also where a window holds
    nothing else. `average` divides the sum by the number of cells that lie in the input, or, unless
    `average_count_excludes_padding`, in the padded input; cells past the padding never count; a window without cells
    gives 0. `max_average_blend` is (1 - blend_factor) max + blend_factor average.

    With `explicit_round_down`, `short_input` says what happens where the padded input is shorter than the window by
    less than a stride: it is `refused`, or there is one window, of which the cells behind the pads do not count
    (`overhanging`) or count as padding (`padded`).

    C1: the element type is not boolean. C2: the window has 1, 2 or 3 axes. C3: the input has at least one axis more
    than the window. C4: stride, dilation and pads have one entry per window axis; window, stride and dilation are
    positive. C5: the window fits into the padded input, as far as short inputs are refused. C6: blend_factor is in
    [0, 1]. C7: short inputs are refused in all other padding modes.

    Example: `%y = trt.pooling max %x {window = array<i64: 3, 3>, stride = array<i64: 2, 2>} :
    (tensor<1x8x7x7xf32>) -> tensor<1x8x3x3xf32>`
    """

    name = "trt.pooling"

    kind = prop_def(PoolingKindAttr)
    input = operand_def(TensorType)
    window = prop_def(DenseArrayBase.constr(i64))
    average_count_excludes_padding = prop_def(BoolAttr, default_value=BoolAttr.from_bool(True))
    blend_factor = prop_def(FloatAttr, default_value=FloatAttr(0.0, f64))
    short_input = prop_def(ShortInputAttr, default_value=ShortInputAttr(ShortInput.REFUSED))
    output = result_def(TensorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` functional-type(operands, results)"

    def sizes(self) -> tuple[int, ...]:
        return integers(self.window)

    def windows(self) -> tuple[Window, ...]:
        return tuple(replace(window, short_input=self.short_input.data) for window in super().windows())

    @property
    def excludes_padding(self) -> bool:
        return bool(self.average_count_excludes_padding.value.data)

    def check(self) -> None:
        numbers(self, "C1", self.input.type)
        axes = len(self.sizes())
        require(1 <= axes <= 3, f"C2: the window of {self.name} has {axes} axes, expected 1, 2 or 3")
        require(
            rank(self.input.type) > axes,
            f"C3: the input of {self.name} has rank {rank(self.input.type)}, its window needs at least {axes + 1}",
        )
        self.check_window("C4")
        blend = self.blend_factor.value.data
        require(0 <= blend <= 1, f"C6: blend_factor {blend} of {self.name} is not in [0, 1]")
        require(
            self.short_input.data is ShortInput.REFUSED or self.padding_mode.data is PaddingMode.EXPLICIT_ROUND_DOWN,
            f"C7: short_input of {self.name} needs padding_mode explicit_round_down",
        )

    def length_requirements(self) -> Iterator[LengthRequirement]:
        yield from self.windows_fit("C5")

    def _output_lengths(self) -> list[Dim]:
        pairs = zip(self.windows(), self.spatial_dims(), strict=True)
        return [window.output_length(length) for window, length in pairs]

    def infer(self) -> Sequence[Tensor]:
        lead = dims(self.input.type)[: rank(self.input.type) - len(self.sizes())]
        return [with_dims(self.input.type, [*lead, *self._output_lengths()])]

    def reference(self, *arrays: Array) -> Sequence[Array]:
        from mlirt.dialects.wide_arithmetic import narrow

        (x,) = arrays
        kind = self.kind.data
        if kind is PoolingKind.MAX:
            return [self._largest(x)]
        if kind is PoolingKind.AVERAGE:
            return [narrow(self._mean(x), x.dtype)]
        blend = self.blend_factor.value.data
        return [narrow((1 - blend) * self._largest(x) + blend * self._mean(x), x.dtype)]

    def _largest(self, x: Array) -> Array:
        import numpy as np

        from mlirt.dialects.sliding_windows import padded, reduce_windows, windows_of

        lowest = -np.inf if x.dtype.kind in "fV" else np.iinfo(x.dtype).min
        cells = padded(x, self.reach(x.shape[-len(self.sizes()) :]), lowest)
        return reduce_windows(
            windows_of(cells, self.sizes(), self.strides(), self.dilations()), len(self.sizes()), np.maximum
        )

    def _mean(self, x: Array) -> Array:
        import numpy as np

        from mlirt.dialects.sliding_windows import padded, reduce_windows, windows_of
        from mlirt.dialects.wide_arithmetic import widen

        lengths = x.shape[-len(self.sizes()) :]
        cells = padded(widen(x), self.reach(lengths))
        total = reduce_windows(
            windows_of(cells, self.sizes(), self.strides(), self.dilations()), len(self.sizes()), np.add
        )
        return total / np.maximum(self._counts(lengths), 1)

    def _counts(self, lengths: Sequence[int]) -> Array:
        """How many cells each window divides by."""
        import numpy as np

        counts = np.ones((), np.int64)
        for window, length in zip(self.windows(), lengths, strict=True):
            pre, post = window.padding(length)
            number = window.output_length(length)
            assert isinstance(pre, int)
            assert isinstance(post, int)
            assert isinstance(number, int)
            first, last = (0, length) if self.excludes_padding else (-pre, length + post)
            cells = np.arange(number)[:, None] * window.stride - pre + np.arange(window.size) * window.dilation
            counts = counts[..., None] * ((cells >= first) & (cells < last)).sum(1)
        return counts
