"""The blocks of docs/from-pytorch.md run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

PAGE = Path(__file__).parents[3] / "docs" / "from-pytorch.md"


@pytest.mark.filterwarnings("ignore")
def test_every_block_runs() -> None:
    if "mlirt" not in torch._dynamo.list_backends():
        pytest.skip("mlirt is not installed with its entry points")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    torch.manual_seed(0)
    names: dict[str, Any] = {"__name__": "page"}
    with torch.no_grad():
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
