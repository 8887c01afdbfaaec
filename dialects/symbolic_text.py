"""Symbolic dimensions as text, `2*h + 1`, and in the prefix form that plan files hold."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from mlirt.dialects.symbolic import FUNCTIONS, Dim, Symbol, broadcast_length, floor_div, maximum, minimum, modulo, sym

Json: TypeAlias = "int | str | list[Json]"


def to_json(dimension: Dim) -> Json:
    """The prefix form that plan files hold: an int, a symbol, or `[op, a, b]`."""
    if isinstance(dimension, int):
        return dimension
    total: Json | None = None
    for monomial, coefficient in dimension.terms:
        term: Json | None = None if coefficient == 1 and monomial else coefficient
        for atom in monomial:
            factor = atom.name if isinstance(atom, Symbol) else [atom.function, to_json(atom.left), to_json(atom.right)]
            term = factor if term is None else ["*", term, factor]
        assert term is not None
        total = term if total is None else ["+", total, term]
    assert total is not None
    return total


_TOKEN = re.compile(r"\s*(\d+|//|[A-Za-z_?][\w.?:/@-]*?(?=$|[^\w.?:@-]|//)|`[^`]*`|[-+*%(),])")


@lru_cache(maxsize=65536)
def parse(text: str) -> Dim:
    """The dimension written as `text`, for example `2*h + 1`, `(h - 1)//2` or `max(a, 4)`; raises `ValueError`."""
    parser = _Parser(text)
    try:
        result = parser.sum()
    except ZeroDivisionError as error:
        raise ValueError(f"{text!r} is not a dimension: it divides by zero") from error
    except RecursionError as error:
        raise ValueError(f"{text[:80]!r} is not a dimension: it is nested too deeply") from error
    parser.end()
    return result


_FUNCTIONS = {"max": maximum, "min": minimum, "broadcast": broadcast_length}


class _Parser:
    """Recursive descent over `sum := product (('+'|'-') product)*`."""

    def __init__(self, text: str):
        self.text = text
        self.tokens: list[str] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ValueError(f"{text!r} is not a dimension: unexpected {text[position:].strip()[:10]!r}")
            self.tokens.append(match.group(1))
            position = match.end()
        self.next = 0

    def peek(self) -> str:
        return self.tokens[self.next] if self.next < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise ValueError(
                f"{self.text!r} is not a dimension: expected {expected or 'a value'}, got {token or 'the end'}"
            )
        self.next += 1
        return token

    def end(self) -> None:
        if self.peek():
            raise ValueError(f"{self.text!r} is not a dimension: unexpected {self.peek()!r}")

    def sum(self) -> Dim:
        result = self.product()
        while self.peek() in ("+", "-"):
            result = result + self.product() if self.take() == "+" else result - self.product()
        return result

    def product(self) -> Dim:
        result = self.atom()
        while self.peek() in ("*", "//", "%"):
            operator = self.take()
            right = self.atom()
            if right == 0 and operator != "*":
                raise ZeroDivisionError
            result = (
                result * right
                if operator == "*"
                else floor_div(result, right)
                if operator == "//"
                else modulo(result, right)
            )
        return result

    def atom(self) -> Dim:
        token = self.take()
        if token == "-":
            return self.atom() * -1
        if token == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if token.isdigit():
            return int(token)
        if token in FUNCTIONS and self.peek() == "(":
            self.take("(")
            left = self.sum()
            self.take(",")
            right = self.sum()
            self.take(")")
            return _FUNCTIONS[token](left, right)
        if token[0].isalpha() or token[0] in "_?`":
            return sym(token.strip("`"))
        raise ValueError(f"{self.text!r} is not a dimension: unexpected {token!r}")
