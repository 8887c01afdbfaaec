"""Measured times of tactics, kept between builds: in memory, as bytes, or in a file that builds share."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any, Self, cast

from mlirt.atomic_file import is_special, write_file
from mlirt.builder.shared_store import is_shared, open_store
from mlirt.errors import InvalidInputError
from mlirt.runtime.api.host_memory import IHostMemory
from mlirt.runtime.file_lock import locked
from mlirt.tensorrt.context_manager import ContextManager

FORMAT = 1
_WHAT = "mlirt timing cache"
_KIND = "times"
_LOG = logging.getLogger("mlirt")

Times = dict[str, float]
"""Microseconds by tactic: infinity for one that did not run, REFUSED for one that computed something else."""

REFUSED = -1.0


def times_of_those_right(times: Mapping[str, float]) -> Times:
    """The times of the tactics that ran and were not refused: those that the fastest is found among."""
    return {name: time for name, time in times.items() if time != REFUSED and isfinite(time)}


class TimingCache(ContextManager):
    """For a place (device, driver, compiler) and an op, the microseconds of each tactic; TensorRT's ITimingCache."""

    def __init__(self, blob: bytes = b"", source: str = "the timing cache") -> None:
        """Empty, or what `serialize` gave; raises `InvalidInputError` for anything else."""
        self._times: dict[str, dict[str, Times]] = _parsed(blob, source) if blob else {}

    def get(self, place: str, op: str) -> Times:
        """The microseconds by tactic that are known for an op, given by its text."""
        return dict(self._times.get(place, {}).get(_key(op), {}))

    def put(self, place: str, op: str, times: Mapping[str, float]) -> None:
        """Keep times; those of the same tactics are replaced."""
        self._times.setdefault(place, {}).setdefault(_key(op), {}).update(times)

    def places(self) -> tuple[str, ...]:
        """Where the times were measured."""
        return tuple(sorted(self._times))

    def __bool__(self) -> bool:
        """True, also while it is empty: `cache or TimingCache()` has to keep a cache that is to be filled."""
        return True

    def __len__(self) -> int:
        return sum(len(ops) for ops in self._times.values())

    def serialize(self) -> IHostMemory:
        """The same cache as bytes; equal caches give equal bytes."""
        finite = {
            place: {
                op: {name: time if isfinite(time) else None for name, time in times.items()} for op, times in of.items()
            }
            for place, of in self._times.items()
        }
        body = json.dumps(finite, sort_keys=True, separators=(",", ":"))
        head = {"what": _WHAT, "format": FORMAT, "digest": _digest(body)}
        return IHostMemory((json.dumps(head, sort_keys=True) + "\n" + body + "\n").encode())

    def combine(self, other: TimingCache, ignore_mismatch: bool = False) -> bool:
        """Take over what only the other cache knows.

        False, and nothing changes, where both have times and none of the other's were measured at a place of this one;
        `ignore_mismatch` takes them nevertheless. They are kept apart and used at their own place alone.
        """
        strange = bool(self._times) and not set(self._times) & set(other._times)
        if other._times and strange and not ignore_mismatch:
            return False
        for place, ops in other._times.items():
            for op, times in ops.items():
                own = self._times.setdefault(place, {}).setdefault(op, {})
                own.update({name: time for name, time in times.items() if name not in own})
        return True

    def reset(self) -> bool:
        """Forget everything."""
        self._times.clear()
        return True

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The cache in a file; an empty one where there is no file or it is empty.

        Of a folder or a URL it is all that build machines have written there (builder/shared_store.py).
        """
        if is_shared(path):
            return cls._of_store(path)
        try:
            return cls(Path(path).read_bytes(), str(path))
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise InvalidInputError(f"the timing cache {os.fspath(path)} cannot be read: {error.strerror}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Add these times to those in a file, a folder or at a URL, which other builds may be writing too."""
        if is_shared(path):
            self._save_to_store(path)
            return
        target = Path(path)
        if is_special(target):
            write_file(target, [self.serialize()], "the timing cache")
            return
        with locked(target.with_name(f"{target.name}.lock")):
            whole = type(self).load(target)
            whole.combine(self, ignore_mismatch=True)
            write_file(target, [whole.serialize()], "the timing cache")

    @classmethod
    def _of_store(cls, where: str | os.PathLike[str]) -> Self:
        whole = cls()
        for blob in open_store(where).entries(_KIND):
            try:
                whole.combine(cls(blob, os.fspath(where)), ignore_mismatch=True)
            except InvalidInputError as error:  # of another version, say: its machines have times of their own
                _LOG.warning("mlirt: %s", error)
        return whole

    def _save_to_store(self, where: str | os.PathLike[str]) -> None:
        """Write an entry with what the store does not know yet, under the digest of what it says."""
        fresh = self._beyond(self._of_store(where))
        if fresh._times:
            blob = bytes(fresh.serialize())
            open_store(where).put(f"{_KIND}/{hashlib.blake2b(blob, digest_size=16).hexdigest()}", blob)

    def _beyond(self, known: TimingCache) -> TimingCache:
        """What another cache does not know."""
        found = TimingCache()
        for place, ops in self._times.items():
            for op, times in ops.items():
                others = known._times.get(place, {}).get(op, {})
                new = {name: time for name, time in times.items() if name not in others}
                if new:
                    found._times.setdefault(place, {})[op] = new
        return found


def _key(op: str) -> str:
    return hashlib.blake2b(op.encode(), digest_size=16).hexdigest()


def _digest(body: str) -> str:
    return hashlib.blake2b(body.encode(), digest_size=16).hexdigest()


def _parsed(blob: bytes, source: str) -> dict[str, dict[str, Times]]:
    wrong = f"{source} is damaged, or is no timing cache of mlirt; delete it, or give another file"
    head, _, body = blob.partition(b"\n")
    try:
        about, text = json.loads(head), body.decode().removesuffix("\n")
    except ValueError as error:
        raise InvalidInputError(wrong) from error
    if not isinstance(about, dict) or cast("dict[str, Any]", about).get("what") != _WHAT:
        raise InvalidInputError(wrong)
    fields = cast("dict[str, Any]", about)
    if fields.get("format") != FORMAT:
        raise InvalidInputError(
            f"{source} has format {str(fields.get('format'))[:20]}, this mlirt reads format {FORMAT}; delete it"
        )
    if fields.get("digest") != _digest(text):
        raise InvalidInputError(wrong)
    return _times_of(json.loads(text))


def _times_of(stored: dict[str, dict[str, dict[str, float | None]]]) -> dict[str, dict[str, Times]]:
    """A candidate that did not run has null in the file."""
    return {
        place: {op: {name: inf if time is None else time for name, time in times.items()} for op, times in of.items()}
        for place, of in stored.items()
    }
