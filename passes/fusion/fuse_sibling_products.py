"""Horizontal fusion: products of one tensor with several matrices become one product."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, FloatAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import dims, element_of, numpy_dtype, rank, with_dims
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.fusion.access_composition import identity_access
from mlirt.passes.fusion.pointwise_absorption import absorb
from mlirt.passes.fusion.product_columns import column_axes, has_one_matrix
from mlirt.passes.fusion.view_composition import through_view
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_FEW_ROWS = 16


@dataclass(frozen=True)
class FuseSiblingProductsPass(RulePass):
    """Join products of one tensor with constant matrices, where attention reads them: it finds its columns by itself.

    So queries, keys and values are one product. The epilogues are equal except for constants with one element per
    column, which are joined like the matrices, and for numbers such as scales of a quantisation, which become constants
    with one element per column. Products that anything but attention reads stay, as other readers would
    have to copy their columns first; with `few-rows` those of at most 16 rows, which take as long as their matrices,
    are joined all the same, and readers find slices.

    Before:

        %q = fused.matmul %x, %u, %a { acc + a } : tensor<1x64x32xf16>
        %k = fused.matmul %x, %v, %b { acc + b } : tensor<1x64x32xf16>
        %y = fused.attention %q, %k, .. [["d0", "d2", "d4"], ["d0", "d3", "d4"], ..]

    After:

        %j = fused.matmul %x, %uv, %ab { acc + ab } : tensor<1x64x64xf16>
        %y = fused.attention %j, %j, .. [["d0", "d2", "d4"], ["d0", "d3", "d4 + 32"], ..]
    """

    name = "fuse-sibling-products"

    few_rows: bool = False

    @rule(op(MatmulOp).named("first"))
    def join(self, m: Match, first: MatmulOp) -> Outcome:
        if not _may_join(first):
            return "not attention alone reads it, or its matrix is not one constant"
        siblings = m.analysis(_families).get(first)
        if siblings is None:
            return None
        made = _joined(m, siblings)
        reader = next(iter(first.output.uses)).operation
        for one, start in _with_starts(siblings):
            _read_from(one.output, made.output, start)
        m.drop(*siblings)
        m.replaces(reader)
        return reader

    @rule(op(MatmulOp).named("first"))
    def join_rows(self, m: Match, first: MatmulOp) -> Outcome:
        if not self.few_rows or not _has_few_rows(first):
            return "it has many rows, or its matrix is not one constant"
        siblings = m.analysis(_families_of_few_rows).get(first)
        if siblings is None or any(one.parent is None for one in siblings):  # attention's have been joined before
            return None
        made = _joined(m, siblings)
        slices = [_slice(m, made, one.output, start) for one, start in _with_starts(siblings)]
        for one, part in zip(siblings[1:], slices[1:], strict=True):
            one.output.replace_all_uses_with(part.outputs[0])
        m.drop(*siblings[1:])
        return slices[0]


def _joined(m: Match, siblings: Sequence[MatmulOp]) -> MatmulOp:
    """One product in place of several."""
    first = siblings[0]
    axis = rank(first.rhs.type) - (2 if first.transpose_rhs.value.data else 1)

    def joined(values: Sequence[SSAValue], axis: int, role: str) -> SSAValue:
        import numpy as np

        return m.constant(np.concatenate(list(map(m.array, values)), axis), role, *siblings)

    weights = joined([one.rhs for one in siblings], axis, "weights")
    extras = [
        value if along is None else joined([one.extras[n] for one in siblings], along, str(n))
        for n, (value, along) in enumerate(zip(first.extras, _column_axes(first), strict=True))
    ]
    result = with_dims(first.output.type, [*dims(first.output.type)[:-1], sum(map(_columns, siblings))])
    flags = bool(first.transpose_lhs.value.data), bool(first.transpose_rhs.value.data)
    epilogue, access = first.epilogue.clone(), list(first.access)
    in_columns = AccessAttr.of([*[0] * (rank(result) - 1), iteration(rank(result) - 1)])
    for n, numbers in _numbers_apart(siblings):
        known = _numbers(epilogue)[n]
        known.result.replace_all_uses_with(epilogue.block.insert_arg(known.result.type, len(epilogue.block.args)))
        extras.append(m.constant(_repeated(siblings, numbers), f"number {n}", *siblings))
        access.append(in_columns)
    made = MatmulOp(first.lhs, weights, result, epilogue, extras, access, *flags)
    m.about = m.insert(made, *siblings)
    return made


def _with_starts(siblings: Sequence[MatmulOp]) -> list[tuple[MatmulOp, int]]:
    """Each product with its first column in the joined one."""
    return list(zip(siblings, accumulate(map(_columns, siblings), initial=0), strict=False))


def _slice(m: Match, whole: MatmulOp, part: SSAValue, start: int) -> PointwiseOp:
    """The columns of a part; views that split them are slices of the whole as well, read where they lie."""

    def moved(indices: Sequence[Dim], type_: Attribute) -> PointwiseOp:
        *outer, column = indices
        body = identity_region(element_of(part.type))
        return m.insert(PointwiseOp([whole.output], [AccessAttr.of([*outer, column + start])], [type_], body))

    own = dims(part.type)
    for view in [use.operation for use in part.uses]:
        if isinstance(view, ViewOp):
            shape = dims(view.output.type)
            indices = through_view(own, shape, identity_access(len(shape)).indices())
            if indices is not None:
                shown = moved(indices, view.output.type)
                view.output.replace_all_uses_with(shown.outputs[0])
                for reader in dict.fromkeys(use.operation for use in shown.outputs[0].uses):
                    if isinstance(reader, PointwiseOp) and reader.parent is view.parent:
                        absorb(shown, reader)
    return moved(identity_access(len(own)).indices(), part.type)


def _families(block: Block) -> Mapping[Operation, Sequence[MatmulOp]]:
    """Products that attention alone reads and that can be joined, in order, by the first of them."""
    return _joined_by(block, _may_join)


def _families_of_few_rows(block: Block) -> Mapping[Operation, Sequence[MatmulOp]]:
    """The same of products of few rows, whoever reads them."""
    return _joined_by(block, _has_few_rows)


def _joined_by(block: Block, may_join: Callable[[MatmulOp], bool]) -> Mapping[Operation, Sequence[MatmulOp]]:
    of_operand: dict[SSAValue, list[list[MatmulOp]]] = {}
    for one in block.ops:
        if not isinstance(one, MatmulOp) or not may_join(one):
            continue
        near = of_operand.setdefault(one.lhs, [])
        family = next((known for known in near if _fit(known[0], one)), None)
        if family is None:
            near.append([one])
        else:
            family.append(one)
    return {family[0]: family for near in of_operand.values() for family in near if len(family) > 1}


def _may_join(op: MatmulOp) -> bool:
    """A product with one constant matrix for the whole batch, that only attention reads, and not as a mask."""
    uses = list(op.output.uses)
    readers = all(isinstance(use.operation, AttentionOp) and use.index < 3 for use in uses)
    return bool(uses) and readers and has_one_matrix(op)


def _has_few_rows(op: MatmulOp) -> bool:
    """A product with one constant matrix whose result has few rows."""
    rows = product(dims(op.output.type)[:-1])
    return isinstance(rows, int) and rows <= _FEW_ROWS and op.output.first_use is not None and has_one_matrix(op)


def _fit(first: MatmulOp, other: MatmulOp) -> bool:
    """Whether two products differ in nothing but constants and the number of columns."""
    alike = (
        first.lhs is other.lhs
        and first.transpose_lhs == other.transpose_lhs
        and first.transpose_rhs == other.transpose_rhs
        and element_of(first.rhs.type) == element_of(other.rhs.type)
        and dims(first.output.type)[:-1] == dims(other.output.type)[:-1]
        and element_of(first.output.type) == element_of(other.output.type)
        and first.access == other.access
        and _is_equal_up_to_numbers(first.epilogue, other.epilogue)
    )
    return alike and all(
        left is right if axis is None else _are_joined(left, right, axis)
        for left, right, axis in zip(first.extras, other.extras, _column_axes(first), strict=True)
    )


def _numbers(epilogue: Region) -> list[arith.ConstantOp]:
    """The floating-point numbers in an epilogue, in order."""
    return [one for one in epilogue.block.ops if isinstance(one, arith.ConstantOp) and isinstance(one.value, FloatAttr)]


def _is_equal_up_to_numbers(first: Region, other: Region) -> bool:
    """Whether two epilogues differ in nothing but in which floating-point numbers they contain."""
    alike = other.clone()
    own, others = _numbers(first), _numbers(alike)
    if len(own) != len(others) or any(a.result.type != b.result.type for a, b in zip(own, others, strict=True)):
        return False
    for mine, one in zip(own, others, strict=True):
        one.properties["value"] = mine.value
    return first.is_structurally_equivalent(alike)


def _numbers_apart(siblings: Sequence[MatmulOp]) -> list[tuple[int, Sequence[FloatAttr]]]:
    """Which numbers differ between the epilogues of siblings, with each sibling's own."""
    each = zip(*([one.value for one in _numbers(sibling.epilogue)] for sibling in siblings), strict=True)
    return [
        (n, cast("Sequence[FloatAttr]", values))
        for n, values in enumerate(each)
        if len({str(one) for one in values}) > 1
    ]


