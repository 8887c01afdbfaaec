"""Engines of this project under the real load generator: `make test-mlperf` runs this from a fresh clone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mlperf.command import main
from mlperf.load import SCENARIOS

pytest.importorskip("mlperf_loadgen", reason="needs the load generator: pip install 'mlirt[mlperf]', make test-mlperf")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mlperf")


def run(folder: Path, *flags: str) -> None:
    main([flags[0], "tiny_bert", "--threads=1", f"--folder={folder}", f"--logs={folder}/logs", *flags[1:]])


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_accuracy(scenario: str, precision: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, "run", f"--scenario={scenario}", f"--precision={precision}", "--accuracy", "--rate=100", "--batch=4")
    assert "16 samples, 0 lost, 0 wrong" in capsys.readouterr().out


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("scenario", ["SingleStream", "Offline"])
def test_accuracy_of_samples_that_differ_in_length(
    scenario: str, precision: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--accuracy", "--batch=4", "--threads=1", f"--folder={folder}", f"--logs={folder}/logs")
    main(["run", "tiny_bert_lengths", f"--scenario={scenario}", f"--precision={precision}", *flags])
    assert "16 samples, 0 lost, 0 wrong" in capsys.readouterr().out


def test_accuracy_of_pictures_behind_a_loop(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--accuracy", "--batch=2", "--samples=4", "--threads=2", f"--folder={folder}", f"--logs={folder}/logs")
    main(["run", "tiny_diffusion", "--scenario=Offline", *flags])
    assert "4 samples, 0 lost, 0 wrong" in capsys.readouterr().out


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_performance(scenario: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--batch=4", "--rate=100") if scenario == "Server" else ("--batch=4",)
    run(folder, "run", f"--scenario={scenario}", "--seconds=0.5", *flags)
    text = capsys.readouterr().out
    assert re.search(r"^(p\d\d [\d.]+ ms|[\d.]+ samples/s)", text, re.MULTILINE), text
    logs = folder / "logs" / "tiny_bert.fp32.cpu" / "mlirt" / scenario / "performance"
    assert (logs / "mlperf_log_summary.txt").exists()


def test_server_load_for_seconds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, "endure", "--rate=100", "--seconds=2", "--batch=4")
    text = capsys.readouterr().out
    assert text.count("16 samples, 0 lost, 0 wrong") == 2, text
    assert "once settled" in text


def test_a_bound_that_no_answer_keeps_ends_the_command(folder: Path) -> None:
    with pytest.raises(SystemExit):
        run(folder, "run", "--accuracy", "--bound=1e-12", "--batch=4")


def test_ratios_by_one_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--networks=tiny_bert", "--precisions=fp32", "--peers=onnxruntime", "--rounds=1", "--seconds=0.3")
    main(["ratios", *flags, "--batch=4", "--threads=1", f"--folder={folder}", f"--logs={folder}/logs"])
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "1 threads, 1 rounds of at least 0.3 s, 16 samples"
    form = r"tiny_bert +fp32 +(\w+)( +[\d.]+ ?(?:ms|/s)){2} +[\d.]+ +[\d.-]+ +\S+ 0"
    found = [re.fullmatch(form, row) for row in rows[2:]]
    assert [one and one[1] for one in found] == ["SingleStream", "Offline"], rows
