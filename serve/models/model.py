"""One model: a name, and what answers for it now, which a reload replaces without losing a request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping

from mlirt.errors import UnavailableError
from mlirt.serve.batching.request import Answer, Array
from mlirt.serve.batching.signature import Signature
from mlirt.serve.models.backend import Backend


class Model:
    """`open_now` opens what answers; it is called again for each reload."""

    version = "1"
    """Clients may name it in paths; a reload does not change it."""

    def __init__(self, name: str, open_now: Callable[[], Backend]) -> None:
        self.name = name
        self._open_now = open_now
        self._lock = threading.Lock()
        self._backend: Backend | None = open_now()
        self.reloads = 0
        """How often it was replaced."""

    @property
    def backend(self) -> Backend:
        """What answers now; UnavailableError where the model was unloaded."""
        backend = self._backend
        if backend is None:
            raise UnavailableError(f"model {self.name!r} is not loaded")
        return backend

    @property
    def current(self) -> Backend | None:
        """What answers now; None where the model was unloaded."""
        return self._backend

    @property
    def is_ready(self) -> bool:
        """Whether requests would be answered."""
        backend = self._backend
        return backend is not None and (backend.pool is None or bool(backend.pool.pids))

    @property
    def signature(self) -> Signature:
        """Inputs and outputs."""
        return self.backend.batcher.signature

    def submit(
        self,
        feeds: Mapping[str, Array],
        *,
        timeout: float | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Answer:
        """`Batcher.submit` of what answers now."""
        while True:
            backend = self.backend
            try:
                return backend.batcher.submit(feeds, timeout=timeout, loop=loop)
            except UnavailableError:
                if backend is self._backend:
                    raise  # nobody has replaced it in between

    def reload(self) -> None:
        """Open the model anew, let it answer from then on, and end the old one behind its last request.

        Where the new one cannot be opened the old one goes on, and the error is raised.
        """
        with self._lock:
            fresh = self._open_now()
            old, self._backend = self._backend, fresh
            self.reloads += 1
        if old is not None:
            old.close()

    def unload(self) -> None:
        """Answer what waits, and nothing more until a reload."""
        with self._lock:
            old, self._backend = self._backend, None
        if old is not None:
            old.close()
