"""How many bytes of bodies a server holds at once: what goes beyond is refused before it is read."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from mlirt.errors import OverloadError
from mlirt.serve.http.errors import TooLargeError


class BodyBudget:
    """For one event loop. `max_body`, `max_all`: bytes of one body, and of all that are being answered."""

    def __init__(self, max_body: int, max_all: int) -> None:
        self._max_body, self._max_all = max_body, max(max_body, max_all)
        self._held = 0

    @contextmanager
    def hold(self, length: int | None) -> Generator[None]:
        """While a body of so many bytes is read and answered; None where its client does not say how many."""
        if length is not None and length > self._max_body:
            raise TooLargeError(f"the body has {length} bytes; expected at most {self._max_body}")
        size = self._max_body if length is None else length
        if self._held + size > self._max_all:
            raise OverloadError(
                f"bodies of {self._held} bytes are being answered; expected at most {self._max_all} with this one's "
                f"{size}: send the request again later"
            )
        self._held += size
        try:
            yield
        finally:
            self._held -= size
