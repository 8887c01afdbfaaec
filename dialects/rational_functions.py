"""Sigmoid and tanh as quotients of polynomials in single precision, with the same bits on every target.

Both are within 3e-7 of the function. Each step is rounded once: sums of a product and a coefficient together, the rest
for itself. The coefficients are those with which onnxruntime evaluates them, so that what is rounded to integers behind
them is rounded as there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class RationalFunction:
    """x p(x^2) / q(x^2) + offset for x within [-limit, limit], and what is at the ends beyond.

    `least` is a number below which the result never is. Without one it may pass its limit by the last bit.
    The coefficients of p and q begin with that of the highest power.
    """

    limit: float
    numerator: Sequence[float]
    denominator: Sequence[float]
    offset: float
    least: float = -math.inf

    def __call__(self, x: Array) -> Array:
        """The function of each number, in single precision."""
        import numpy as np

        inside = np.clip(x.astype(np.float32), -self.limit, self.limit).astype(np.float32)
        square = inside * inside
        quotient = inside * _polynomial(self.numerator, square) / _polynomial(self.denominator, square)
        shifted = quotient + np.float32(self.offset) if self.offset else quotient  # -0.0 stays that
        return np.maximum(shifted, np.float32(self.least))


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    import numpy as np

    result = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        # The product is exact in double precision, so that the sum is rounded (almost always) once.
        result = (result.astype(np.float64) * x + np.float32(coefficient)).astype(np.float32)
    return result


SIGMOID = RationalFunction(
    18.0,
    (4.37031012579801e-11, 1.15627324459942e-07, 6.08574864600143e-05, 8.51377133304701e-03, 2.48287947061529e-01),
    (
        *(6.10247389755681e-13, 5.76102136993427e-09, 6.29106785017040e-06),
        *(1.70198817374094e-03, 1.16817656904453e-01, 9.93151921023180e-01),
    ),
    0.5,
    0.0,
)
TANH = RationalFunction(
    9.0,
    (
        *(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08),
        *(1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
    ),
    (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03),
    0.0,
)
