"""The transforms of Winograd's 3 x 3 convolutions: `y = A' ((G g G') * (B' d B)) A` for patches d and kernels g.

Results of 4 x 4 pixels take 36 / 16 products a pixel for each pair of channels, those of 2 x 2 pixels 4, and not 9.
Source: Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, 2015, F(2x2, 3x3) and F(4x4, 3x3); on the choice
of points: Barabasz, Anderson, Soodhalter, Gregg: Error Analysis and Improving the Accuracy of Winograd Convolution for
Deep Neural Networks, 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from mlirt.dialects.layout import arranged

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

WINDOW = 3
# Windows whose products stay in the second-level cache: 72 bytes each, and 288 of the largest scheme.
_WINDOWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Scheme:
    """Results of `result` x `result` pixels, from patches that are larger by the reach of the window.

    `input_matrix` is B' and `output_matrix` A': what stands to the left of a square; transposed, to its right.
    """

    result: int
    input_matrix: tuple[tuple[float, ...], ...]
    output_matrix: tuple[tuple[float, ...], ...]
    kernel_matrix: tuple[tuple[float, ...], ...]

    @property
    def patch(self) -> int:
        return self.result + WINDOW - 1

    @property
    def points(self) -> int:
        """Products in a patch for each pair of channels."""
        return self.patch * self.patch


def _large_scheme() -> Scheme:
    """F(4x4, 3x3), whose polynomials are evaluated at 0, at plus and minus the roots of 1/2 and of 2, and at infinity.

    With 0, 1, -1, 2, -2 and infinity the largest error is 4 times as large: the transforms of patches and of
    accumulators have factors up to 5 and 8, and numbers of different size are added.
    """
    small, large = 0.5**0.5, 2**0.5
    points = (0, small, -small, large, -large)
    others = [[other for other in points if other != point] for point in points]
    return Scheme(
        result=4,
        input_matrix=(
            (1, 0, -2.5, 0, 1, 0),
            (0, -large, -2, small, 1, 0),
            (0, large, -2, -small, 1, 0),
            (0, -small, -0.5, large, 1, 0),
            (0, small, -0.5, -large, 1, 0),
            (0, 1, 0, -2.5, 0, 1),
        ),
        output_matrix=(
            (1, 1, 1, 1, 1, 0),
            (0, small, -small, large, -large, 0),
            (0, 0.5, 0.5, 2, 2, 0),
            (0, small / 2, -small / 2, 2 * large, -2 * large, 1),
        ),
        kernel_matrix=(
            *(
                tuple(point**power / prod(point - other for other in rest) for power in range(WINDOW))
                for point, rest in zip(points, others, strict=True)
            ),
            (0, 0, 1),
        ),
    )


SCHEMES = (
    Scheme(
        result=2,
        input_matrix=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        output_matrix=((1, 1, 1, 0), (0, 1, -1, -1)),
        kernel_matrix=((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    ),
    _large_scheme(),
)


def transform_kernel(kernel: Array, scheme: Scheme) -> Array:
    """`[k, c, 3, 3]` as `[points, k, c]`, computed in double precision.

    Both sides are one product of each window with a matrix for all points, some windows at a time, which caches hold.
    """
    import numpy as np

    matrix = np.array(scheme.kernel_matrix)
    both, (outputs, inputs) = np.kron(matrix, matrix), kernel.shape[:2]
    points = np.empty((scheme.points, outputs, inputs), kernel.dtype)
    at_once = max(1, _WINDOWS_AT_ONCE // max(1, inputs))
    for first in range(0, outputs, at_once):
        windows = kernel[first : first + at_once].reshape(-1, WINDOW * WINDOW).astype(np.float64)
        points[:, first : first + at_once] = (both @ windows.T).reshape(scheme.points, -1, inputs)
    return points


def pack_transformed(transformed: Array, panels_per_group: int, columns: int, lanes: int) -> Array:
    """`[points, k, c]` as `[group, points, panel, c, columns * lanes]`, channels padded with zeros to whole groups."""
    sizes = {"p": panels_per_group, "k": columns * lanes, "l": lanes}
    return arranged(transformed, "n (g p k) (c l)", "g n p (c l) k", **sizes)
