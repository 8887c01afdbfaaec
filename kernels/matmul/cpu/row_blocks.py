"""Which register tile a product gets on a processor, and into how many tasks its rows are cut."""

from __future__ import annotations

from mlirt.dialects.symbolic import Dim, ceil_div, maximum, minimum
from mlirt.dialects.symbolic import product as product_of
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.kernels.lib.cpu.register_tiles.step_registers import step_registers
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tile import RegisterTile, tile_named
from mlirt.kernels.matmul.cpu.product import Product
from mlirt.kernels.matmul.cpu.tile_choice import tile_cycles

# Tasks for each worker, so that none waits long for the last one.
_TASKS = 4


def lanes_of(lowering: Lowering) -> int:
    """Numbers of 32 bits in a vector."""
    return lowering.target.vector_bits // 32


def tile_of(product: Product, lowering: Lowering, word: int, name: str = "") -> RegisterTile | None:
    """The register tile for the sizes of a product, of which a step takes `word` numbers at once; or the one with a
    name, None where that one does not suit it.
    """
    tiles, wanted = tiles_of(product, lowering, word), tile_named(name)
    if not name:
        return next(iter(tiles))
    return wanted if wanted in tiles else None


def tiles_of(product: Product, lowering: Lowering, word: int = 1) -> dict[RegisterTile, float]:
    """The register tiles for the sizes of a product, the best first, and the cycles of a step of all its sums on one
    worker.
    """
    pairs = product_of(product.batches)
    return tile_cycles(
        product.rows,
        product.columns,
        lowering.target.cpu,
        lowering.target.threads,
        pairs if isinstance(pairs, int) else 1,
        product.lhs.row * byte_width(element_of(product.lhs.value.type)),
        step_registers(lowering.target.cpu, word, lowering.target.special),
    )


def row_blocks(product: Product, shape: RegisterTile, lowering: Lowering) -> Dim:
    """Into how many tasks the row tiles of a panel are cut where each worker packs its own panels."""
    tiles = maximum(1, ceil_div(product.rows, shape.rows))
    pairs = product_of(product.batches) * ceil_div(product.columns, shape.width(lanes_of(lowering)))
    wanted = lowering.target.threads * _TASKS
    blocks = minimum(tiles, -(-wanted // pairs) if isinstance(pairs, int) else _TASKS)
    # As many as there are when every one has equally many tiles.
    return ceil_div(tiles, ceil_div(tiles, blocks))
