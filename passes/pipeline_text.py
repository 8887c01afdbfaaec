"""Reads pass pipelines as users write them: `fold-constants,fuse-pointwise{max-ops=8 across=true}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, get_type_hints

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, ParameterType

from mlirt.errors import InvalidInputError
from mlirt.passes import registry
from mlirt.passes.options import refusal, spelt

_PASS = re.compile(r"\s*(?P<name>[A-Za-z0-9][\w-]*)\s*(\{(?P<options>(\"[^\"]*\"|[^{}\"])*)\})?\s*(?P<end>,|$)")
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
    position = 0
    while position < len(text.rstrip()):
        match = _OPTION.match(text, position)
        if match is None:
            raise InvalidInputError(f"pass {pass_name}: cannot read options {text!r}: expected 'name=value name=a,b'")
        value = match["value"]
        items = [] if value is None else re.findall(r"\"[^\"]*\"|[^\s,\"]+", value)
        yield match["key"].replace("-", "_"), tuple(_value(item) for item in items)
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
    for key, values in spec.parameters.items():
        _check_kind(pass_class, key, values)
    needed = [one.name for one in fields(pass_class) if one.init and _is_needed(one)]
    missing = [spelt(name) for name in needed if name not in spec.parameters]
    if missing:
        raise InvalidInputError(f"pass {spec.name} needs the option {missing[0]}: {spec.name}{{{missing[0]}=..}}")
    try:
        made = pass_class.from_pass_spec(spec)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"pass {spec.name}: {error}") from error
    for key in spec.parameters:
        wrong = refusal(pass_class, key, getattr(made, key))
        if wrong is not None:
            raise InvalidInputError(f"pass {spec.name}: {wrong}")
    return made


def _is_needed(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _check_kind(pass_class: type[ModulePass], key: str, values: tuple[ParameterType, ...]) -> None:
    """Refuse a value that an option of a plain type cannot have; xDSL would not say which option it was."""
    kind = get_type_hints(pass_class)[key]
    if kind in (int, float, bool, str) and [type(value) for value in values] != [kind]:
        shown = ",".join(map(str, values)) or "nothing"
        raise InvalidInputError(f"pass {pass_class.name}: option {spelt(key)} is {shown}, expected {_KINDS[kind]}")

