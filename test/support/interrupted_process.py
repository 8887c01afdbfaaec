"""Processes that tests interrupt."""

from __future__ import annotations

import signal


def restore_interrupts() -> None:
    """The `preexec_fn` of a process that gets SIGINT: an interrupt raises KeyboardInterrupt in it.

    A shell starts commands in the background with SIGINT ignored, which child processes inherit.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
