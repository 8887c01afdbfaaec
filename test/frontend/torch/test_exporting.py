"""Programs are decomposed as PyTorch would, without its looking up the same operators dozens of times."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import threading
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import torch._export.utils as export_utils  # noqa: E402

from mlirt.frontend.torch import exporting  # noqa: E402


class Mixed(torch.nn.Module):
    """Operators that are kept, and composite ones that are not."""

    def forward(self, x: Any) -> Any:
        """[n, 4]."""
        return torch.nn.functional.linear(x, x).square().movedim(0, 1).float_power(2)


def _operators(program: Any) -> list[str]:
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


def test_composites_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    program = exporting.exported(Mixed(), (torch.randn(3, 4),))
    known = getattr(export_utils, "_materialize_cpp_cia_ops", None)
    if known is None:
        pytest.skip("this PyTorch looks them up in another way")
    calls: list[int] = []

    def look_up() -> None:
        calls.append(threading.get_ident())
        known()

    monkeypatch.setattr(exporting, "_look_up_composites", look_up)
    found = _operators(exporting.decomposed(program))
    assert len(calls) == 1
    assert export_utils._materialize_cpp_cia_ops is look_up
    monkeypatch.setattr(export_utils, "_materialize_cpp_cia_ops", known)
    monkeypatch.setattr(exporting, "_look_up_composites", None)
    assert _operators(exporting.decomposed(program)) == found
    assert "aten.linear.default" in found


def test_composites_of_libraries_that_come_later_are_decomposed() -> None:
    exporting.decomposed(exporting.exported(Mixed(), (torch.randn(3, 4),)))
    library = torch.library.Library("composites_that_come_later", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")

    class Later(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.ops.composites_that_come_later.twice(x)

    program = exporting.exported(Later(), (torch.randn(3, 4),))
    assert _operators(exporting.decomposed(program)) == ["aten.add.Tensor"]
