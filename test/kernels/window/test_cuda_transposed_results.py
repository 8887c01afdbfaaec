"""Pooling of large windows whose channels are innermost, with results in planes, in one launch."""

from __future__ import annotations

import pytest
from pooling_layer import pooling
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp


def _has_tile(module: ModuleOp) -> bool:
    """Whether the only pooling has a tile of results in shared memory."""
    (kernel,) = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("window")]
    return any("memref<1056xf32" in str(op) for op in kernel.walk())


@pytest.mark.parametrize("kind", ["max", "average", "add"])
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(
    ("shape", "size", "stride", "dilation"),
    [
        ((2, 40, 22, 19), 4, 4, 1),
        ((1, 33, 23, 37), 5, 2, 1),
        ((1, 64, 9, 8, 17), 3, 2, 1),
        ((3, 5, 90), 12, 7, 1),
        ((1, 32, 20, 20), 4, 1, 2),
    ],
)
def test_large_windows(kind: str, element: str, shape: tuple[int, ...], size: int, stride: int, dilation: int) -> None:
    options = {"size": size, "stride": stride, "dilation": dilation, "pads": (0, 0)}
    assert _has_tile(pooling(kind, shape, element, last=True, planes=True, **options))


def test_others_have_none() -> None:
    """Windows that reach beyond the input, results whose channels are innermost, and small windows."""
    assert not _has_tile(pooling("max", (2, 40, 22, 19), "f16", last=True, planes=True, size=5, pads=(1, 1)))
    assert not _has_tile(pooling("max", (2, 40, 22, 19), "f16", last=True, size=4, pads=(0, 0)))
    assert not _has_tile(pooling("max", (2, 40, 22, 19), "f16", last=True, planes=True, size=2, pads=(0, 0)))
