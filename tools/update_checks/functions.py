"""The functions in printed IR, and the CHECK lines that describe one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

FUNCTION = re.compile(r"^(?P<indent> *)(?P<head>[a-z_]+\.func (?:\w+ )?@(?P<name>[\w$.-]+)\()(?P<rest>.*)$")
_STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
_VALUE = re.compile(r"%[A-Za-z0-9_$.-]+")
_LONG = re.compile(r"dense<[^<>]{60,}>")
_KERNEL = re.compile(r"(@[a-z]\w*_)[0-9a-f]{8}\b")


@dataclass(frozen=True)
class PrintedFunction:
    """A function of a module's text: its name and its lines, without the brace that ends it."""

    name: str
    lines: tuple[str, ...]


def functions_in(text: str) -> list[PrintedFunction]:
    """The functions in their order."""
    lines, found = text.splitlines(), list[PrintedFunction]()
    for number, line in enumerate(lines):
        match = FUNCTION.match(line)
        if match is not None:
            found.append(PrintedFunction(match["name"], tuple(_body(lines[number:], match["indent"]))))
    return found


def _body(lines: Sequence[str], indent: str) -> Iterator[str]:
    yield lines[0]
    if lines[0].endswith("{"):
        for line in lines[1:]:
            if line.rstrip() == f"{indent}}}":
                return
            yield line


def check_lines(function: PrintedFunction, prefix: str) -> list[str]:
    """The CHECK lines of a function: its name, then each line with its values captured or compared."""
    match = FUNCTION.match(function.lines[0])
    assert match is not None
    captures = _Captures()
    named = _KERNEL.sub(r"\1{{[0-9a-f]+}}", match["head"])
    lines = [f"// {prefix}-LABEL: {named}", f"// {prefix}-SAME: {captures.pattern(match['rest'])}"]
    return [*lines, *(f"// {prefix}-NEXT: {captures.pattern(line.strip())}" for line in function.lines[1:])]


@dataclass
class _Captures:
    """The variables that stand for the values of a function: `%h` is `H`, `%0` is `V0`."""

    variables: dict[str, str] = field(default_factory=dict[str, str])

    def pattern(self, line: str) -> str:
        """A line of IR as filecheck shall match it."""
        line = _LONG.sub("dense<...>", line)
        arguments = line.startswith("^")
        results = 0 if arguments else line.find(" = ") if line.startswith("%") else -1
        place, parts = 0, list[str]()
        for piece in _STRING.split(line):
            if piece.startswith('"'):
                parts.append(_escaped(piece))
            else:
                parts.append(self._piece(piece, place, len(line) if arguments else results))
            place += len(piece)
        return "".join(parts).replace("dense<...>", "dense<{{.*}}>")

    def _piece(self, text: str, place: int, defined: int) -> str:
        """A stretch without strings; what stands before the column `defined` is new."""
        parts, end = list[str](), 0
        for match in _VALUE.finditer(text):
            parts.append(_kernels(text[end : match.start()]))
            known = self.variables.get(match[0])
            if known is not None and place + match.start() >= defined:
                parts.append(f"[[{known}]]")
            else:
                parts.append(f"[[{known or self._new(match[0])}:%.*]]")
            end = match.end()
        return "".join([*parts, _kernels(text[end:])])

    def _new(self, value: str) -> str:
        name = re.sub(r"\W", "_", value[1:]).upper()
        name = f"V{name}" if not name[0].isalpha() else name
        while name in self.variables.values():
            name += "_"
        self.variables[value] = name
        return name


def _kernels(text: str) -> str:
    """Text in which the names of kernels, which follow from all that is in them, may end with other digits."""
    parts, end = list[str](), 0
    for match in _KERNEL.finditer(text):
        parts += [_escaped(text[end : match.start()] + match[1]), "{{[0-9a-f]+}}"]
        end = match.end()
    return "".join([*parts, _escaped(text[end:])])


def _escaped(text: str) -> str:
    """Brackets that filecheck would take for its own."""
    return re.sub(r"\[\[|\{\{", lambda match: "{{" + "".join(f"\\{letter}" for letter in match[0]) + "}}", text)
