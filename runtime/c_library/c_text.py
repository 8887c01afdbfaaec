"""C source text: string literals and arrays of initializers."""

from collections.abc import Iterable, Sequence

_PLAIN = frozenset(range(0x20, 0x7F)) - set(b'\\"?')
_LINE = 118


def literal(text: str) -> str:
    """A string literal of the UTF-8 bytes of a text."""
    return '"' + "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in text.encode()) + '"'


def optional_literal(text: str) -> str:
    """The same, or NULL for an empty text."""
    return literal(text) if text else "NULL"


def whole(number: int) -> str:
    """An int64_t constant."""
    return "INT64_MIN" if number == -(1 << 63) else f"INT64_C({number})" if abs(number) >= 1 << 31 else str(number)


def array(kind: str, name: str, items: Iterable[str]) -> str:
    """A constant array of this file; one that is empty has an element that nothing reads."""
    lines = [""]
    for item in items:
        if len(lines[-1]) + len(item) > _LINE:
            lines.append("")
        lines[-1] += f"{item}, "
    body = "\n".join(f"  {line.rstrip()}" for line in lines if line)
    return f"static const {kind}{name}[] = {{\n{body or '  {0}'}\n}};\n"


def record(*fields: object) -> str:
    """The initializer of a structure."""
    return "{" + ", ".join(map(str, fields)) + "}"


def numbers(name: str, values: Sequence[int]) -> str:
    """An array of 32-bit numbers."""
    return array("int32_t ", name, map(str, values)) if values else f"static const int32_t {name}[] = {{0}};\n"
