"""The numbers of a convolution that tests try, and the size of its result."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.symbolic import Dim, sym


@dataclass(frozen=True)
class WindowCase:
    """A convolution of two axes; `is_symbolic`: batch, height and width are known at run time only."""

    channels: int
    outputs: int
    height: int
    width: int
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pre: tuple[int, int] = (1, 1)
    post: tuple[int, int] = (1, 1)
    groups: int = 1
    batch: int = 1
    is_symbolic: bool = False
    has_residual: bool = False

    def lengths(self) -> tuple[int, int]:
        """Height and width of the result."""
        height, width = (_length(self, axis, size) for axis, size in enumerate((self.height, self.width)))
        assert isinstance(height, int)
        assert isinstance(width, int)
        return height, width

    def lengths_in_type(self) -> tuple[Dim, Dim]:
        """Height and width of the result's type."""
        sizes: tuple[Dim, Dim] = (sym("h"), sym("w")) if self.is_symbolic else (self.height, self.width)
        return _length(self, 0, sizes[0]), _length(self, 1, sizes[1])


def _length(case: WindowCase, axis: int, size: Dim) -> Dim:
    reach = case.dilation[axis] * (case.kernel[axis] - 1) + 1
    return (size + case.pre[axis] + case.post[axis] - reach) // case.stride[axis] + 1
