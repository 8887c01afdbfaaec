"""Products of matrices and vectors as NumPy and PyTorch multiply them."""

from __future__ import annotations

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.importing.source_node import SourceNode


def product(net: Network, node: SourceNode, a: Value, b: Value) -> Value:
    """`numpy.matmul`: one-dimensional operands are vectors, leading dimensions broadcast."""
    if not a.rank or not b.rank:
        raise node.invalid(f"expected operands of at least one dimension, but they have {a.rank} and {b.rank}")
    lhs_op, rhs_op = ("vector" if value.rank == 1 else "none" for value in (a, b))
    batch = max(a.rank, b.rank, 2) - 2
    left = layers.with_rank(net, a, batch + (1 if a.rank == 1 else 2))
    right = layers.with_rank(net, b, batch + (1 if b.rank == 1 else 2))
    return layers.matrix_multiply(net, left, right, lhs_op, rhs_op)
