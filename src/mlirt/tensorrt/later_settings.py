"""Settings that came with a later version than 8.5: attributes that are there where that version is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlirt.tensorrt.reported_version import reported_version, reports_at_least


class LaterSetting:
    """An attribute whose value is kept in the object's `_later`; `accepted` gives what is kept of a value, or raises.

    Where an earlier version is told there is no such attribute, as programs look for it.
    """

    def __init__(self, since: tuple[int, ...], default: object, accepted: Callable[[Any], object]) -> None:
        self._since, self._default, self._accepted = since, default, accepted

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        self._expect_version(instance)
        return instance._later.get(self._name, self._default)

    def __set__(self, instance: Any, value: object) -> None:
        self._expect_version(instance)
        instance._later[self._name] = self._accepted(value)

    def _expect_version(self, instance: object) -> None:
        if not reports_at_least(*self._since):
            since = ".".join(map(str, self._since))
            raise AttributeError(
                f"{type(instance).__name__!r} object has no attribute {self._name!r}: it came with version {since}, "
                f"and {reported_version()} is told"
            )
