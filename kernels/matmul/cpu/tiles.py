"""Matrix products of floats or bytes on register tiles: rows of the left operand against panels of the right one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import Attribute

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.kernel.features import need_features
from mlirt.dialects.kernel.tile_products import HALF_PRODUCTS, INT8_PRODUCTS
from mlirt.dialects.symbolic import product as product_of
from mlirt.dialects.tensor_types import element_of, element_type
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cpu.register_tiles.half_products import adds_halves, pay_as_halves
from mlirt.kernels.lib.cpu.register_tiles.signed_sums import first_sums, multiplies_signed
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tile import RegisterTile, tile_estimates
from mlirt.kernels.matmul.cpu.panel_sources import InPlace, PackedAtBuild, PackedByWorker, packing_bytes
from mlirt.kernels.matmul.cpu.panels import batch_steps, pack_operand
from mlirt.kernels.matmul.cpu.product import Product
from mlirt.kernels.matmul.cpu.row_blocks import lanes_of, row_blocks, tile_of, tiles_of
from mlirt.kernels.matmul.cpu.tile_kernel import TileKernel

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

_UI8 = element_type("uint8")

OPS = (MatmulOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 20

# Rows that make packing worth while: fewer read rows of the right operand where they are.
_ROWS_TO_PACK = 24


def estimates(op: MatmulOp, lowering: Lowering) -> Mapping[str, float]:
    """The best tiles by their names, `14x2` for 14 rows by two vectors of columns, and about their microseconds."""
    word = _word(op, lowering)
    product = None if word is None else _product_of(op, lowering, word)
    if word is None or product is None:
        return {}
    known = typical_values(lowering.block)
    steps = typical(product.depth, known) / word
    if not isinstance(product_of(product.batches), int):
        steps *= typical(product_of(product.batches), known)
    return tile_estimates(tiles_of(product, lowering, word), steps / lowering.target.threads)


def lower(op: MatmulOp, lowering: Lowering) -> bool:
    word = _word(op, lowering)
    product = None if word is None else _product_of(op, lowering, word)
    if word is None or product is None:
        return False
    shape = tile_of(product, lowering, word, lowering.choice(op))
    if shape is None:
        return False
    if lowering.known(op.rhs) is None:
        _lower_computed(op, product, shape, lowering)
    else:
        _lower_constant(op, product, shape, lowering, word)
    return True


def _word(op: MatmulOp, lowering: Lowering) -> int | None:
    """How many numbers a step of the sum takes at once: four bytes or one float; None for other products."""
    if lowering.placements[op.output].strides[-1] != 1:
        return None
    if multiplies_int8(op):
        return None if lowering.known(op.rhs) is None else 4
    return 1 if _elements(op) == (f32, f32, f32) else None


def _product_of(op: MatmulOp, lowering: Lowering, word: int) -> Product | None:
    """The loops of a product; None for one column, and where neither factor's numbers lie side by side as needed."""
    weights = lowering.known(op.rhs)
    if weights is None:
        product = Product.of(op, lowering.placements)
        return None if product.columns == 1 or 1 not in (product.rhs.column, product.rhs.depth) else product
    *batches, depth, columns = weights.shape
    if op.transpose_rhs.value.data:
        depth, columns = columns, depth
    if columns == 1 or (word > 1 and lowering.placements[op.lhs].strides[_depth_axis(op)] != 1):
        return None
    return Product.of(op, lowering.placements, batch_steps((*batches, 1, depth, columns)))


def multiplies_int8(op: MatmulOp) -> bool:
    """Whether uint8 are multiplied with signed ones."""
    return _elements(op) == (_UI8, i8, i32)


def _elements(op: MatmulOp) -> tuple[Attribute, ...]:
    return element_of(op.lhs.type), element_of(op.rhs.type), accumulator_type(op.epilogue)


def _lower_constant(op: MatmulOp, product: Product, shape: RegisterTile, lowering: Lowering, word: int) -> None:
    """The right operand is packed now; bytes are multiplied four at a time, where they lie side by side."""
    transposes, width = bool(op.transpose_rhs.value.data), shape.width(lanes_of(lowering))
    halves = word == 1 and adds_halves(op, lowering)
    as_halves = halves or (word == 1 and _reads_halves(product, lowering))
    packed = lowering.packed(op.rhs, partial(pack_operand, transposes, width, word), as_halves=as_halves)
    product = Product.of(op, lowering.placements, batch_steps(packed.array.shape))
    k = lowering.kernel("matmul")
    if word > 1:
        need_features(k.function, INT8_PRODUCTS & lowering.target.special)
    kernel = TileKernel(k, op, product, shape, lanes_of(lowering), None, word)
    weights = k.named(k.weights(packed, "panels"), "panels", keep=True)
    if halves:
        need_features(k.function, HALF_PRODUCTS)
        kernel.multiply_halves()
    if word > 1 and multiplies_signed(lowering.target.cpu, lowering.target.special):
        starts = lowering.packed(op.rhs, partial(_first_sums, transposes, width))
        kernel.make_signed(k.weights(starts, "first sums"))
    kernel.write(PackedAtBuild(weights), packs=False)
    k.finish(op)


def _first_sums(transposes: bool, width: int, operand: Array) -> Array:
    return first_sums(width, operand if transposes else operand.swapaxes(-1, -2))


def _reads_halves(product: Product, lowering: Lowering) -> bool:
    """Whether panels are stored in half precision."""
    weights = lowering.known(product.rhs.value)
    assert weights is not None
    return pay_as_halves(product.rows, weights.nbytes) and lowering.are_halves(product.rhs.value)


def _lower_computed(op: MatmulOp, product: Product, shape: RegisterTile, lowering: Lowering) -> None:
    """The right operand is read as it lies in memory, or packed by the kernel."""
    k = lowering.kernel("matmul")
    rhs = k.buffer(product.rhs.value, product.rhs.offset)
    rhs.name_hint = "b"
    blocks = row_blocks(product, shape, lowering)
    if _reads_in_place(product, shape, lanes_of(lowering)):
        TileKernel(k, op, product, shape, lanes_of(lowering), None).write(InPlace(rhs), packs=False)
    else:
        kernel = TileKernel(k, op, product, shape, lanes_of(lowering), blocks)
        tasks = product_of(product.batches) * kernel.panels * blocks
        memory = k.named(k.memory(lowering.placements.scratch(packing_bytes(kernel, tasks)), f32), "panels", keep=True)
        kernel.write(PackedByWorker(rhs, memory), packs=True)
    k.finish(op)


def _depth_axis(op: MatmulOp) -> int:
    """The dimension of the left operand along which products are summed."""
    return -2 if op.transpose_lhs.value.data else -1


def _reads_in_place(product: Product, shape: RegisterTile, lanes: int) -> bool:
    """Whole panels with vectors side by side, and too few rows to make up for copying, or nothing to gain by it."""
    width = shape.width(lanes)
    if product.rhs.column != 1 or not isinstance(product.columns, int) or product.columns % width:
        return False
    few = isinstance(product.rows, int) and product.rows < _ROWS_TO_PACK
    return few or product.rhs.depth == width
