"""Which names a loop or a branch of a kernel function gives on: those that it assigns and that are read later.

The analysis goes backwards over the statements. Each `for`, `while`, `if` and `with` gets an attribute `gives_on`: the
names in the order in which they are assigned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any


def annotate(function: ast.FunctionDef) -> None:
    """Note on each loop and branch of a function, not of those inside of it, what it gives on."""
    inner = {name for node in _nested(function.body) for name in _loads([node])}
    _live(function.body, inner, inner)


def gives_on(node: ast.stmt) -> Sequence[str]:
    """The names that a loop or a branch assigns and that are read later."""
    return getattr(node, "gives_on")


def stored_names(body: Iterable[ast.AST]) -> list[str]:
    """The names that statements assign, in order; nested functions assign names of their own."""
    found: dict[str, None] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = None
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = None
        elif not isinstance(node, ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            found |= dict.fromkeys(stored_names(ast.iter_child_nodes(node)))
    return list(found)


def _loads(nodes: Iterable[ast.AST]) -> set[str]:
    names = [one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)]
    return {one.id for one in names if isinstance(one.ctx, ast.Load)}


def _nested(body: Iterable[ast.AST]) -> list[ast.AST]:
    return [one for node in body for one in ast.walk(node) if isinstance(one, ast.FunctionDef)]


def _live(body: Sequence[ast.stmt], after: set[str], always: set[str]) -> set[str]:
    """The names that are read from the start of the statements on, if those of `after` are read behind them."""
    live = after
    for node in reversed(body):
        live = _before(node, live, always) | always
    return live


def _before(node: ast.stmt, after: set[str], always: set[str]) -> set[str]:
    if isinstance(node, ast.For | ast.While):
        return _before_loop(node, after, always)
    if isinstance(node, ast.If):
        _note(node, [*node.body, *node.orelse], after)
        return _loads([node.test]) | _live(node.body, after, always) | _live(node.orelse, after, always)
    if isinstance(node, ast.With):
        _note(node, node.body, after)
        return _loads(item.context_expr for item in node.items) | _live(node.body, after, always)
    if isinstance(node, ast.FunctionDef):
        return after - {node.name}
    stored = set(stored_names([node]))
    read = _loads([node])
    if isinstance(node, ast.AugAssign):
        read |= stored
    return (after - stored) | read


def _before_loop(node: ast.For | ast.While, after: set[str], always: set[str]) -> set[str]:
    """What one iteration reads, another one may have assigned."""
    is_for = isinstance(node, ast.For)
    targets = set(stored_names([node.target])) if is_for else set[str]()
    live = after if is_for else after | _loads([node.test])
    while not (read := _live(node.body, live, always) - targets) <= live:
        live = live | read
    _note(node, node.body, live)
    return live | _loads([node.iter] if is_for else [node.test])


def _note(node: ast.stmt, body: Sequence[ast.stmt], after: set[str]) -> None:
    names: Any = tuple(name for name in stored_names(body) if name in after)
    setattr(node, "gives_on", names)
