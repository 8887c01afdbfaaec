"""Modules of PyTorch against themselves: exported and imported here, run by PyTorch and by an engine."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        """The function of the arguments."""
        return self.function(*args)


def check(module: Any, *args: Any, target: str = "reference", tolerance: float = 1e-5, **options: Any) -> Any:
    """Compile a module or a function, run both on the arguments, compare every leaf of the results; the engine."""
    import mlirt

    module = module.eval() if isinstance(module, torch.nn.Module) else Function(module)
    engine: Any = mlirt.compile(module, args, target=target, **options) if args else None
    assert_same(engine, module, args, tolerance)
    return engine


def assert_same(engine: Any, module: Any, args: Any, tolerance: float = 1e-5) -> None:
    """Both give results of the same structure, shapes and types, and numbers that are close."""
    from torch.utils._pytree import tree_flatten

    with torch.no_grad():
        wanted, spec = tree_flatten(module(*args))
        found, other = tree_flatten(engine(*args))
    assert spec == other
    for left, right in zip(found, wanted, strict=True):
        if not isinstance(right, torch.Tensor):
            assert left == right
            continue
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        _assert_close(left.to(torch.float64).numpy(), right.to(torch.float64).numpy(), tolerance)


def _assert_close(found: Any, wanted: Any, tolerance: float) -> None:
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    if finite.any():
        scale = max(float(np.abs(wanted[finite]).max()), 1e-30)
        assert float(np.abs(found[finite] - wanted[finite]).max()) <= tolerance * scale
