"""Matrix products by cuBLASLt, for builds that allow it; how long it takes is known only where it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, i8, i32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.kernel.library_product import LibraryProductOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.target import TF32
from mlirt.dialects.tensor_types import byte_width, dims, element_of, rank
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.cuda.library.calls import CHOICES, WORKSPACE_BYTES, launch_call, rounded_bias
from mlirt.kernels.lib.cuda.library.epilogue import LibraryEpilogue, library_epilogue
from mlirt.kernels.lib.cuda.library.matrices import Matrices, joined, matrices
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (MatmulOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = -1  # behind the plain loops: what nobody has measured is not taken

CUBLAS_LT = "cublas_lt"
"""The feature of a target whose builds may take this library."""

_PIECE = 16  # bytes at once where elements are bytes
_RESULTS: dict[Attribute, tuple[Attribute, ...]] = {
    Float16Type(): (Float16Type(), Float32Type()),
    BFloat16Type(): (BFloat16Type(), Float32Type()),
    Float32Type(): (Float32Type(),),
    i8: (i32,),
}


@dataclass(frozen=True)
class Product:
    """A product that the library has: rows, columns, depth and batch, where the matrices lie, and the epilogue.

    With `packs` the right matrices are known and are transposed first.
    """

    sizes: tuple[Dim, Dim, Dim, Dim]
    left: Matrices
    right: Matrices
    result: Matrices
    epilogue: LibraryEpilogue
    packs: bool = False


def estimates(op: MatmulOp, lowering: Lowering) -> Mapping[str, float]:
    """One candidate without an estimate: the library proposes algorithms for a run's sizes, which are then timed."""
    return {} if _product(op, lowering) is None else dict.fromkeys(CHOICES, inf)


def lower(op: MatmulOp, lowering: Lowering) -> bool:
    found = _product(op, lowering)
    if found is None or lowering.choice(op) not in CHOICES:
        return False
    bias = found.epilogue.bias
    elements = [element_of(value.type) for value in (op.lhs, op.rhs, op.output)]
    kernel = LibraryProductOp(
        f"{CUBLAS_LT}_product",
        elements if bias is None else [*elements, elements[2]],
        CUBLAS_LT,
        CHOICES.index(lowering.choice(op)),
        WORKSPACE_BYTES,
        transposed=(found.left.transposed, found.right.transposed),
        rounded=elements[0] == Float32Type() and TF32 in lowering.target.features,
        activation=found.epilogue.activation,
    )
    right = _transposed(op.rhs, lowering) if found.packs else found.right.place
    places = [found.left.place, right, found.result.place]
    places += [] if bias is None else [rounded_bias(bias, elements[2], lowering)]
    steps = [step for one in (found.left, found.right, found.result) for step in (one.line, one.matrix)]
    launch_call(kernel, places, [*found.sizes, *steps], dims(op.output.type), op, lowering)
    return True


def _product(op: MatmulOp, lowering: Lowering) -> Product | None:
    """What the library would be asked; None where it has no such product, or the build does not allow it."""
    if CUBLAS_LT not in lowering.target.features or not _has_elements(op):
        return None
    epilogue = library_epilogue(op)
    if epilogue is None or not _has_bias(op, epilogue, lowering):
        return None
    placed = _matrices(op, lowering)
    *outer, rows, columns = dims(op.output.type)
    depth = dims(op.lhs.type)[-2 if op.transpose_lhs.value.data else -1]
    if placed is None or not isinstance(depth, int) or not depth or columns == 0:
        return None
    left, right, result = placed
    if right.batch == 1:
        left, result, rows = joined(left, rows), joined(result, rows), product([*outer, rows])
    if left is None or result is None or not {left.batch, right.batch} <= {1, result.batch}:
        return None
    found = Product((rows, columns, depth, result.batch), left, right, result, epilogue)
    return found if byte_width(element_of(op.lhs.type)) > 1 else _of_int8(op, found, lowering)


def _has_elements(op: MatmulOp) -> bool:
    left, right, result = (element_of(value.type) for value in (op.lhs, op.rhs, op.output))
    return left == right and result in _RESULTS.get(left, ())


def _has_bias(op: MatmulOp, epilogue: LibraryEpilogue, lowering: Lowering) -> bool:
    """Whether a bias, if there is one, lies along the columns, and is in the result's type or can be put into it."""
    if epilogue.bias is None or epilogue.access is None:
        return True
    bias, last = epilogue.bias, rank(op.output.type) - 1
    column = [axis for axis, index in enumerate(epilogue.access.indices()) if str(index) == f"d{last}"]
    others = [index for index in epilogue.access.indices() if index != 0]
    if len(column) != 1 or len(others) != 1 or lowering.placements[bias].strides[column[0]] != 1:
        return False
    return element_of(bias.type) == element_of(op.output.type) or lowering.constant_array(bias) is not None


def _matrices(op: MatmulOp, lowering: Lowering) -> tuple[Matrices, Matrices, Matrices] | None:
    transposed = bool(op.transpose_lhs.value.data), bool(op.transpose_rhs.value.data), False
    found: list[Matrices] = []
    for value, is_transposed in zip((op.lhs, op.rhs, op.output), transposed, strict=True):
        last = rank(value.type) - 1
        axes = (last, last - 1) if is_transposed else (last - 1, last)
        one = matrices(lowering.placements[value], dims(value.type), axes)
        if one is None:
            return None
        found.append(one)
    left, right, result = found
    return None if result.transposed else (left, right, result)


def _of_int8(op: MatmulOp, found: Product, lowering: Lowering) -> Product | None:
    """Bytes are read along the depth, in pieces; known right matrices are transposed so."""
    _, columns, depth, _ = found.sizes
    even = all(isinstance(size, int) and size % _PIECE == 0 for size in (columns, depth, found.left.line))
    if found.left.transposed or not even:
        return None
    if found.right.transposed:
        return found
    if lowering.constant_array(op.rhs) is None:
        return None
    matrix = 0 if found.right.batch == 1 else columns * depth
    return replace(found, right=replace(found.right, transposed=True, line=depth, matrix=matrix), packs=True)


def _transposed(value: SSAValue, lowering: Lowering) -> Placement:
    """Known matrices, rows and columns exchanged in memory."""
    import numpy as np

    array = lowering.constant_array(value)
    assert array is not None
    transposed = np.ascontiguousarray(array.swapaxes(-1, -2))
    return Placement(lowering.placements.new_weight(transposed, "transposed"), 0, ())
