"""Kernels are the same where their texts are, and are told apart by all that a text shows."""

from __future__ import annotations

import pytest
from kernel_text import parse_kernel

from mlirt.kernels.lib.tactics.kernel_identity import identity_of

_KERNEL = """
kernel.func @sums(%x: memref<?xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %v = kernel.load %x[%i] strides [1] : memref<?xf32> -> f32
    %w = arith.addf %v, %v : f32
    kernel.store %w, %x[%i] strides [1] : f32, memref<?xf32>
  }
  kernel.return
}
"""


def test_equal_texts() -> None:
    one, other = identity_of(parse_kernel(_KERNEL)), identity_of(parse_kernel(_KERNEL))
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("addf", "mulf"),
        ("constant 0", "constant 2"),
        ("[%i] strides [1] : f32", "[%zero] strides [1] : f32"),
        ("%w", "%sum"),
        ("f32", "f64"),
        ("@sums", "@doubles"),
    ],
)
def test_different_texts(what: str, other: str) -> None:
    assert identity_of(parse_kernel(_KERNEL)) != identity_of(parse_kernel(_KERNEL.replace(what, other)))
