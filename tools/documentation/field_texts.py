"""What stands below the fields of a dataclass in its source."""

from __future__ import annotations

import ast
import inspect
import textwrap


def field_texts(of: type) -> dict[str, str]:
    """The docstring of each field that has one, by its name, those of the classes before it included."""
    found: dict[str, str] = {}
    for one in reversed(of.__mro__[:-1]):
        tree = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0]
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                found[field.target.id] = inspect.cleandoc(str(ast.literal_eval(text.value)))
    return found
