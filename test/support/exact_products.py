"""Products of float32 that tell whether all bits of the factors count, and what numbers that are not finite give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[str, dict[str, Array]], Array]

TEXT = """
func.func @main(%x: tensor<{rows}x{depth}xf32> {{trt.name = "x"}}, %w: tensor<{depth}x{columns}xf32> {{trt.name = "w"}})
    -> (tensor<{rows}x{columns}xf32> {{trt.name = "y"}}) {{
  %y = fused.matmul %x, %w {{fused.tactic = "{tactic}"}}
      : (tensor<{rows}x{depth}xf32>, tensor<{depth}x{columns}xf32>) -> tensor<{rows}x{columns}xf32> {{
  ^bb0(%acc: f32):
    fused.yield %acc : f32
  }}
  func.return %y : tensor<{rows}x{columns}xf32>
}}"""


class Products:
    """Checks of one tactic; `run` gives the result of a network for its inputs."""

    def __init__(self, run: Run, tactic: str) -> None:
        self.run, self.tactic = run, tactic

    def product(self, x: Array, w: Array) -> Array:
        (rows, depth), columns = x.shape, w.shape[1]
        text = TEXT.format(rows=rows, depth=depth, columns=columns, tactic=self.tactic)
        return self.run(text, {"x": x, "w": w})

    def check_error(self, rows: int, columns: int, depth: int) -> None:
        """At most that of multiply-adds one behind the other, for numbers of both signs and for positive ones."""
        rng = np.random.default_rng(0)
        for low in (-1.0, 0.0):
            x, w = (rng.uniform(low, 1, shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
            exact, size = x.astype(np.float64) @ w.astype(np.float64), np.abs(x) @ np.abs(w)
            found = np.abs(self.product(x, w) - exact) / size
            ordinary = np.abs(in_turn(x, w) - exact) / size
            assert found.max() <= max(1.5 * ordinary.max(), 2.0**-22), (low, found.max(), ordinary.max())
            assert found.mean() <= max(1.2 * ordinary.mean(), 2.0**-24), (low, found.mean(), ordinary.mean())

    def check_selection(self, rows: int, columns: int, depth: int) -> None:
        """Rows that hold a single 1 give the rows of the right factor, to the bit."""
        rng = np.random.default_rng(1)
        places = rng.integers(0, depth, rows)
        x = np.zeros((rows, depth), np.float32)
        x[np.arange(rows), places] = 1
        exponents = rng.integers(-100, 100, (depth, columns))
        w = np.ldexp(rng.uniform(-1, 1, (depth, columns)).astype(np.float32), exponents)
        np.testing.assert_array_equal(self.product(x, w), w[places])

    def check_whole_numbers(self, rows: int, columns: int, depth: int) -> None:
        """Sums below 2**24 are exact."""
        rng = np.random.default_rng(2)
        x, w = (rng.integers(0, 1 << bits, shape) for bits, shape in ((16, (rows, depth)), (1, (depth, columns))))
        w[16:] = 0
        found = self.product(x.astype(np.float32), w.astype(np.float32))
        np.testing.assert_array_equal(found, (x @ w).astype(np.float32))

    def check_not_finite(self, rows: int, columns: int, depth: int) -> None:
        """Infinities meet finite numbers, zeros and each other; sums overflow; other rows and columns are as ever."""
        rng = np.random.default_rng(3)
        x, w = (rng.uniform(0.5, 1, shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
        x[1, 2], x[2, 3], x[3, 4], x[4, :] = np.inf, -np.inf, np.nan, 3e38
        w[5, 6], w[2, 7] = np.inf, 0
        with np.errstate(all="ignore"):
            want = in_turn(x, w)
        found = self.product(x, w)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(want))
        np.testing.assert_array_equal(np.isinf(found), np.isinf(want))
        finite = np.isfinite(want)
        np.testing.assert_allclose(found[finite], want[finite], rtol=1e-5)
        np.testing.assert_array_equal(np.sign(found[np.isinf(want)]), np.sign(want[np.isinf(want)]))

    def check_small_numbers(self, rows: int, columns: int, depth: int) -> None:
        """Factors down to 2**-109 keep all their bits; the smallest part of them is subnormal."""
        rng = np.random.default_rng(4)
        x, w = (rng.uniform(0.5, 1, shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
        x, w = np.ldexp(x, -108), np.ldexp(w, 100)
        np.testing.assert_allclose(self.product(x, w), x.astype(np.float64) @ w.astype(np.float64), rtol=2e-6)

    def check_all(self, rows: int, columns: int, depth: int) -> None:
        self.check_error(rows, columns, depth)
        self.check_selection(rows, columns, depth)
        self.check_whole_numbers(rows, columns, depth)
        self.check_not_finite(rows, columns, depth)
        self.check_small_numbers(rows, columns, depth)


def in_turn(x: Array, w: Array) -> Array:
    """The product by one multiply-add behind the other, each rounded to float32."""
    total = np.zeros((x.shape[0], w.shape[1]), np.float32)
    for k in range(x.shape[1]):
        exact = total.astype(np.float64) + x[:, k, None].astype(np.float64) * w[k].astype(np.float64)
        total = exact.astype(np.float32)
    return total
