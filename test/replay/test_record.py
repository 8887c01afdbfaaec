"""The kernels of the small networks of `networks.py` are those of `record.json`, so that a change of one is seen here;
and their texts are canonical.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from canonical_texts import mistakes

from mlirt.tools import rt_replay
from mlirt.tools.replay.record_file import read_record

HERE = Path(__file__).parent
AGAIN = (
    "if these changes are meant, run `rt-replay record test/replay/record.json` and commit the file; "
    "`rt-replay compare test/replay/record.json --since=HEAD` shows the sources of the kernels side by side"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is made of the networks now, with the texts."""
    path = tmp_path_factory.mktemp("replay") / "made.json"
    assert rt_replay.main(["record", str(HERE / "record.json"), "-o", str(path), "--texts"]) == 0
    return path


def test_kernels_are_those_of_the_record(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = rt_replay.main(["compare", str(HERE / "record.json"), str(made)])
    assert code == 0, f"{capsys.readouterr().out}\n{AGAIN}"


def test_kernels_have_no_arithmetic_that_does_nothing(made: Path) -> None:
    """No cast of a value to its own type, no comparison of numbers, nothing that a block computes twice."""
    record = read_record(str(made))
    found = {
        f"{network}, {label}": wrong
        for network, labels in record.networks.items()
        for label, digest in labels.items()
        if label.startswith("kernel of ") and (wrong := mistakes(record.texts[digest]))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("a = int32(5) == int32(5)", "a comparison of numbers: int32(5) == int32(5)"),
        ("a = int32(i)", "a cast to the own type: int32(i)"),
        ("a = int32(int32(x + 1))", "a cast to the own type: int32(int32(x + 1))"),
        ("a = uint32(int32(1))", "a cast of a cast: uint32(int32(1))"),
        ("a = int32(x + 0)", "an addition of zero: x + 0"),
        ("a = int32(x * 1)", "a product with zero or one: x * 1"),
        ("a = int32(2 * 3 + x)", "arithmetic of numbers: 2 * 3"),
        ("a = int32(x + 1)\n    b = int32(x + 1)", "computed twice: b = int32(x + 1)"),
        ("for j in range(int32(1)): pass", "a loop of at most one iteration: for j in range(int32(1)):"),
        ("for j in range(0, 1, 16): pass", "a loop of at most one iteration: for j in range(0, 1, 16):"),
        ("if 1: pass", "a decided branch: if 1:"),
        ("a = (i < 3) & False", "a conjunction with a known condition: (i < 3) & False"),
        ("for j in range(int32(2)): pass", None),
        ("for j in range(i): pass", None),
        ("a = x[0]\n    b = x[0]", None),
        ("a = int32(x + 1)", None),
        ("a = float32(x + 0.0)", None),
    ],
)
def test_what_is_found_in_a_text(line: str, mistake: str | None) -> None:
    text = f'def f(x: "int64"):\n    i = int32(x + 7)\n    {line}\n'
    assert mistakes(text) == ([] if mistake is None else [mistake])
