"""A plugin of pytest: tests that take long are left out unless they are asked for.

`test/slow_tests.txt` names them. `--full` runs all tests, as `make test-full` does; a test that is named on the command
line, by file and `::`, runs in any case. `--record-slow=SECONDS` writes the list anew: tests that took more processor
time than that, their child processes included.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST = ROOT / "test" / "slow_tests.txt"
_TIME = "processor time"
_START = pytest.StashKey[float]()


def slow_tests() -> frozenset[str]:
    """The ids of the tests that `make test` leaves out."""
    return frozenset(LIST.read_text(encoding="utf-8").splitlines())


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("slow tests")
    group.addoption("--full", action="store_true", help="run the tests of test/slow_tests.txt too")
    group.addoption("--record-slow", type=float, metavar="SECONDS", help="write test/slow_tests.txt (implies --full)")


def pytest_configure(config: pytest.Config) -> None:
    seconds: float | None = config.getoption("--record-slow")
    if seconds is not None:
        config.pluginmanager.register(Recorder(seconds))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any("::" in argument for argument in config.args)
    if named or config.getoption("--full") or config.getoption("--record-slow") is not None:
        return
    slow = slow_tests()
    left_out = [item for item in items if item.nodeid in slow]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in slow]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_START] = _processor_time()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Notes what a test took where it ran, in a worker of xdist's or here."""
    result = yield
    item.user_properties.append((_TIME, _processor_time() - item.stash.get(_START, _processor_time())))
    return result


class Recorder:
    """Collects what the tests took, and writes the list at the end."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.slow: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        taken = [float(str(value)) for name, value in report.user_properties if name == _TIME]
        if report.when == "teardown" and sum(taken) > self.seconds:
            self.slow.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        if self.slow and "PYTEST_XDIST_WORKER" not in os.environ:
            LIST.write_text("".join(f"{one}\n" for one in sorted(self.slow)), encoding="utf-8")


def _processor_time() -> float:
    """Seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])
