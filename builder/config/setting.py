"""What a field of `BuildConfig` says beside its type: the check of its values, their unit, and its part in keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass
from typing import Any, Literal, TypeAlias

KeyPart: TypeAlias = Literal["part", "resolved", "prevents", "apart"]
"""In the key of a build (builder/build_keys.py) a value is a `part`, or `resolved` to what it stands for; one that can
be more than a digest tells `prevents` that there is a key; one that the plan does not follow from is kept `apart`.
"""
Check: TypeAlias = Callable[[str, Any], Any]
"""From a setting's name and a value to the value that is kept; raises `InvalidInputError` for one that does not fit."""
_KEY = "mlirt.setting"


@dataclass(frozen=True)
class Setting:
    """How one setting is checked, measured and kept."""

    check: Check
    key: KeyPart = "part"
    unit: str = ""
    """What its number counts; empty where it is none."""
    is_stored: bool = True
    """Whether a file can hold it; objects of the running program are none."""


def setting(check: Check, key: KeyPart = "part", *, unit: str = "", is_stored: bool = True) -> dict[str, Setting]:
    """The metadata of a field of a configuration."""
    return {_KEY: Setting(check, key, unit, is_stored)}


def setting_of(one: Field[Any]) -> Setting:
    """What a field says."""
    found = one.metadata[_KEY]
    assert isinstance(found, Setting)
    return found
