"""rt-serve is told to end by a signal, also by loops that take no handlers, as those of Windows."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from mlirt.tools.rt_serve import _on_signal  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("takes_handlers", [True, False])
def test_a_signal_ends_the_wait(takes_handlers: bool) -> None:
    async def wait() -> bool:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        if not takes_handlers:
            setattr(loop, "add_signal_handler", _refuse)
        _on_signal(loop, signal.SIGTERM, stop.set)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stop.wait(), 5)
        return True

    before = signal.getsignal(signal.SIGTERM)
    try:
        assert asyncio.run(wait())
    finally:
        signal.signal(signal.SIGTERM, before)


def _refuse(*_: object) -> None:
    raise NotImplementedError