def _repeated(siblings: Sequence[MatmulOp], numbers: Sequence[FloatAttr]) -> Array:
    """For each column of a joined product the number of the sibling that it belongs to."""
    import numpy as np

    counts, dtype = list(map(_columns, siblings)), numpy_dtype(numbers[0].type)
    row = np.repeat(np.array([one.value.data for one in numbers], dtype), counts)
    return row.reshape(*[1] * (rank(siblings[0].output.type) - 1), -1)


def _column_axes(op: MatmulOp) -> list[int | None]:
    return column_axes(op.access, rank(op.output.type))


def _are_joined(left: SSAValue, right: SSAValue, axis: int) -> bool:
    """Whether both are constants that differ in length along an axis alone."""
    constants = isinstance(left.owner, ConstantOp) and isinstance(right.owner, ConstantOp)
    shapes = [(*dims(value.type)[:axis], *dims(value.type)[axis + 1 :]) for value in (left, right)]
    return constants and shapes[0] == shapes[1] and element_of(left.type) == element_of(right.type)


def _columns(op: MatmulOp) -> int:
    count = dims(op.output.type)[-1]
    assert isinstance(count, int)
    return count


def _read_from(part: SSAValue, whole: SSAValue, start: int) -> None:
    """Let attention read columns from `start` on of a product in place of one that had these columns alone."""
    for use in list(part.uses):
        op = use.operation
        assert isinstance(op, AttentionOp)
        *outer, column = op.access.data[use.index].indices()
        accesses = list(op.access)
        accesses[use.index] = AccessAttr.of([*outer, column + start])
        op.properties["access"] = ArrayAttr(accesses)
        op.operands[use.index] = whole
