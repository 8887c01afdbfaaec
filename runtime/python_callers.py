"""Whether several threads of Python make runs, as far as runs tell.

A run of a few microseconds keeps the interpreter's lock: to let it go and to take it again costs as much. With several
callers the others could prepare their runs meanwhile. Which of both it is follows from who made the runs before.
"""

from __future__ import annotations

from threading import get_ident

_RUNS = 1000


class PythonCallers:
    """The callers of all engines of a process."""

    def __init__(self) -> None:
        self.are_many = False
        """Whether another thread than the last one made one of the last thousand runs."""
        self.last = 0
        """The thread that made the last run, as `get_ident` calls it."""
        self._left = 0

    def come(self) -> None:
        """The thread that calls begins a run."""
        caller = get_ident()
        if caller != self.last:
            self.are_many = self.last != 0
            self.last, self._left = caller, _RUNS
        elif self.are_many:
            self._left -= 1
            self.are_many = self._left > 0


CALLERS = PythonCallers()
