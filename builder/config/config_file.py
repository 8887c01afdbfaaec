"""Configurations in files: JSON, which is read and written, and TOML, which people write."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from mlirt.builder.config.build_config import BuildConfig, settings
from mlirt.builder.config.setting import setting_of
from mlirt.builder.config.values import read, written
from mlirt.errors import InvalidInputError


def to_json(config: BuildConfig) -> str:
    """The settings that are not their defaults, in their order."""
    stored = {one.name for one in settings() if setting_of(one).is_stored}
    found: dict[str, Any] = {}
    for name, value in config.changes().items():
        if name not in stored:
            raise InvalidInputError(f"{name}: a file cannot hold {type(value).__name__}; give it when you build")
        found[name] = written(name, value)
    return json.dumps(found, indent=2) + "\n"


def from_json(text: str) -> BuildConfig:
    """The configuration of a text in JSON."""
    return _config(_parsed(json.loads, text, "JSON"))


def load(path: str | os.PathLike[str]) -> BuildConfig:
    """The configuration in a file, whose name says what it is written in."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidInputError(f"the configuration {os.fspath(path)} cannot be read: {why}") from error
    try:
        return _config(_parsed(tomllib.loads, text, "TOML")) if Path(path).suffix == ".toml" else from_json(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{os.fspath(path)}: {error}") from error


def _parsed(parser: Callable[[str], object], text: str, language: str) -> object:
    try:
        return parser(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"this is no {language}: {error}") from error


def _config(given: object) -> BuildConfig:
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"expected settings of a build by name, got {type(given).__name__}")
    found = cast("Mapping[str, Any]", given)
    for one in settings():
        if one.name in found and not setting_of(one).is_stored:
            raise InvalidInputError(f"{one.name}: an object of the program, which no file can hold")
    return BuildConfig().replace(**{name: read(name, value) for name, value in found.items()})
