"""Reads files of PDL patterns; what is wrong with one is said with its line."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from xdsl.context import Context
from xdsl.dialects import pdl
from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation

from mlirt.dialects.source_parser import SourceError, SourceMap, parse_source
from mlirt.dialects.verification import verification_errors
from mlirt.errors import InvalidInputError
from mlirt.passes.pdl.translation import Untranslatable, translated
from mlirt.passes.rules import Rule


def read_patterns(path: str, ctx: Context) -> list[Rule]:
    """The patterns of a file as rules; raises `InvalidInputError` where it is missing, malformed or cannot be meant."""
    source = _read(path)
    try:
        module, places = parse_source(ctx, source, path)
    except SourceError as error:
        raise InvalidInputError(f"pass apply-pdl: {error.position}: {error.text}") from error
    for broken in verification_errors(module):
        _refuse(places, broken.op, str(broken))
    patterns = [op for op in module.ops if isinstance(op, pdl.PatternOp)]
    if not patterns:
        raise InvalidInputError(f"pass apply-pdl: {path}: expected at least one pdl.pattern, but there is none")
    rules: list[Rule] = []
    for pattern in sorted(patterns, key=lambda one: -one.benefit.value.data):
        try:
            _check_names(pattern, ctx)
            rules.append(translated(pattern, ctx, str(places.position(pattern))))
        except Untranslatable as error:
            _refuse(places, error.op, str(error))
        except InvalidInputError as error:
            _refuse(places, pattern, str(error))
    return rules


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise InvalidInputError(f"pass apply-pdl: file={path}: {reason}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"pass apply-pdl: file={path}: expected PDL text, but byte {error.start} is no text"
        ) from error


def _refuse(places: SourceMap, op: Operation, message: str) -> NoReturn:
    raise InvalidInputError(f"pass apply-pdl: {places.position(op)}: {message}")


def _check_names(pattern: pdl.PatternOp, ctx: Context) -> None:
    """Refuse ops and properties that do not exist: a pattern of them would silently never match."""
    for op in pattern.walk():
        if not isinstance(op, pdl.OperationOp) or op.opName is None:
            continue
        name = op.opName.data
        kind = ctx.get_optional_op(name)
        if kind is None or issubclass(kind, UnregisteredOp):
            dialect = name.partition(".")[0]
            near = get_close_matches(name, [one.name for one in ctx.loaded_ops if one.name.startswith(dialect)], 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise Untranslatable(op, f"there is no op {name!r}{hint}")
        if issubclass(kind, IRDLOperation):
            known = kind.get_irdl_definition().properties
            for given in op.attributeValueNames:
                if given.data not in known and "." not in given.data:
                    names = ", ".join(sorted(known)) or "none"
                    raise Untranslatable(op, f"{name} has no property {given.data!r}; it has {names}")
