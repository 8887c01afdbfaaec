"""Coroutines for warp-specialised parts of a block: one runs at a time, and a part that waits yields to the next.

A part runs until it waits for something that has not happened, or lets another part know something. So one that forgets
to wait, or that lets others go on too early, is found out. Nothing runs in parallel: the order is always the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlirt.dialects.kernel.interpreter_memory import KernelError


class DeadlockError(KernelError):
    """All parts of a block wait for each other."""


class _StoppedError(Exception):
    """Another part has failed: this one ends."""


def _always() -> bool:
    return True


@dataclass(eq=False)
class _Part:
    """A coroutine: when it can go on, and what it waits for."""

    ready: Callable[[], bool] = _always
    waits_for: Callable[[], str] = str


class Coroutines:
    """Who may run now; starts with the caller as the only part."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._parts = [_Part()]
        self._current = self._parts[0]
        self._failure: BaseException | None = None

    def until(self, ready: Callable[[], bool], waits_for: Callable[[], str]) -> None:
        """Let others run until `ready()`; raises `DeadlockError` where nobody can."""
        if not ready():
            self._pass_on(ready, waits_for)

    def yield_to_others(self) -> None:
        """Let others run that can."""
        if len(self._parts) > 1:
            self._pass_on(_always, str)

    def concurrently(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run tasks as parts of their own, and return when all have ended; raises what one of them raises."""
        me = self._current
        parts = [_Part() for _ in tasks]
        at = self._parts.index(me) + 1
        self._parts[at:at] = parts
        threads = [
            threading.Thread(target=self._perform, args=(part, task), daemon=True)
            for part, task in zip(parts, tasks, strict=True)
        ]
        for thread in threads:
            thread.start()
        ended = set(parts)
        self._pass_on(lambda: self._failure is not None or not ended & set(self._parts), lambda: "its parts")
        for thread in threads:
            thread.join()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _perform(self, part: _Part, task: Callable[[], None]) -> None:
        import numpy as np

        try:
            self._wait_until_resumed(part)
            with np.errstate(all="ignore"):
                task()
        except _StoppedError:
            pass
        except BaseException as error:
            self._failure = error
        self._leave(part)

    def _leave(self, part: _Part) -> None:
        """The part has ended: whoever can runs next; after a failure everybody ends."""
        with self._changed:
            after = self._after(part)
            self._parts.remove(part)
            if self._current is part:
                self._current = next((one for one in after if one.ready()), self._parts[0])
            self._changed.notify_all()

    def _after(self, part: _Part) -> list[_Part]:
        at = self._parts.index(part)
        return [*self._parts[at + 1 :], *self._parts[:at]]

    def _pass_on(self, ready: Callable[[], bool], waits_for: Callable[[], str]) -> None:
        me = self._current
        me.ready, me.waits_for = ready, waits_for
        with self._changed:
            following = next((one for one in [*self._after(me), me] if one.ready()), None)
            if following is None:
                waits = "; ".join(one.waits_for() for one in self._parts)
                raise DeadlockError(f"nobody can go on: {waits}")
            self._current = following
            self._changed.notify_all()
        self._wait_until_resumed(me)

    def _wait_until_resumed(self, me: _Part) -> None:
        with self._changed:
            while self._current is not me:
                if self._failure is not None and me is not self._parts[0]:
                    raise _StoppedError
                self._changed.wait()
