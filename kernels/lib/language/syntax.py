"""The syntax tree of a kernel function: found in its file, checked as a whole, and prepared for the reader.

Operators become calls of the words in `operators.py`, as both sides may be values of the run; all else in an expression
is left to Python. Each expression is compiled once.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType

from mlirt.kernels.lib.language.errors import refusal
from mlirt.kernels.lib.language.liveness import annotate, stored_names

_STATEMENTS = (
    ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.While, ast.If, ast.With, ast.FunctionDef,
    ast.Return, ast.Assert, ast.Pass,
)  # fmt: skip
_EXPECTED = "an assignment, a call, `for`, `while`, `if`, `with`, `def`, `return`, `assert` or `pass`"
_NOT_READ = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
REDUCTIONS = ("sum", "max", "min")


@dataclass(frozen=True)
class Code:
    """A function as the reader takes it. `own_names` are those that it assigns: they hide those of other scopes."""

    tree: ast.FunctionDef
    file: str
    own_names: frozenset[str]


@lru_cache(maxsize=256)
def code_at(file: str, line: int, name: str) -> Code:
    """The function that begins, decorators included, on a line of a file."""
    for node in ast.walk(_tree(file, "".join(linecache.getlines(file)))):
        if isinstance(node, ast.FunctionDef) and line in (node.lineno, *(one.lineno for one in node.decorator_list)):
            return prepared(node, file)
    raise refusal(file, line, f"expected the text of the kernel function {name}: it is read from its file")


@lru_cache(maxsize=64)
def _tree(file: str, text: str) -> ast.Module:
    return ast.parse(text, file)


def prepared(tree: ast.FunctionDef, file: str) -> Code:
    """Check a function and those inside of it; raises `KernelLanguageError` for the first thing that cannot be read."""
    _check(tree.body, file, in_function=True)
    annotate(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node is not tree:
            annotate(node)
    return Code(tree, file, frozenset(stored_names(tree.body)))


def _check(body: Sequence[ast.stmt], file: str, *, in_function: bool) -> None:
    for node in body:
        if not isinstance(node, _STATEMENTS):
            raise refusal(file, node.lineno, f"expected {_EXPECTED}, not `{_word(node)}`")
        for target in _targets(node):
            _check_target(target, file)
        if isinstance(node, ast.For | ast.While) and node.orelse:
            raise refusal(file, node.orelse[0].lineno, "expected no `else` of a loop: nothing leaves one early")
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.expr):
                _check_expression(inner, file)
        for inner_body in ("body", "orelse"):
            _check(getattr(node, inner_body, []), file, in_function=in_function)


def _word(node: ast.stmt) -> str:
    return {"AsyncFor": "async for", "Delete": "del", "ImportFrom": "import"}.get(
        type(node).__name__, type(node).__name__.lower()
    )


def _targets(node: ast.stmt) -> Sequence[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For) else []


def _check_target(target: ast.expr, file: str) -> None:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    for part in parts:
        part = part.value if isinstance(part, ast.Starred) else part
        if isinstance(part, ast.Tuple):
            _check_target(part, file)
        elif not isinstance(part, ast.Name | ast.Subscript):
            raise refusal(file, part.lineno, f"expected a name or `memory[index]` before =, not `{ast.unparse(part)}`")


def _check_expression(expression: ast.expr, file: str) -> None:
    for node in ast.walk(expression):
        if isinstance(node, _NOT_READ):
            raise refusal(file, node.lineno, f"expected an expression without `{ast.unparse(node)}`")


def compiled(node: ast.expr, file: str) -> CodeType:
    """An expression as Python evaluates it, with the operators of the language."""
    made: CodeType | None = getattr(node, "compiled", None)
    if made is None:
        tree = ast.fix_missing_locations(ast.Expression(_Operators().visit(deepcopy(node))))
        made = compile(tree, file, "eval")
        setattr(node, "compiled", made)
    return made


class _Operators(ast.NodeTransformer):
    """Turns operators into calls of the words of the language."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        return _call("operate", node.op, self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """`a < b < c` is `a < b and b < c`; `is` and `in` are about Python's objects."""
        if all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return self.generic_visit(node)  # pyright: ignore[reportReturnType]
        sides = [node.left, *node.comparators]
        pairs = [
            _call("operate", op, self.visit(deepcopy(left)), self.visit(deepcopy(right)))
            for op, left, right in zip(node.ops, sides, sides[1:], strict=False)
        ]
        return _joined("And", pairs)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return _joined(type(node.op).__name__, [self.visit(one) for one in node.values])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        return _call("unary", node.op, self.visit(node.operand))

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        sides = [_later(self.visit(side)) for side in (node.body, node.orelse)]
        return _call("choose", None, self.visit(node.test), *sides)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return _call("item", None, self.visit(node.value), self.visit(node.slice))

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        given = node.lower, node.upper, node.step
        parts: list[ast.expr] = [ast.Constant(None) if part is None else self.visit(part) for part in given]
        return ast.Call(ast.Name("slice", ast.Load()), parts, [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`sum(f(i) for i in range(n))` is a reduction over the values of the run."""
        if isinstance(node.func, ast.Name) and node.func.id in REDUCTIONS and len(node.args) == 1 and not node.keywords:
            (given,) = node.args
            if isinstance(given, ast.GeneratorExp) and len(given.generators) == 1 and not given.generators[0].ifs:
                (loop,) = given.generators
                body = ast.ListComp(self.visit(given.elt), [ast.comprehension(loop.target, _ITEMS, [], 0)])
                items = ast.arguments([], [ast.arg("__items__")], None, [], [], None, [])
                return _call("reduce", None, ast.Constant(node.func.id), self.visit(loop.iter), ast.Lambda(items, body))
        return self.generic_visit(node)  # pyright: ignore[reportReturnType]


_ITEMS = ast.Name("__items__", ast.Load())


def _call(word: str, op: ast.AST | None, *operands: ast.expr) -> ast.expr:
    name = [] if op is None else [ast.Constant(type(op).__name__)]
    return ast.Call(ast.Name(f"__{word}__", ast.Load()), [*name, *operands], [])


def _joined(op: str, parts: Sequence[ast.expr]) -> ast.expr:
    """`a and b and c`, from the left; what stands behind is evaluated where that is of interest."""
    first, *rest = parts
    if not rest:
        return first
    return ast.Call(ast.Name("__logic__", ast.Load()), [ast.Constant(op), first, _later(_joined(op, rest))], [])


def _later(node: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), node)
