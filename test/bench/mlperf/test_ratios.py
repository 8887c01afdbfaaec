"""Ratios are above 1 where we are faster, whether a score is a time or a rate."""

from __future__ import annotations

import pytest
from mlperf.answers import Check
from mlperf.command import main
from mlperf.endurance import Endurance, MemoryReader, resident_mib
from mlperf.load import Summary
from mlperf.ratios import ratios


def test_the_fastest_peer_of_each_round_counts() -> None:
    scores = {"mlirt": [1.0, 2.0], "one": [3.0, 3.0], "other": [4.0, 2.0]}
    assert ratios(scores, is_time=True) == [3.0, 1.0]
    assert ratios(scores, is_time=False) == [0.25, pytest.approx(2 / 3)]


def endurance(sizes: list[float], wrong: int = 0, answered: int = 2) -> Endurance:
    summary = Summary({"Completed samples per second": "5", "Result is": "VALID"})
    errors = [(1.0 if k < wrong else 0.0, 0.1) for k in range(2)]
    memory = [(float(k), size) for k, size in enumerate(sizes)]
    return Endurance(summary, Check(2, 2, 0, [(0.0, 0.1)] * 2), Check(2, answered, 0, errors), memory)


@pytest.mark.parametrize(
    ("sizes", "is_fine"),
    [
        ([100.0, 300.0, *[400.0] * 18], True),  # pools fill in the first part
        ([100.0 + 10 * k for k in range(20)], False),
        ([400.0] * 12 + [500.0] + [400.0] * 7, True),  # one reading is no trend
    ],
)
def test_memory_that_grows_is_seen(sizes: list[float], is_fine: bool) -> None:
    assert endurance(sizes).is_fine == is_fine


def test_a_lost_or_wrong_answer_is_seen() -> None:
    assert endurance([1.0] * 8).is_fine
    assert not endurance([1.0] * 8, wrong=1).is_fine
    assert not endurance([1.0] * 8, answered=1).is_fine


def test_memory_is_read_until_the_end() -> None:
    with MemoryReader(0.0) as memory:
        kept = bytearray(64 << 20)
        for k in range(0, len(kept), 4096):
            kept[k] = 1
        size = resident_mib()
    assert memory.readings[0][1] < size
    assert size > 64


@pytest.mark.parametrize("flag", ["networks", "precisions", "scenarios", "peers"])
def test_an_unknown_name_in_a_list_is_one_line(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ratios", f"--{flag}=nothing"])
    assert f"argument --{flag}: 'nothing' is none of " in capsys.readouterr().err.splitlines()[-1]
