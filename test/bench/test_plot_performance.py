"""The pictures of docs/performance.md show what its tables say."""

from __future__ import annotations

import pytest
from plot_performance import FOLDER, PAGE, pictures, rows

TABLE = """\
# Speed

| network | ours, ms |
|---|---|
| other | 1 |

| network | ratio | | network | ratio | ratio to others |
|---|---|---|---|---|---|
| `a`, 1 | 2.00 | | b | 0.50 | 9 |
| c | 1.25 | |  |  |  |

# Next
"""


def test_the_first_table_with_ratios_is_taken() -> None:
    assert rows(TABLE, "Speed") == [("a, 1", 2.0), ("c", 1.25), ("b", 0.5)]
    with pytest.raises(ValueError, match="no table with ratios below 'Next'"):
        rows(TABLE, "Next")


@pytest.mark.parametrize(("name", "text"), pictures().items())
def test_a_picture_is_that_of_the_table(name: str, text: str) -> None:
    drawn = (FOLDER / name).read_text(encoding="utf-8")
    assert drawn == text, "the table has changed: python bench/plot_performance.py"
    assert f"](performance/{name})" in PAGE.read_text(encoding="utf-8")
    assert drawn.count("<rect") > 6
