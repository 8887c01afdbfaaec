"""Reads pass pipelines as users write them: `fold-constants,fuse-pointwise{max-ops=8 across=true}`."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, Union, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ParameterType

from mlirt.errors import InvalidInputError
from mlirt.passes import registry
from mlirt.passes.options import refusal, spelt, spelt_value

_PASS = re.compile(
    rf"\s*(?P<name>{registry.PASS_NAME.pattern})\s*(\{{(?P<options>(\"[^\"]*\"|[^{{}}\"])*)\}})?\s*(?P<end>,|$)"
)
_OPTION = re.compile(
    r"\s*(?P<key>[A-Za-z][\w-]*)\s*(=\s*(?P<value>(\"[^\"]*\"|[^\s,\"]+)(\s*,\s*(\"[^\"]*\"|[^\s,\"=]+)(?![\w-]*=))*))?"
)
_KINDS: dict[Any, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}


def parse_pipeline(text: str) -> tuple[ModulePass, ...]:
    """The passes of a pipeline; raises `InvalidInputError` where the text, a name or an option is wrong."""
    return tuple(make_pass(spec) for spec in parse_specs(text))


def pipeline_text(passes: Iterable[ModulePass]) -> str:
    """The text that `parse_pipeline` reads back."""
    return ",".join(str(pass_.pipeline_pass_spec()) for pass_ in passes)


def parse_specs(text: str) -> Iterator[ArgSpec]:
    """The names and options of a pipeline, without looking the passes up."""
    position, comma = 0, False
    while position < len(text.rstrip()) or comma:
        match = _PASS.match(text, position)
        if match is None:
            if not text[position:].strip(" ,") or text[position:].lstrip().startswith(","):
                raise InvalidInputError(f"a name is missing in the pipeline {text!r}: a comma is between two passes")
            raise InvalidInputError(
                f"the pipeline cannot be read from {text[position : position + 40]!r} on: "
                "expected 'pass-a,pass-b{option=value}'"
            )
        yield ArgSpec(match["name"], dict(_options(match["name"], match["options"] or "")))
        position, comma = match.end(), match["end"] == ","


def _options(pass_name: str, text: str) -> Iterator[tuple[str, tuple[ParameterType, ...]]]:
    position, seen = 0, set[str]()
    while position < len(text.rstrip()):
        match = _OPTION.match(text, position)
        if match is None:
            raise InvalidInputError(f"pass {pass_name}: cannot read options {text!r}: expected 'name=value name=a,b'")
        value = match["value"]
        items = [] if value is None else re.findall(r"\"[^\"]*\"|[^\s,\"]+", value)
        key = match["key"].replace("-", "_")
        if key in seen:
            raise InvalidInputError(f"pass {pass_name}: option {spelt(key)} is given twice")
        seen.add(key)
        yield key, tuple(_value(item) for item in items)
        position = match.end()


def _value(text: str) -> ParameterType:
    if text.startswith('"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def make_pass(spec: ArgSpec) -> ModulePass:
    """The pass of a spec, with its options checked against the fields of its class."""
    pass_class = registry.load(spec.name)
    known = [field.name for field in fields(pass_class) if field.init]
    unknown = [key for key in spec.parameters if key not in known]
    if unknown:
        names = ", ".join(map(spelt, known))
        raise InvalidInputError(f"pass {spec.name} has no option {spelt(unknown[0])!r}; it has {names or 'none'}")
    hints = get_type_hints(pass_class)
    for key, values in spec.parameters.items():
        _check_kind(spec.name, key, hints[key], values)
    given = {key: _wide(hints[key], values) for key, values in spec.parameters.items()}
    needed = [one.name for one in fields(pass_class) if one.init and _is_needed(one)]
    missing = [spelt(name) for name in needed if name not in spec.parameters]
    if missing:
        raise InvalidInputError(f"pass {spec.name} needs the option {missing[0]}: {spec.name}{{{missing[0]}=..}}")
    try:
        made = pass_class.from_pass_spec(ArgSpec(spec.name, given))
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"pass {spec.name}: {error}") from error
    for key in spec.parameters:
        wrong = refusal(pass_class, key, getattr(made, key))
        if wrong is not None:
            raise InvalidInputError(f"pass {spec.name}: {wrong}")
    return made


def _is_needed(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _check_kind(pass_name: str, key: str, hint: Any, values: tuple[ParameterType, ...]) -> None:
    """Refuse a value that an option of this type cannot have; xDSL would not say which option it was."""
    kinds, several = _kinds(hint)
    if not all(kind in _KINDS for kind in kinds):
        return
    legal = all(any(_fits(value, kind) for kind in kinds) for value in values)
    if not legal or (len(values) != 1 and not several):
        shown = ",".join(map(spelt_value, values)) or "nothing"
        expected = " or ".join(_KINDS[kind] for kind in kinds) + (", or several" if several else "")
        raise InvalidInputError(f"pass {pass_name}: option {spelt(key)} is {shown}, expected {expected}")


def _kinds(hint: Any) -> tuple[list[Any], bool]:
    """The types that one value of an option may have, and whether it may have several values."""
    if get_origin(hint) in (Union, types.UnionType):
        parts = [_kinds(part) for part in get_args(hint) if part is not type(None)]
        return [kind for kinds, _ in parts for kind in kinds], any(several for _, several in parts)
    if get_origin(hint) is tuple:
        return [kind for kind in get_args(hint) if kind is not ...], True
    return [hint], False


def _fits(value: ParameterType, kind: Any) -> bool:
    """Whether a value is of a type; a whole number is a number too."""
    return type(value) is kind or (kind is float and type(value) is int)


def _wide(hint: Any, values: tuple[ParameterType, ...]) -> tuple[ParameterType, ...]:
    """Whole numbers as numbers, for an option that takes those alone."""
    kinds, _ = _kinds(hint)
    if float not in kinds or int in kinds:
        return values
    return tuple(float(value) if type(value) is int else value for value in values)
