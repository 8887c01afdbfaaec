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

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownModelError, 404),
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
