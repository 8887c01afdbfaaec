"""The progress bar: silent for short builds and where there is no terminal."""

from io import StringIO

import pytest

from mlirt.builder import progress_bar


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line() -> None:
    assert progress_bar.line("kernels", 1, 2, 1.4) == f"[{'#' * 15}{' ' * 15}]  50 %  1 s  kernels"
    assert progress_bar.line("kernels", 1, 4, 12.0) == f"[{'#' * 7}{' ' * 23}]  25 %  12 s, 36 s left  kernels"
    assert progress_bar.line("start", 0, 0, 0).startswith("[ ")
    for done, seconds in ((1, 1.9), (0, 9.0), (4, 9.0)):
        assert "left" not in progress_bar.line("kernels", done, 4, seconds)


def test_a_terminal_sees_it_after_a_while_and_it_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(progress_bar.time, "perf_counter", lambda: clock[0])
    stream = Terminal()
    bar = progress_bar.ProgressBar(stream)
    bar("parse", 1, 4)
    assert stream.getvalue() == ""
    clock[0] += 1
    bar("kernels", 2, 4)
    bar("kernels", 3, 4)
    assert stream.getvalue().count("\r") == 1
    bar.close()
    assert stream.getvalue().split("\r")[-2].strip() == ""


def test_a_quiet_one_draws_on_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(progress_bar.time, "perf_counter", lambda: clock[0])
    stream = Terminal()
    bar = progress_bar.ProgressBar(stream, quiet=True)
    clock[0] += 9
    bar("kernels", 1, 2)
    bar.close()
    assert stream.getvalue() == ""


def test_a_file_sees_nothing() -> None:
    stream = StringIO()
    bar = progress_bar.ProgressBar(stream)
    bar("kernels", 2, 2)
    bar.close()
    assert stream.getvalue() == ""


def test_a_bar_only_for_who_wants_one() -> None:
    seen: list[str] = []

    def told(text: str, done: int, total: int) -> None:
        seen.append(f"{text} {done} of {total}")

    with progress_bar.shown(told) as given, progress_bar.shown(True) as bar, progress_bar.shown(False) as nobody:
        assert given is not None
        given("calibrating", 1, 2)
        assert isinstance(bar, progress_bar.ProgressBar)
        assert nobody is None
    assert seen == ["calibrating 1 of 2"]
