"""Checks of single settings: each takes the name of a setting and a value, and gives the value as it is kept."""

from __future__ import annotations

import difflib
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, cast

from mlirt.builder.config.machines import names_in
from mlirt.builder.config.setting import Check
from mlirt.builder.profiles import read_profiles
from mlirt.dialects.fast_math import read_rights
from mlirt.errors import InvalidInputError


def near(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` where a known name is much like this one, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def one_of(*words: str) -> Check:
    """One of some words."""

    def check(name: str, value: Any) -> str:
        if value not in words:
            hint = near(value, words) if isinstance(value, str) else ""
            raise InvalidInputError(f"{name} {value!r} is not known; expected one of {', '.join(words)}{hint}")
        return value

    return check


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidInputError(f"{name}: expected True or False, got {value!r}")
    return value


def whole(least: int) -> Check:
    """A whole number from `least` on."""

    def check(name: str, value: Any) -> int:
        try:
            number = least - 1 if isinstance(value, bool) else operator.index(value)
        except TypeError:
            number = least - 1
        if number < least:
            raise InvalidInputError(f"{name}: expected a whole number from {least} on, got {value!r}")
        return number

    return check


def amount(name: str, value: Any) -> float:
    """A finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise InvalidInputError(f"{name}: expected a number from 0 on, got {value!r}")
    return value if isinstance(value, int | float) else float(value)


def optional(check: Check) -> Check:
    """None, or what another check takes."""
    return lambda name, value: None if value is None else check(name, value)


def texts(check: Callable[[str], object] | None = None) -> Check:
    """Several texts, each of which `check` takes without an error."""

    def checked(name: str, value: Any) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise InvalidInputError(f"{name}: expected a list of names, such as [{value!r}]")
        found = tuple(cast("Sequence[object]", value))
        for one in found:
            if not isinstance(one, str):
                raise InvalidInputError(f"{name}: expected a list of names, but {one!r} is none")
            if check is not None:
                _with_name(name, check, one)
        return cast("tuple[str, ...]", found)

    return checked


def fast_math(name: str, value: Any) -> tuple[str, ...]:
    """Rights of fast math: a list, or a text of them with commas between."""
    given: object = value
    words = cast("Sequence[object]", given) if isinstance(given, str | Sequence) else [None]
    if not all(isinstance(one, str) for one in words):
        raise InvalidInputError(f"{name}: expected rights such as 'reassociate,finite', got {given!r}")
    try:
        return read_rights(cast("str | Sequence[str]", given))
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from error


def mapping(check: Callable[[str], object] | None = None) -> Check:
    """Values by name, of which `check` takes each without an error; None is empty."""

    def checked(name: str, value: Any) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise InvalidInputError(f"{name}: expected values by name, such as {{'x': ..}}, got {value!r}")
        found = dict(cast("Mapping[Any, Any]", value))
        for key, one in found.items():
            if not isinstance(key, str):
                raise InvalidInputError(f"{name}: expected values by name, but {key!r} is no name")
            if check is not None:
                _with_name(f"{name} of {key!r}", check, one)
        return found

    return checked


def path(name: str, value: Any) -> str:
    """The path of a file or a folder."""
    if not isinstance(value, str | os.PathLike):
        raise InvalidInputError(f"{name}: expected a path, got {value!r}")
    return os.fspath(cast("str | os.PathLike[str]", value))


def paths(name: str, value: Any) -> tuple[str, ...]:
    """Several paths; one alone stands for itself."""
    if isinstance(value, str | os.PathLike):
        return (path(name, value),)
    if not isinstance(value, Sequence):
        raise InvalidInputError(f"{name}: expected a list of paths, got {value!r}")
    return tuple(path(name, one) for one in cast("Sequence[object]", value))


def path_or_object(name: str, value: Any) -> object:
    """The path of a file, as text, or what stands for its content."""
    return path(name, value) if isinstance(value, os.PathLike) else value


def anything(name: str, value: Any) -> Any:
    """Whatever the layer that it is for takes."""
    return value


def profiles(name: str, value: Any) -> tuple[dict[str, tuple[tuple[int, ...], ...]], ...]:
    """(min, opt, max) shapes by input, one mapping or several."""
    try:
        found = read_profiles(value)
    except (TypeError, ValueError) as error:
        if str(error).startswith("profile"):
            raise
        raise InvalidInputError(f"{name}: {error}") from error
    return tuple({key: one.shapes for key, one in each.items()} for each in found)


def pipeline(name: str, value: Any) -> object:
    """A pipeline, or its edits as the flags --pipeline-edit have them."""
    from mlirt.passes.pipeline_edits import Pipeline

    if isinstance(value, Pipeline):
        return value
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(
            f"{name}: expected a mlirt.Pipeline, or a list of edits such as ['after=cse#1:my-pass'], got {value!r}"
        )
    try:
        return Pipeline.parse(texts()(name, value))
    except InvalidInputError as error:
        raise InvalidInputError(error.args[0] if str(error).startswith(name) else f"{name}: {error}") from error


def phase(name: str, value: Any) -> str:
    """A phase of the compiler."""
    from mlirt.passes.phases import find_phase

    _with_name(name, find_phase, value)
    return value


def device(name: str, value: Any) -> str:
    """A device that kernels are chosen for: its name, with other figures, or a file."""
    from mlirt.dialects.device_files import read_device

    if not isinstance(value, str):
        raise InvalidInputError(f"{name}: expected a name of a device, such as 'h100-pcie', or its file, got {value!r}")
    _with_name(name, read_device, value)
    return value


def processors(name: str, value: Any) -> str:
    """Processors that code is made for, by their names, with commas between them."""
    from mlirt.dialects.processor_files import HOST, read_processor

    def check(one: str) -> None:
        if one != HOST:
            read_processor(one)

    return _names(name, value, "x86-64-v3", check)


def architectures(name: str, value: Any) -> str:
    """Architectures of GPUs that code is made for, with commas between them."""
    from mlirt.builder.gpu_code import check_architecture

    return _names(name, value, "sm_90a", check_architecture)


def _names(name: str, value: Any, example: str, check: Callable[[str], object]) -> str:
    found = names_in(value) if isinstance(value, str) else []
    if not found:
        raise InvalidInputError(f"{name}: expected a name such as {example!r}, or several, got {value!r}")
    for one in found:
        _with_name(name, check, one)
    return ",".join(found)


def systems(name: str, value: Any) -> str:
    """The operating systems that code is made for, by their names with commas."""
    from mlirt.dialects.processor_files import check_system

    return _names(name, value, "linux", check_system)


def layer_precision(value: str) -> None:
    """What a layer can be asked to compute in."""
    from mlirt.dialects.layer_precisions import precision_of

    precision_of(value)


def tactic_source(value: str) -> None:
    """A library whose kernels may be measured."""
    from mlirt.builder.tactics.tactic_sources import features_of_sources

    features_of_sources([value])


def io_type(value: str) -> None:
    """The element type and the formats of an input or an output."""
    from mlirt.builder.io_formats import read_io_type

    read_io_type(value)


def _with_name(name: str, check: Callable[[str], object], value: Any) -> None:
    """Let what a check says begin with the setting that it is about."""
    try:
        check(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from error
