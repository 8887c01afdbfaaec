"""Kernels are written in the kernel language: no other function appends ops by calling the builder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlirt.kernels.lib.builder.block_writer import BlockWriter
from mlirt.kernels.lib.builder.index_arithmetic import IndexArithmetic
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder

ROOT = Path(__file__).parents[2]
_VOCABULARY = ("kernels/lib/builder", "kernels/lib/language", "kernels/lib/loops")
"""What the words of the language are made of: it cannot be written in them."""
_APPENDING = {name for name in vars(IndexArithmetic) if not name.startswith("_")} | {
    "constant", "inline", "insert", "inside", "load", "parallel", "ready", "scalars", "store", "typed", "value",
}  # fmt: skip
"""Methods of builders that append ops."""
_NO_OP = {"index"}  # its numbers are what ops take
_FILES = [
    path
    for path in sorted((ROOT / "kernels").rglob("*.py"))
    if not path.relative_to(ROOT).as_posix().startswith(_VOCABULARY)
]


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of what appends ops, outside of kernel functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and any(ast.unparse(one) == "kernel" for one in node.decorator_list):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _APPENDING - _NO_OP and _is_builder(node.func.value):
                yield node
        yield from _calls(node)


def _is_builder(value: ast.expr) -> bool:
    """Whether an expression is a builder, by what builders are called."""
    if isinstance(value, ast.Call):
        return ast.unparse(value) == "builder()"
    name = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
    return name in ("b", "k", "builder")


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_functions_that_append_ops_are_kernel_functions(path: Path) -> None:
    found = [f"line {one.lineno}: {ast.unparse(one)}" for one in _calls(ast.parse(path.read_text(encoding="utf-8")))]
    assert not found, f"expected words of the kernel language (docs/write-a-kernel.md), not {', '.join(found)}"


def test_methods_are_those_of_builders() -> None:
    assert {name for name in _APPENDING if not hasattr(KernelBuilder, name)} == set()
    assert {"insert", "value", "constant", "inside"} <= vars(BlockWriter).keys()


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("k.add(a, b)", 1),
        ("builder().store(a, b, [k.mul(a, 2)])", 2),
        ("self.k.value(ThreadIdOp())", 1),
        ("k.scalars(f32).add(a, b)", 1),
        ("place(a + b)", 0),
        ("k.buffer(a)", 0),
        ("found.insert(0, a)", 0),
    ],
)
def test_calls_are_found_where_no_kernel_function_is(body: str, count: int) -> None:
    plain, decorated = f"def f(k, a, b):\n    return {body}\n", f"@kernel\ndef f(k, a, b):\n    return {body}\n"
    assert len(list(_calls(ast.parse(plain)))) == count
    assert not list(_calls(ast.parse(decorated)))
