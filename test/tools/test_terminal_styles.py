"""Colours are for terminals: warnings, the layers that take long, what failed; never in a pipe, nor with NO_COLOR."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from small_network import network

import mlirt
from mlirt.tools.layer_report import profile_lines, profile_styles

COLOUR = re.compile(r"\x1b\[\d+m")


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("model") / "small.plan"
    mlirt.compile(network(), "cpu", threads=1).save(path)
    flags = ["--iterations=2", "--duration=0", "--warmUp=0", "--dumpProfile"]
    return [sys.executable, "-m", "mlirt.tools.rt_exec", f"--loadEngine={path}", *flags]


def on_terminal(command: list[str], **variables: str) -> str:
    """What a command writes to a terminal."""
    ours, theirs = os.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        command, stdout=theirs, stderr=subprocess.DEVNULL, env={**environment, "TERM": "xterm", **variables}
    )
    os.close(theirs)
    written = b""
    try:
        while piece := os.read(ours, 1 << 16):
            written += piece
    except OSError:  # so the system says that nobody has the terminal open any more
        pass
    os.close(ours)
    assert process.wait(120) == 0
    return written.decode().replace("\r\n", "\n")


def test_a_terminal_shows_colours(command: list[str]) -> None:
    text = on_terminal(command)
    assert "\x1b[32m&&&& PASSED" in text
    (head,) = [line for line in text.splitlines() if "Time %" in line]
    assert "\x1b[1m" in head
    (hot, *_) = [line for line in text.splitlines() if "\x1b[31m" in line]
    assert float(COLOUR.sub("", hot).split()[-1]) >= 20, "what stands out takes a fifth of the time"


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_none_for_who_wants_none(command: list[str], variables: dict[str, str]) -> None:
    text = on_terminal(command, **variables)
    assert "&&&& PASSED" in text
    assert not COLOUR.search(text)


def test_none_in_a_pipe(command: list[str], tmp_path: Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=120)
    assert "Time %" in done.stdout
    assert not COLOUR.search(done.stdout + done.stderr)


def test_each_line_of_a_profile_has_a_style() -> None:
    times: dict[str, object] = {"timeMs": 1.0, "averageMs": 1.0, "medianMs": 1.0}
    layers = [times | {"name": f"layer {share}", "percentage": share} for share in (75.0, 21.0, 4.0)]
    records = [dict[str, object](count=1), *layers]
    assert profile_styles(records) == ["bold", "bold", "red", "red", "", "bold"]
    assert len(profile_lines(records)) == len(profile_styles(records))
