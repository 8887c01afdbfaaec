"""Changes of IR texts: words, numbers, lines and characters, and what lexers and parsers have trouble with."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

Mutation: TypeAlias = "Callable[[str, random.Random, Sequence[str]], str]"

_WORD = re.compile(r"[\w.$-]+|[%@#!^][\w.$-]+|->|\S")
_NUMBER = re.compile(r"(?<![\w%@#!^$.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_NUMBERS = (
    "0", "1", "-1", "2", "7", "255", "4096", "8388608", "2147483648", "9223372036854775807", "-9223372036854775808",
    "99999999999999999999999", "1e400", "1.5", "-0.0", "0x7FC00000", "0x" + "F" * 400, "1" * 5000, "1.", "nan", "inf",
)  # fmt: skip
_PIECES = (
    '"', '"\\', '"\\0', "(", ")", "<", ">", "[", "]", "{", "}", ",", ":", "->", "=", "%", "@", "#", "!", "^", "?", "*",
    "x", "//", "\n", "\0", "\t", "é", "²", "-", "...", "{-#", "#-}", "@\"", "loc(", "dense<", "tensor<", "memref<",
    "array<i64:", "affine_map<(d0) -> (", "#trt.", "!trt.", "unit", "true", "none", "index", "i0",
    "i99999999", "f8E4M3FN", "vector<",
)  # fmt: skip
_LONG: tuple[Callable[[int], str], ...] = (
    lambda n: '"' + "a" * n,
    lambda n: '"' + "\\n" * n,
    lambda n: "[" * n,
    lambda n: "(" * n,
    lambda n: "{a = " * n,
    lambda n: "tensor<" * n,
    lambda n: "module {" * n,
    lambda n: "1" * n,
    lambda n: "0." + "3" * n,
    lambda n: "// " + "x" * n + "\n",
    lambda n: " \n\t" * n,
    lambda n: "%" + "v" * n,
    lambda n: "tensor<" + "1x" * n + "f32>",
    lambda n: "affine_map<(d0) -> (" + "d0 + " * n + "d0)>",
    lambda n: "affine_map<(d0) -> (" + "(d0 + " * n,
    lambda n: "dense<" + "[" * n + "1" + "]" * n + "> : tensor<1xf32>",
    lambda n: "-" * n,
    lambda n: "#" + "a." * n,
)


def mutated(text: str, seed: int, others: Sequence[str]) -> str:
    """The text with one to five changes; `others` are texts to take words from."""
    dice = random.Random(seed)
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3, 5))):
        try:
            text = dice.choice(_MUTATIONS)(text, dice, others)
        except (IndexError, ValueError):
            continue  # there is nothing of the kind in this text
    return text


def _word(text: str, dice: random.Random, others: Sequence[str]) -> str:
    """Remove a word, repeat it, or put another one in its place, from this text or another."""
    found = dice.choice(list(_WORD.finditer(text)))
    source = text if dice.random() < 0.6 else dice.choice(others)
    other = dice.choice(_WORD.findall(source))
    fresh = dice.choice(("", f"{found[0]} {found[0]}", other, other, f"{found[0]} {other}"))
    return text[: found.start()] + fresh + text[found.end() :]


def _number(text: str, dice: random.Random, others: Sequence[str]) -> str:
    found = dice.choice(list(_NUMBER.finditer(text)))
    return text[: found.start()] + dice.choice(_NUMBERS) + text[found.end() :]


def _dimension(text: str, dice: random.Random, others: Sequence[str]) -> str:
    """Another length, or an unknown one, in a tensor's type."""
    found = dice.choice(list(re.finditer(r"(?<=[<x])(\d+|\?)(?=x)", text)))
    return (
        text[: found.start()] + dice.choice(("?", "0", "1", "3", "17", "8388608", "2147483648")) + text[found.end() :]
    )


def _swap(text: str, dice: random.Random, others: Sequence[str]) -> str:
    """Two words change places."""
    one, two = sorted(dice.sample(list(_WORD.finditer(text)), 2), key=lambda word: word.start())
    return text[: one.start()] + two[0] + text[one.end() : two.start()] + one[0] + text[two.end() :]


def _line(text: str, dice: random.Random, others: Sequence[str]) -> str:
    """Remove a line, repeat it, move it, or bring one from another text."""
    lines = text.splitlines(keepends=True)
    at, how = dice.randrange(len(lines)), dice.randrange(4)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines.insert(at, lines[at])
    elif how == 2:
        lines.insert(dice.randrange(len(lines)), lines.pop(at))
    else:
        lines.insert(at, dice.choice(dice.choice(others).splitlines(keepends=True)))
    return "".join(lines)


def _character(text: str, dice: random.Random, others: Sequence[str]) -> str:
    at = dice.randrange(len(text))
    return (
        text[:at]
        + dice.choice(("", dice.choice(_PIECES), chr(dice.randrange(32, 127))))
        + text[at + dice.randrange(2) :]
    )


def _long(text: str, dice: random.Random, others: Sequence[str]) -> str:
    """Something that repeats, at a place between words."""
    at = dice.choice(list(_WORD.finditer(text))).start()
    return text[:at] + dice.choice(_LONG)(dice.choice((30, 300, 3000, 30000))) + text[at:]


def _cut(text: str, dice: random.Random, others: Sequence[str]) -> str:
    return text[: dice.randrange(len(text))]


_MUTATIONS: tuple[Mutation, ...] = (
    _word, _word, _word, _number, _number, _dimension, _dimension, _swap, _line, _line, _character, _character,
    _long, _cut,
)  # fmt: skip
