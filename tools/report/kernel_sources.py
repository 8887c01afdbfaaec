"""Finds the text of each kernel in the Python source that `rt-opt -t` printed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from mlirt.errors import InvalidInputError


def kernel_sources(text: str, kernels: Iterable[str]) -> dict[str, str]:
    """For each kernel its function, after the functions that it is made of; kernels that are not there are left out."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise InvalidInputError(
            f"line {error.lineno} of the source is no Python: expected what rt-opt -t prints"
        ) from error
    lines = text.splitlines()
    found: dict[str, str] = {}
    for kernel in kernels:
        pieces = [
            "\n".join(lines[_first_line(node, lines) - 1 : node.end_lineno])
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and (node.name == kernel or node.name.startswith(f"{kernel}_"))
        ]
        if pieces:
            found[kernel] = "\n\n\n".join(pieces)
    return found


def _first_line(node: ast.FunctionDef, lines: Sequence[str]) -> int:
    """Where the comment in front of a function begins."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    while first > 1 and lines[first - 2].startswith("#"):
        first -= 1
    return first
