"""Every operator of PyTorch's core ATen set has a handler, or a reason why it has none."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

from mlirt.frontend.torch.core_set import WITHOUT_HANDLER
from mlirt.frontend.torch.handlers import supported_operators


def test_reasons_are_for_operators_without_handlers() -> None:
    assert not set(WITHOUT_HANDLER) & set(supported_operators())


def test_core_set_is_taken_or_refused_with_a_reason() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    core: set[str] = set()
    for name in torch._C._dispatch_get_all_op_names():
        space, _, rest = str(name).partition("::")
        base, _, overload = rest.partition(".")
        operator = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if space == "aten" and operator is not None and torch.Tag.core in operator.tags:
            core.add(str(operator))
    assert len(core) > 150
    assert core - set(supported_operators()) - set(WITHOUT_HANDLER) == set()


def test_handlers_are_of_operators_that_there_are() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    found = [name.split(".") for name in supported_operators()]
    unknown = [
        f"{base}.{overload}"
        for _, base, overload in found
        if getattr(getattr(torch.ops.aten, base, None), overload, None) is None
    ]
    assert unknown == []
