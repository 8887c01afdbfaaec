"""Guard pages: a read or write outside of a buffer ends a process or raises, what stays inside computes as ever."""

import ctypes
import faulthandler
import os
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.guarded_memory import GuardedBlock, Side, guarded_side
from mlirt.runtime.plan_file import plan_bytes

Maker = Callable[[], Any]
SIDES: tuple[Side, Side] = ("start", "end")


def engine_of(parts: Any) -> Engine:
    return load(plan_bytes(parts.manifest, parts.sections, parts.weights))


def signal_of(action: Callable[[], object]) -> int:
    """The signal that ends a forked child that does `action`; 0 where none does."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        action()
        os._exit(0)
    return os.waitpid(child, 0)[1] & 0x7F


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("size", [0, 1, 100, 4096, 5000])
def test_the_neighbours_of_a_block_trap(side: Side, size: int) -> None:
    block = GuardedBlock(size, side)
    outside = block.address + (size if side == "end" else -1)
    assert signal_of(lambda: ctypes.string_at(outside, 1)) == signal.SIGSEGV
    assert signal_of(lambda: ctypes.memset(outside, 0, 1)) == signal.SIGSEGV
    block.fill(0, size, 7)
    assert bytes(block.bytes_at(0, size)) == ctypes.string_at(block.address, size) == b"\7" * size
    block.check("it")


@pytest.mark.parametrize("side", SIDES)
def test_a_write_on_the_other_side_is_found(side: Side) -> None:
    block = GuardedBlock(100, side)
    ctypes.memset(block.address + (-1 if side == "end" else 100), 0, 1)
    with pytest.raises(PlanError, match=r"a kernel wrote 1 bytes (before|behind) it, which has 100 bytes"):
        block.check("it")


@pytest.mark.parametrize("side", SIDES)
def test_an_engine_between_guard_pages_computes_the_same(
    tiny: Maker, monkeypatch: pytest.MonkeyPatch, side: Side
) -> None:
    parts = tiny()
    want = engine_of(parts)
    monkeypatch.setenv("MLIRT_GUARD", side)
    guarded = engine_of(parts)
    for n in (1, 7, 0, 1000, 7):
        x = np.random.default_rng(n).standard_normal((n, 4), np.float32)
        found, first = guarded.run({"x": x}), guarded.run({"x": -x})
        for name, expected in want.run({"x": x}).items():
            np.testing.assert_array_equal(found[name], expected)
        assert first["y"].base is None  # the caller's, not guarded memory


@pytest.mark.parametrize(("side", "shift"), [("end", 4), ("start", -4)])
@pytest.mark.parametrize("buffer", [2, 3])
def test_a_kernel_that_leaves_a_buffer_ends_the_process(
    tiny: Maker, monkeypatch: pytest.MonkeyPatch, side: Side, shift: int, buffer: int
) -> None:
    monkeypatch.setenv("MLIRT_GUARD", side)
    engine = engine_of(tiny())
    x = np.ones((5, 4), np.float32)
    context: Any = engine.create_execution_context()
    program = context._fitting_program([x], "")
    address = program._places_of_outputs[0].memory.address if buffer == 2 else program._device.weights[3].ctypes.data
    program.upload([x])
    words = program._parameters
    words[words == address] += shift
    assert signal_of(program.execute) == signal.SIGSEGV


def test_a_side_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_GUARD", "middle")
    with pytest.raises(InvalidInputError, match="MLIRT_GUARD is 'middle': expected start or end"):
        guarded_side()
