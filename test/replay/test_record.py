"""The kernels of the small networks of `networks.py` are those of `record.json`: a change of one is seen here."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirt.tools import rt_replay

HERE = Path(__file__).parent
AGAIN = (
    "if these changes are meant, run `rt-replay record test/replay/record.json` and commit the file; "
    "`rt-replay compare test/replay/record.json --since=HEAD` shows the sources of the kernels side by side"
)


def test_kernels_are_those_of_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    code = rt_replay.main(["compare", str(HERE / "record.json")])
    assert code == 0, f"{capsys.readouterr().out}\n{AGAIN}"
