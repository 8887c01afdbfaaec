"""Modules of a corpus: files with `Model`, `get_init_inputs()` and `get_inputs()`, at sizes that a CPU can run."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# The largest value of a size by a part of its name; the first that fits counts. Others are at most MAX_SIZE, and those
# of one small letter, which come by fours and fives in products of tensors, at most MAX_OF_LETTER.
LIMITS = {"batch": 2, "height": 64, "width": 64, "depth": 16, "length": 64, "seq": 64, "dim1": 64, "dim2": 64}
MAX_SIZE, MAX_OF_LETTER = 1024, 128


@dataclass(frozen=True)
class Case:
    """A module for inference and the inputs of one call."""

    name: str
    module: Any
    inputs: list[Any]
    make_inputs: Callable[[], list[Any]]

    def filled_on(self, device: str, *, half: bool = False) -> list[Any]:
        """Inputs with random values of seed 0, made on a device."""
        import torch

        torch.manual_seed(0)
        with torch.device(device):
            made = [_moved(one, device) for one in self.make_inputs()]
        return [_half(one) for one in made] if half else made


def load(path: Path, *, reduced: bool = True, filled: bool = True) -> Case:
    """The module of a file with the weights and inputs of seed 0; whatever it raises is the file's own.

    With `filled=False` inputs have no values, only types and shapes: memory that is never touched.
    """
    import torch

    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    names: dict[str, Any] = {"__name__": path.stem}
    exec(compile(ast.fix_missing_locations(_Reduced().visit(tree)) if reduced else tree, str(path), "exec"), names)
    torch.manual_seed(0)
    module = names["Model"](*names["get_init_inputs"]()).eval()
    return Case(
        path.stem, module, list(names["get_inputs"]()) if filled else _empty(names["get_inputs"]), names["get_inputs"]
    )


def halved(case: Case) -> Case:
    """The module and its inputs in half precision, as who wants that from PyTorch does it."""
    return replace(case, module=case.module.half(), inputs=[_half(one) for one in case.inputs])


def _half(one: Any) -> Any:
    return one.half() if hasattr(one, "is_floating_point") and one.is_floating_point() else one


def _moved(one: Any, device: str) -> Any:
    return one.to(device) if hasattr(one, "is_floating_point") else one


def _empty(make: Callable[[], Any]) -> list[Any]:
    import torch

    try:
        with torch.device("meta"):
            shaped = list(make())
    except (RuntimeError, NotImplementedError):  # values that shapes or other values depend on
        return list(make())
    return [torch.empty_like(one, device="cpu") if hasattr(one, "is_floating_point") else one for one in shaped]


class _Reduced(ast.NodeTransformer):
    """Sizes that stand at the top of the file as numbers; those inside of functions and classes stay."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """As it is."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """As it is."""
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Smaller numbers."""
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            for name, value in pairs:
                number = _number(value)
                if isinstance(name, ast.Name) and number is not None and number > (most := limit(name.id)):
                    _replace(node, value, ast.Constant(most))
        return node


def _number(node: ast.expr) -> int | None:
    """A whole number, or a product of some, as `16 * 1024`."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    left, right = _number(node.left), _number(node.right)
    return None if left is None or right is None else left * right


def _replace(node: ast.Assign, old: ast.expr, new: ast.expr) -> None:
    if node.value is old:
        node.value = new
    elif isinstance(node.value, ast.Tuple):
        node.value.elts = [new if one is old else one for one in node.value.elts]


def limit(name: str) -> int:
    """The largest value of a size."""
    if len(name) == 1 and name.islower():
        return MAX_OF_LETTER
    return next((most for part, most in LIMITS.items() if part in name.lower()), MAX_SIZE)
