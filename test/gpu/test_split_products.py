"""Single precision on the matrix units of a GPU: as accurate as multiply-adds, also where numbers are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_engine import engine_of
from exact_products import Products
from repeated_runs import differing_runs

from mlirt.kernels.lib.cuda.tiles.shape import SPLIT

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, np.dtype[Any]]
TILES = (*(shape.name for shape in SPLIT), "128x128bf16x6c2", "64x64bf16x6p3")


def on_device(text: str, inputs: dict[str, Array]) -> Array:
    """The result, which further runs give to the bit."""
    engine = engine_of(text)
    assert differing_runs(engine, inputs, 3) == []
    return engine.run(inputs)["y"]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("sizes", [(130, 200, 96), (300, 264, 1040), (129, 65, 3001)])
def test_products_count_all_bits(tile: str, sizes: tuple[int, int, int]) -> None:
    Products(on_device, f"cuda_tiles:{tile}").check_all(*sizes)
