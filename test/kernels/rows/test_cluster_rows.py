"""Normalisations of rows that the blocks of a cluster keep together, against the reference, without races."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import check_on_threads
from long_rows import long_rows_text
from lowered_network import parse_module
from xdsl.dialects.builtin import IntegerAttr

from mlirt.dialects.kernel.async_copy import CopyAsyncOp
from mlirt.dialects.kernel.core import FuncOp
from mlirt.passes.pipeline import run_passes

ROWS = {
    "four blocks": ((15,), 70_000, "f32", 4),
    "halves, the last block has less": ((3, 5), 100_012, "f16", 2),
    "pairs of halves": ((5, 3), 66_666, "f16", 2),
    "single elements": ((15,), 65_537, "f32", 4),
    "eight blocks": ((15,), 258_064, "f32", 8),
}


@pytest.mark.parametrize("kind", ROWS)
def test_rows_of_clusters(kind: str) -> None:
    rows, length, element, parts = ROWS[kind]
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((*rows, length)) * 3 + 1).astype(np.float32 if element == "f32" else np.float16)
    inputs = {"x": x, "w": rng.standard_normal(rows[-1], np.float32)}
    module = check_on_threads(
        long_rows_text(rows, length, element), inputs, tolerance=1e-5 if element == "f32" else 2e-3
    )
    (function,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    cluster = function.attributes["cluster"]
    assert isinstance(cluster, IntegerAttr)
    assert cluster.value.data == parts
    assert any(isinstance(op, CopyAsyncOp) for op in function.walk())


@pytest.mark.parametrize(
    ("rows", "length", "element"), [(15, 8_000, "f32"), (15, 65_537, "f16"), (1, 70_000, "f32"), (15, 460_000, "f32")]
)
def test_other_rows_are_left_to_the_general_loops(rows: int, length: int, element: str) -> None:
    """Short ones, halves that begin at odd places, a few, and those that are longer than eight blocks can hold."""
    module, context = parse_module(long_rows_text((rows,), length, element))
    run_passes(module, context, "convert-fused-to-kernel{target=cuda device=h200}")
    assert not any(isinstance(op, CopyAsyncOp) for op in module.walk())
