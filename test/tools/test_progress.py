"""The progress bar: silent for short builds and where there is no terminal."""

from io import StringIO

import pytest

from mlirt.tools import progress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line() -> None:
    assert progress.line("kernels", 1, 2, 12.4) == f"[{'#' * 15}{' ' * 15}]  50 %  12 s  kernels"
    assert progress.line("start", 0, 0, 0).startswith("[ ")


def test_a_terminal_sees_it_after_a_while_and_it_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: clock[0])
    stream = Terminal()
    bar = progress.ProgressBar(stream)
    bar("parse", 1, 4)
    assert stream.getvalue() == ""
    clock[0] += 1
    bar("kernels", 2, 4)
    bar("kernels", 3, 4)
    assert stream.getvalue().count("\r") == 1
    bar.close()
    assert stream.getvalue().split("\r")[-2].strip() == ""


def test_a_file_sees_nothing() -> None:
    stream = StringIO()
    bar = progress.ProgressBar(stream)
    bar("kernels", 2, 2)
    bar.close()
    assert stream.getvalue() == ""
