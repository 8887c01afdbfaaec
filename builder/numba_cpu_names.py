"""Names of generated source that stand for one value wherever they are read, and so need no memory in LLVM IR."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence


def single_names(function: ast.FunctionDef) -> frozenset[str]:
    """The names that a function assigns in one place, and reads behind it in the same block alone, or in blocks there.

    Parameters are assigned in front of the function's block, the variable of a `for` in front of its body.
    """
    found = _Names()
    parameters = [parameter.arg for parameter in function.args.args]
    found.assigned.update(parameters)
    found.block(function.body, parameters)
    return frozenset(name for name, count in found.assigned.items() if count == 1 and found.is_in_sight(name))


class _Names:
    """Where a function reads names, in the order of the source, and from where to where each is in sight."""

    def __init__(self) -> None:
        self.assigned = Counter[str]()
        self._reads: dict[str, list[int]] = {}
        self._sight: dict[str, tuple[int, int]] = {}
        self._count = 0

    def is_in_sight(self, name: str) -> bool:
        """Whether each read of a name lies where its last assignment is in sight."""
        start, end = self._sight[name]
        return all(start <= at < end for at in self._reads.get(name, ()))

    def block(self, statements: Sequence[ast.stmt], names: Sequence[str] = ()) -> None:
        """Note what a block reads and assigns; `names` are assigned in front of it."""
        starts = dict.fromkeys(names, self._count)
        for statement in statements:
            if isinstance(statement, ast.AugAssign):
                self._read(statement.value)
                self._change(statement.target)
            elif isinstance(statement, ast.Assign):
                self._read(statement.value)
                for target in statement.targets:
                    starts |= dict.fromkeys(self._targets(target), self._count)
            elif isinstance(statement, ast.For):
                self._read(statement.iter)
                self.block(statement.body, self._targets(statement.target))
            elif isinstance(statement, ast.If | ast.While):
                self._read(statement.test)
                self.block(statement.body)
                self.block(statement.orelse)
            else:
                self._read(statement)
        self._sight |= {name: (start, self._count) for name, start in starts.items()}

    def _targets(self, target: ast.expr) -> list[str]:
        """The names that are assigned, which are counted; places in memory are only read."""
        if isinstance(target, ast.Tuple):
            return [name for one in target.elts for name in self._targets(one)]
        if not isinstance(target, ast.Name):
            self._read(target)
            return []
        self.assigned[target.id] += 1
        return [target.id]

    def _change(self, target: ast.expr) -> None:
        """An assignment that reads its name has another one before it."""
        for name in self._targets(target):
            self.assigned[name] += 1
            self._sight.setdefault(name, (0, 0))

    def _read(self, node: ast.AST) -> None:
        for name in ast.walk(node):
            if isinstance(name, ast.Name):
                self._reads.setdefault(name.id, []).append(self._count)
                self._count += 1
