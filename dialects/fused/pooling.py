"""How the results of an op are pooled before they are stored: the kind, and windows that tile the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirt.dialects.fused.window import WindowKind, WindowKindAttr
from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.symbolic import Dim

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# The axis of a tensor on which the first axis of a window lies: behind images and channels, or blocks of them.
FIRST = 2


@irdl_attr_definition
class PoolingAttr(ParametrizedAttribute):
    """Windows that lie side by side on the spatial axes; what is left of an axis at its end belongs to none.

    `#fused.pooling<max [2, 2]>` keeps the largest of every 2 x 2 elements; `average` and `add` are the others.
    """

    name = "fused.pooling"

    kind: WindowKindAttr = param_def()
    window: DenseArrayBase[IntegerType] = param_def()

    @staticmethod
    def of(kind: WindowKind, window: Sequence[int]) -> PoolingAttr:
        return PoolingAttr(WindowKindAttr(kind), integer_list(window))

    def sizes(self) -> tuple[int, ...]:
        """The size of a window along each spatial axis."""
        return tuple(integers(self.window))

    def covered(self, result: Sequence[Dim]) -> tuple[Dim, ...]:
        """The elements that the windows of a result consist of, as the dimensions of a tensor."""
        after = FIRST + len(self.sizes())
        spatial = [length * size for length, size in zip(result[FIRST:after], self.sizes(), strict=True)]
        return (*result[:FIRST], *spatial, *result[after:])

    def of_array(self, array: Array) -> Array:
        """An array of such elements, pooled."""
        import numpy as np

        shape = list(array.shape[:FIRST])
        for length, size in zip(array.shape[FIRST:], self.sizes(), strict=False):
            shape += [length // size, size]
        split = array.reshape(*shape, *array.shape[FIRST + len(self.sizes()) :])
        axes = tuple(FIRST + 1 + 2 * axis for axis in range(len(self.sizes())))
        if self.kind.data is WindowKind.MAX:
            return split.max(axis=axes)
        combine = np.mean if self.kind.data is WindowKind.AVERAGE else np.sum
        return combine(split, axis=axes, dtype=np.float64).astype(array.dtype)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.kind.data.value} {list(self.sizes())}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            kind = parser.parse_str_enum(WindowKind)
            sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        return [WindowKindAttr(kind), integer_list(sizes)]


@irdl_attr_definition
class TotalsAttr(ParametrizedAttribute):
    """Boxes that lie side by side on the spatial axes, whose elements are added up; the last ones may be cut.

    `#fused.totals<[8, 32] of [20, 40]>` makes 3 x 2 sums of 20 x 40 elements.
    """

    name = "fused.totals"

    box: DenseArrayBase[IntegerType] = param_def()
    lengths: DenseArrayBase[IntegerType] = param_def()

    @staticmethod
    def of(box: Sequence[int], lengths: Sequence[int]) -> TotalsAttr:
        return TotalsAttr(integer_list(box), integer_list(lengths))

    def sizes(self) -> tuple[int, ...]:
        """The size of a box along each spatial axis."""
        return tuple(integers(self.box))

    def added(self) -> tuple[int, ...]:
        """How many elements there are along each spatial axis."""
        return tuple(integers(self.lengths))

    def counts(self) -> tuple[int, ...]:
        """How many boxes there are along each spatial axis."""
        return tuple(-(-length // size) for length, size in zip(self.added(), self.sizes(), strict=True))

    def of_array(self, array: Array) -> Array:
        """The sums of an array."""
        import numpy as np

        total = array.astype(np.float64)
        for axis, size in enumerate(self.sizes(), start=FIRST):
            total = np.add.reduceat(total, range(0, array.shape[axis], size), axis=axis)
        return total.astype(array.dtype)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{list(self.sizes())} of {list(self.added())}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            box = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            parser.parse_keyword("of")
            lengths = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        return [integer_list(box), integer_list(lengths)]


__all__ = ["FIRST", "PoolingAttr", "TotalsAttr"]
