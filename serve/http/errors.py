"""Which status of HTTP an error is."""

from __future__ import annotations

from mlirt.errors import (
    DeadlineError,
    InvalidInputError,
    OutOfMemoryError,
    OverloadError,
    RunCancelledError,
    UnavailableError,
)
from mlirt.serve.models.models import UnknownModelError


class TooLargeError(InvalidInputError):
    """One body is larger than any may be."""


class SlowClientError(InvalidInputError):
    """A body took too long to come."""


class ForbiddenError(InvalidInputError):
    """The server was not told to let clients do this."""


_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownModelError, 404),
    (TooLargeError, 413),
    (SlowClientError, 408),
    (ForbiddenError, 403),
    (InvalidInputError, 400),
    (OverloadError, 429),
    (UnavailableError, 503),
    (DeadlineError, 504),
    (RunCancelledError, 503),
    (OutOfMemoryError, 503),
)


def status_of(error: Exception) -> int:
    """The status: 4xx where the client can do something about it, 500 where the server is at fault."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
