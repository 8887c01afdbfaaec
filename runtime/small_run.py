"""A run of a network so small that calling it costs more than its kernels: checks, two copies an array, one call."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np

from mlirt.runtime.cpu_job import ShortCut

Tensor = tuple[str, "np.dtype[np.generic]"]


class SmallRun:
    """Runs one program on the caller's thread, on arrays that are right as they are; it leaves all others alone."""

    def __init__(
        self, inputs: Sequence[Tensor], output_names: Sequence[str], cut: ShortCut, lock: threading.Lock
    ) -> None:
        """`lock` is that of the context, whose memory the program uses."""
        assert cut.staged is not None
        reads, writes = cut.staged
        self._inputs = [
            (name, dtype, staged.shape, staged) for (name, dtype), staged in zip(inputs, reads, strict=True)
        ]
        self._outputs = dict(zip(output_names, writes, strict=True))
        self._copies = [(name, staged.copy) for name, staged in self._outputs.items()]
        self._count = len(self._inputs)
        self._native, self._job, self._address = cut.native, cut.job, cut.job.address
        self._session, self._tenancy, self._enter = cut.session, cut.tenancy, cut.enter
        self._lock = lock

    def __call__(
        self, feeds: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray] | None:
        """The outputs, those of `given` in these arrays; None, with nothing done, where one does not fit as it is."""
        lock = self._lock
        if not lock.acquire(False):
            return None
        try:
            if len(feeds) != self._count:
                return None
            for name, dtype, shape, staged in self._inputs:
                array = feeds[name]
                if type(array) is not np.ndarray or array.dtype is not dtype or array.shape != shape:
                    return None
                staged[...] = array
            if given and not self._fit(given):
                return None
            if self._session.tenant is not self._tenancy:
                self._enter()
            self._native(self._address)
            return self._into(given) if given else {name: copied() for name, copied in self._copies}
        except (KeyError, TypeError):
            return None  # the names or what holds them are wrong, which the run proper says
        finally:
            lock.release()

    def _fit(self, given: Mapping[str, np.ndarray]) -> bool:
        for name, array in given.items():
            staged = self._outputs[name]
            if type(array) is not np.ndarray or array.dtype != staged.dtype or array.shape != staged.shape:
                return False
            if not array.flags.writeable:
                return False
        return True

    def _into(self, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for name, staged in self._outputs.items():
            target = given.get(name)
            if target is None:
                target = staged.copy()
            else:
                target[...] = staged
            found[name] = target
        return found
