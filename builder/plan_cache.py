"""Whole plans that were made before, on disk beside the kernels, so that a second build of a network runs no pass.

Two kinds of entries: a plan file, named by the digest in its own header, and small entries of the kernel cache that say
which plan a key stands for. So equal plans are stored once, weights included, whatever they were asked for as. A plan
file has digests of all that is in it; one that is damaged, or that is gone, means no more than a build. Permissions are
those of the kernel cache.

The folder is bounded: MLIRT_PLAN_CACHE_MB (1024; 0 keeps none). The least recently used plans go first, and one that
takes more than a quarter of it is not kept.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from mlirt.atomic_file import write_atomically
from mlirt.builder.kernel_cache import KernelCache, key_of
from mlirt.errors import MlirtError
from mlirt.runtime.plan_file import HEADER_BYTES, Plan, read_plan, size_and_digest

TAKEN = "taking the plan of an earlier build"
"""What a build reports as its progress where it finds its plan."""
_FOLDER = "plans"
_USUAL_MEGABYTES = 1024
_MAX_SHARE = 4
_DIGEST_DIGITS = 64


class PlanCache:
    """Plans by key; without a folder it holds nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        self._names = KernelCache(folder, shared=False)  # plans are this machine's own
        self._most = _most_bytes()
        self._largest = self._most // _MAX_SHARE
        self.folder = None if self._names.folder is None or not self._most else self._names.folder / _FOLDER

    @property
    def is_open(self) -> bool:
        """Whether it may hold anything, so that keys are worth their while."""
        return self.folder is not None

    def get(self, key: str) -> Plan | None:
        """The plan that is kept under a key; None where there is none, or a damaged one."""
        name = self._name_of(key)
        if self.folder is None or name is None:
            return None
        path = self.folder / f"{name}.plan"
        try:
            with path.open("rb") as file:
                if size_and_digest(file.read(HEADER_BYTES))[1] != name:
                    return None
            plan = read_plan(path)
            os.utime(path)
        except (OSError, MlirtError):
            return None
        # The file may be removed from the cache: nobody shall be handed its name in place of the plan.
        return replace(plan, origin=None)

    def put(self, keys: Sequence[str], plan: Plan) -> None:
        """Keep a plan under some keys; a folder that cannot be written is not an error."""
        if self.folder is None or not keys or sum(one.nbytes for one in plan.weights.values()) > self._largest:
            return
        pieces = iter(plan.pieces())
        header = bytes(next(pieces))
        size, name = size_and_digest(header)
        if size > self._largest:
            return
        try:
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._make_room(size)
            write_atomically(self.folder / f"{name}.plan", chain([header], pieces))
        except OSError:
            return
        self._point(keys, name)

    def point(self, key: str, others: Sequence[str]) -> None:
        """Let other keys stand for the plan of one."""
        name = self._name_of(key)
        if name is not None:
            self._point(others, name)

    def _point(self, keys: Sequence[str], name: str) -> None:
        for key in keys:
            self._names.put(_pointer(key), name.encode())

    def _name_of(self, key: str) -> str | None:
        """The digest of the plan that a key stands for."""
        found = self._names.get(_pointer(key), lambda entry: len(entry) == _DIGEST_DIGITS and entry.isalnum())
        return None if found is None else found.decode()

    def _make_room(self, size: int) -> None:
        """Remove plans that were not used for the longest time until one of a size fits."""
        assert self.folder is not None
        found = [(path.stat(), path) for path in self.folder.glob("*.plan")]
        taken = size + sum(state.st_size for state, _ in found)
        for state, path in sorted(found, key=lambda one: one[0].st_mtime_ns):
            if taken <= self._most:
                return
            path.unlink(missing_ok=True)
            taken -= state.st_size


def _pointer(key: str) -> str:
    return key_of("plan", key)


def _most_bytes() -> int:
    """How much plans may take; what is no number is the usual."""
    wanted = os.environ.get("MLIRT_PLAN_CACHE_MB", "")
    return (int(wanted) if wanted.isdecimal() else _USUAL_MEGABYTES) << 20
