"""The times of the phases of a build add up from its reports."""

from __future__ import annotations

from mlirt.tools.phase_times import PhaseTimes


def test_time_counts_for_the_phase_that_was_named_last() -> None:
    now = iter([0.0, 1.0, 1.5, 3.5, 4.0])
    heard: list[str] = []
    times = PhaseTimes(lambda text, done, total: heard.append(f"{text} {done}/{total}"), lambda: next(now))
    times("optimising", 0, 1)
    times("compiling kernels", 0, 2)
    times("compiling kernels (a)", 1, 2)
    times.close()
    assert heard == ["optimising 0/1", "compiling kernels 0/2", "compiling kernels (a) 1/2"]
    assert times.line() == "reading the network 1.00 s, optimising 0.50 s, compiling kernels 2.50 s"
