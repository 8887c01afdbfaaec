"""What the tests of the documents share: the pages as they should read today."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlirt.tools.documentation.pages import fresh_text

ROOT = Path(__file__).parents[2]


@pytest.fixture
def assert_current() -> Callable[[str], None]:
    """Compares a document with what `make docs` would write."""

    def check(name: str) -> None:
        assert (ROOT / name).read_text(encoding="utf-8") == fresh_text(name, ROOT), (
            f"{name} is out of date: make docs PAGES={name}"
        )

    return check
