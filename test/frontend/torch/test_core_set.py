"""Every operator of PyTorch's core ATen set has a row: a handler, or why it needs or has none."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mlirt.frontend.torch.core_set import TAKEN, WITHOUT_HANDLER, WRITTEN_OTHERWISE
from mlirt.frontend.torch.handlers import supported_operators

PAGE = Path(__file__).parents[3] / "docs" / "torch-operators.md"


def _core_set(torch: Any) -> set[str]:
    """The overloads that PyTorch tags."""
    core: set[str] = set()
    for name in torch._C._dispatch_get_all_op_names():
        space, _, rest = str(name).partition("::")
        base, _, overload = rest.partition(".")
        operator = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if space == "aten" and operator is not None and torch.Tag.core in operator.tags:
            core.add(str(operator))
    assert len(core) > 150
    return core


def test_each_operator_stands_in_one_table() -> None:
    handled = set(supported_operators())
    assert set(TAKEN) <= handled
    assert not set(WITHOUT_HANDLER) & handled
    assert not set(WRITTEN_OTHERWISE) & (handled | set(WITHOUT_HANDLER))


def test_tables_are_the_core_set() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    core = _core_set(torch)
    assert core - {*TAKEN, *WITHOUT_HANDLER, *WRITTEN_OTHERWISE} == set()
    if torch.__version__.startswith("2.13"):
        assert {*TAKEN, *WITHOUT_HANDLER, *WRITTEN_OTHERWISE} - core == set()


def test_page_has_a_row_for_each_operator_of_the_core_set() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    section = PAGE.read_text().partition("## The core ATen set")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (taken|written otherwise|refused) \| (.+) \|$", section, re.MULTILINE)
    assert _core_set(torch) <= {name for name, _, _ in rows}
    for name, kind, how in rows:
        expected = "taken" if name in TAKEN else "refused" if name in WITHOUT_HANDLER else "written otherwise"
        assert (kind, bool(how.strip())) == (expected, True), name


def test_handlers_are_of_operators_that_there_are() -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    found = [name.split(".") for name in supported_operators() if name.startswith("aten.")]
    unknown = [
        f"{base}.{overload}"
        for _, base, overload in found
        if getattr(getattr(torch.ops.aten, base, None), overload, None) is None
    ]
    assert unknown == []
