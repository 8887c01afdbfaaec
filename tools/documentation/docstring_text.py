"""Turns the docstring of an op, an attribute or a pass into Markdown: paragraphs, numbered constraints, an example."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

# Numbers of rows of docs/tensorrt-features.md.
_ROW_NUMBERS = re.compile(r"\s*\((?:features? \d[^()]*|tensorrt-features\.md#\d[^()]*|\d+\.\d+[a-z][^()]*)\)")
_CONSTRAINT = re.compile(r"\bC(\d+):\s+")


@dataclass(frozen=True)
class DocstringText:
    """The parts of a docstring; `example` is text of the IR, empty where there is none."""

    body: str
    constraints: tuple[str, ...]
    example: str


def parse_docstring(docstring: str) -> DocstringText:
    """Split a docstring into its text, its constraints and its example."""
    head, _, example = _ROW_NUMBERS.sub("", textwrap.dedent(docstring)).partition("\nExample:")
    paragraphs: list[str] = []
    constraints: list[str] = []
    for paragraph in re.split(r"\n\s*\n", head.strip()):
        text, *numbered = _CONSTRAINT.split(paragraph)
        pairs = zip(numbered[::2], numbered[1::2], strict=True)
        constraints += (f"**C{number}** {_escape(_one_line(sentence))}" for number, sentence in pairs)
        if text.strip():
            paragraphs.append(_escape(text.strip()))
    return DocstringText("\n\n".join(paragraphs), tuple(constraints), _example(example))


def to_markdown(docstring: str) -> str:
    """The whole docstring as Markdown."""
    parts = parse_docstring(docstring)
    blocks = [parts.body, "\n".join(f"- {text}" for text in parts.constraints)]
    if parts.example:
        blocks.append(f"```mlir\n{parts.example}\n```")
    return "\n\n".join(block for block in blocks if block)


def first_sentence(docstring: str) -> str:
    """The first line of a docstring, for tables."""
    return _escape(_ROW_NUMBERS.sub("", docstring.strip().split("\n\n")[0]).replace("\n", " "))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _example(text: str) -> str:
    """The IR of an example: what stands in backticks, else an indented block."""
    if (start := text.find("`")) < 0:
        return textwrap.dedent(text).strip("\n").rstrip()
    return "\n".join(line.strip() for line in text[start + 1 : text.rfind("`")].splitlines())


def _escape(text: str) -> str:
    """Stars are products here, never emphasis, and `<` opens no tag; code in backticks and tables stays as it is."""
    pieces = text.split("`")
    pieces[::2] = (piece.replace("*", "\\*").replace("<", "&lt;") for piece in pieces[::2])
    return "`".join(pieces)
