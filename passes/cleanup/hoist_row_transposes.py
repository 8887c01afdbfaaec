"""Transposes of a product's rows move in front of it, to meet those of its operand."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, rank, with_dims
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.identity import IdentityOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.unary import UnaryOp
from mlirt.passes.cleanup.permutations import (
    Dims,
    Rearrangement,
    factors,
    inverse,
    is_identity,
    keeps_order,
    permuted,
    reshape,
    transpose,
)
from mlirt.passes.cleanup.shuffles import rearrangement, shuffle
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

_ELEMENTWISE = (ElementwiseOp, ActivationOp, UnaryOp, IdentityOp)
_MAX_LAYERS = 4


@dataclass(frozen=True)
class HoistRowTransposesPass(RulePass):
    """Transpose rows once where they are transposed in front of a product and behind it.

    Each row of a product with constant weights is computed of one row of its operand, so that both may have any order.
    Attention whose sequences come first, as PyTorch computes it inside, is transposed in front of the product that
    joins its heads and behind it: in front of it both are one, and attention can write whole rows in that order. A
    transpose alone in front of a product goes behind it, where it is read by what transposes again. Layers of single
    elements may stand between the product and the transpose, where their other operand is the same for all rows.

    Before:

        %r = trt.shuffle %a {first_transpose = [1, 0, 2], reshape_dims = [85, 96]} : (tensor<15x17x32xf32>) -> ...
        %p = trt.matrix_multiply %r, %w : (tensor<85x96xf32>, tensor<96x96xf32>) -> tensor<85x96xf32>
        %y = trt.shuffle %p {reshape_dims = [17, 5, 96], second_transpose = [1, 0, 2]} : .. -> tensor<5x17x96xf32>

    After:

        %r = trt.shuffle %a {first_transpose = [1, 0, 2], reshape_dims = [17, 5, 96], second_transpose = [1, 0, 2]} : ..
        %v = trt.shuffle %w {reshape_dims = [1, 96, 96]} : (tensor<96x96xf32>) -> tensor<1x96x96xf32>
        %y = trt.matrix_multiply %r, %v : (tensor<5x17x96xf32>, tensor<1x96x96xf32>) -> tensor<5x17x96xf32>
    """

    name = "hoist-row-transposes"

    @rule(op(ShuffleOp).named("last"))
    def in_front(self, m: Match, last: ShuffleOp) -> Outcome:
        found, own = _product_above(last), rearrangement(last)
        how = found.before_it if found is not None else None
        if found is None or how is None or own is None or not found.is_alone:
            return None
        columns, length = dims(found.product.output.type)[-1], how.target[-1]
        if not _transposes(how) or not _transposes(own) or not _keeps_columns(own, columns):
            return None
        joined = how.then(Rearrangement(how.target, own.first, (*own.middle[:-1], length), own.second))
        if joined is None or not _is_at_most(length, columns):
            return "both shuffles are no single one, or there is more to transpose in front of the product"
        if not isinstance(found.source.owner, MatrixMultiplyOp) or not _keeps_rows_whole(joined):
            return "no product before them could write its rows in that order"
        rows = m.insert(shuffle(found.source, joined), *([found.before] if found.before else [])).output
        result = found.on(rows, m)
        m.drop(*found.layers, found.product, *([found.before] if found.before else []))
        return result

    @rule(op(ShuffleOp).named("last"))
    def behind(self, m: Match, last: ShuffleOp) -> Outcome:
        found, own = _product_above(last), rearrangement(last)
        how = found.before_it if found is not None else None
        order = None if how is None else how.transposition
        if found is None or own is None or order is None or order[-1] != len(order) - 1 or not _transposes(own):
            return None
        result = dims(last.input.type)
        joined = transpose(permuted(result, inverse(order)), order).then(own)
        if joined is None or keeps_order(order, dims(found.source.type)):
            return None
        made = found.on(found.source, m)
        m.drop(*found.layers, found.product)
        return m.insert(shuffle(made, joined), last)


@dataclass(frozen=True)
class _Product:
    """A product with constant weights, and the `layers` of its rows behind it, the last one first."""

    product: MatrixMultiplyOp
    layers: tuple[Operation, ...]

    @property
    def before(self) -> ShuffleOp | None:
        """The shuffle of the operand."""
        return self.product.lhs.owner if isinstance(self.product.lhs.owner, ShuffleOp) else None

    @property
    def before_it(self) -> Rearrangement | None:
        """What that shuffle does."""
        return None if self.before is None else rearrangement(self.before)

    @property
    def is_alone(self) -> bool:
        """Whether the product alone reads its operand."""
        return self.product.lhs.has_one_use()

    @property
    def source(self) -> SSAValue:
        """What is shuffled."""
        return self.product.lhs if self.before is None else self.before.input

    def on(self, rows: SSAValue, m: Match) -> SSAValue:
        """The result with other rows, or the same in another order."""
        shape, value = dims(rows.type)[:-1], rows
        for layer in (self.product, *reversed(self.layers)):
            chained = _operand_of(layer)
            operands = [
                value if operand is chained else _widened(operand, len(shape) + 1, layer, m)
                for operand in layer.operands
            ]
            result = layer.results[0].type
            made = type(layer).create(
                operands=operands,
                properties=dict(layer.properties),
                result_types=[with_dims(result, (*shape, dims(result)[-1]))],
            )
            value = m.insert(made, layer).results[0]
        return value


def _product_above(last: ShuffleOp) -> _Product | None:
    """The product whose result a shuffle alone reads, perhaps behind layers of single elements."""
    layers, value = list[Operation](), last.input
    while isinstance(layer := value.owner, _ELEMENTWISE) and value.has_one_use() and len(layers) < _MAX_LAYERS:
        if (operand := _operand_of(layer)) is None:
            return None
        layers.append(layer)
        value = operand
    if not isinstance(layer, MatrixMultiplyOp) or not value.has_one_use() or _operand_of(layer) is None:
        return None
    return _Product(layer, tuple(layers))


def _keeps_rows_whole(how: Rearrangement) -> bool:
    """Whether the last but one axis of what is shuffled is an axis between both transposes, too."""
    parts = factors(permuted(how.source, how.first), how.middle)
    rows = how.first.index(len(how.source) - 2)
    return parts is not None and any(here == (rows,) and len(there) == 1 for here, there in parts)


def _is_at_most(length: Dim, other: Dim) -> bool:
    return length == other or (isinstance(length, int) and isinstance(other, int) and length < other)


def _transposes(how: Rearrangement) -> bool:
    short = how.normalized()
    return not (is_identity(short.first) and is_identity(short.second))


def _keeps_columns(how: Rearrangement, columns: Dim) -> bool:
    """Whether the last axis stays as it is in each step."""
    last = [how.first[-1] == len(how.first) - 1, how.second[-1] == len(how.second) - 1]
    return all(last) and how.source[-1] == how.middle[-1] == columns and len(how.target) > 1


def _operand_of(layer: Operation) -> SSAValue | None:
    """The only operand that is no constant; None where others would not fit rows in another order."""
    if isinstance(layer, MatrixMultiplyOp):
        is_plain = layer.lhs_op.data == MatrixOperation.NONE and layer.rhs_op.data != MatrixOperation.VECTOR
        same = is_plain and rank(layer.lhs.type) == rank(layer.rhs.type)
        return layer.lhs if same and _is_shared(layer.rhs, dims(layer.rhs.type)[:-2]) else None
    others = [value for value in layer.operands if not _is_shared(value, dims(value.type)[:-1])]
    shape = dims(layer.results[0].type)
    return others[0] if len(others) == 1 and dims(others[0].type) == shape else None


def _is_shared(value: SSAValue, outer: Dims) -> bool:
    """Whether a value is a constant that is the same for all rows."""
    return isinstance(value.owner, ConstantOp) and all(size == 1 for size in outer)


def _widened(value: SSAValue, axes: int, layer: Operation, m: Match) -> SSAValue:
    """A constant with axes of length 1 in front, or without some of them."""
    own = dims(value.type)
    kept = own[-2:] if isinstance(layer, MatrixMultiplyOp) else own[-1:]
    shape = (*(1,) * (axes - len(kept)), *kept)
    return value if shape == own else m.insert(shuffle(value, reshape(own, shape)), layer).output
