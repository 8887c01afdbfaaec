"""Rules applied to IR text, with what they said: for tests of patterns and of the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mlirt.passes.remarks import Remarks, recording
from mlirt.passes.rules import Pattern, Rule, RulePass
from mlirt.passes.rules.driver import apply_rules
from mlirt.tools.input_files import InputFile, load_text, new_context


@dataclass(frozen=True)
class RulesUnderTestPass(RulePass):
    """Whatever a test applies."""

    name = "rules-under-test"


@dataclass(frozen=True)
class Outcome:
    """IR after rules, how often one was applied, and the remarks without the name of the pass."""

    module: ModuleOp
    applied: int
    remarks: list[str]

    def ops(self) -> list[Operation]:
        """The ops of the first function but constants and the return."""
        (function, *_) = self.module.ops
        found = list(function.regions[0].block.ops)
        return [one for one in found if one.name not in ("trt.constant", "func.return")]

    def names(self) -> list[str]:
        return [one.name.removeprefix("trt.") for one in self.ops()]


def applied_to(text: str, *rules: Rule, listens: bool = True) -> Outcome:
    """The outcome of rules on a module; `text` may be the lines of a body of `main(%x: tensor<2x3xf32>)`."""
    if "func.func" not in text:
        text = (
            f"func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {{\n{text}\nfunc.return %y : tensor<2x3xf32>\n}}"
        )
    ctx = new_context()
    module, _ = load_text(ctx, text, InputFile("a.mlir"))
    remarks = Remarks() if listens else None
    with recording(remarks):
        if remarks is None:
            count = apply_rules(rules, RulesUnderTestPass(), ctx, module)
        else:
            with remarks.running("rules-under-test", module):
                count = apply_rules(rules, RulesUnderTestPass(), ctx, module)
    module.verify()
    said = [] if remarks is None else [str(one).removeprefix("rules-under-test: ") for one in remarks.remarks]
    return Outcome(module, count, said)


def matches(pattern: Pattern, text: str) -> dict[str, Any] | None:
    """What the names of a pattern stand for where it first matches; None where it does not."""
    found: list[dict[str, Any]] = []

    def rewrite(m: Any) -> str:
        if not found:
            found.append({name: m.captured(name) for name in pattern.names()})
        return "only looked at"

    applied_to(text, Rule(pattern, rewrite, "look"))
    return found[0] if found else None


def declines(pattern: Pattern, text: str) -> list[str]:
    """The remarks of a rule that would leave the root out, without the layers' names."""
    outcome = applied_to(text, Rule(pattern, lambda: "it matched", "look"))
    return [one.partition(": ")[0] + ": " + one.split(": ", 2)[2] for one in outcome.remarks]
