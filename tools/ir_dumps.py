"""Prints the IR around passes, in MLIR's way: on standard error, under a header that is a comment."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.dialects.xdsl_compat import module_text


@dataclass
class IrDumps:
    """What to print: before and after passes of these names, after all, after those that changed something."""

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    after_all: bool = False
    after_change: bool = False
    debuginfo: bool = False
    generic: bool = False
    _previous: str = field(default="", init=False)

    def is_wanted(self) -> bool:
        return bool(self.before or self.after or self.after_all or self.after_change)

    def before_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        if pass_.name in self.before:
            self._print(f"IR Dump Before {pass_.name}", self._text(module))
        if self.after_change:
            self._previous = self._text(module)

    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        named = self.after_all or pass_.name in self.after
        if not named and not self.after_change:
            return
        text = self._text(module)
        if named or text != self._previous:
            self._print(f"IR Dump After {pass_.name}", text)

    def _text(self, module: ModuleOp) -> str:
        return module_text(module, generic=self.generic, debuginfo=self.debuginfo)

    def _print(self, title: str, text: str) -> None:
        print(f"// -----// {title} //----- //\n{text}", file=sys.stderr)
