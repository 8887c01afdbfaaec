"""Applies rules until none matches any more: what a pass does that consists of rules."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Container, Iterable, Sequence
from functools import cache
from typing import Any, ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.locations import name_of
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.verification import first_lines
from mlirt.errors import CompileError, InvalidInputError
from mlirt.passes.remarks import applied, declined, missed, recorder
from mlirt.passes.rules.layers import Layer
from mlirt.passes.rules.match import Match
from mlirt.passes.rules.rule import Outcome, Rule
from mlirt.passes.rules.search import Search

# More rewrites than this for each op of the network, and as many more for small ones, are a rule without end.
_REWRITES_PER_OP = 8
_REWRITES = 64
_NAME = re.compile(r"\{(\w+)\}")


class RulePass(ModulePass):
    """A pass that consists of rules: those that its class body defines with `@rule(..)`, and those in `rules`.

    At each op the first rule that matches is applied; the ops that it makes, and those around, are looked at again,
    unless `again` is False: then there is one sweep over what is there. Blocks inside of loops and branches come first.
    """

    rules: ClassVar[Sequence[Rule]] = ()
    again: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(rules_of(type(self)), self, ctx, op, again=self.again)


@cache
def rules_of(pass_class: type[RulePass]) -> tuple[Rule, ...]:
    """The rules of a pass in order, those of its bases first.

    Raises `InvalidInputError` where `rules` is a rule alone.
    """
    if isinstance(cast("object", pass_class.rules), Rule):
        raise InvalidInputError(f"pass {pass_class.name}: rules: expected a tuple of rules, such as (Rule(..),)")
    bodies = [vars(one).values() for one in reversed(pass_class.__mro__)]
    return (*(one for body in bodies for one in body if isinstance(one, Rule)), *pass_class.rules)


def apply_rules(rules: Sequence[Rule], pass_: ModulePass, ctx: Context, module: ModuleOp, *, again: bool = True) -> int:
    """Apply rules to all blocks of tensors; returns how often one has been applied.

    Without `again` each op that is there is looked at once, and what rules make is not. Raises `CompileError` where
    there is no end to it.
    """
    inner_first = sorted(tensor_blocks(module), key=_depth, reverse=True)
    return sum(Rewriting(rules, pass_, ctx, block, again).run() for block in inner_first)


def _depth(block: Block) -> int:
    """How many branches and loops a block is in."""
    depth, holder = 0, block.parent_op()
    while holder is not None:
        depth, holder = depth + 1, holder.parent_op()
    return depth


class Rewriting:
    """Rules at work in one block."""

    def __init__(
        self, rules: Sequence[Rule], pass_: ModulePass, ctx: Context, block: Block, again: bool = True
    ) -> None:
        self.pass_, self.ctx, self.block, self.again = pass_, ctx, block, again
        self.by_class: dict[type[Operation], list[tuple[Rule, Layer]]] = {}
        self.all = [(one, root) for one in rules for root in one.roots]
        self.analyses: dict[Any, Any] = {}
        self.waiting: deque[Operation] = deque()
        self.is_waiting: set[int] = set()
        self.listens = recorder() is not None
        self.last = ""
        self.left: dict[Operation, str] = {}
        """Ops at which no rule could be applied, as far as somebody wants to know why; with what a rewrite said."""

    def run(self) -> int:
        """Look at each op in order, then at what has changed; returns how many rules have been applied."""
        count, op = 0, self.block.first_op
        while op is not None:
            self._look_at(op)
            count, op = count + 1, op.next_op
        most, done = _REWRITES + _REWRITES_PER_OP * count, 0
        while self.waiting:
            op = self.waiting.popleft()
            self.is_waiting.discard(id(op))
            if op.parent is self.block and (used := self._rewrite(op)) is not None:
                done += 1
                if done > most:
                    raise CompileError(_without_end(used, done, self.last))
        for op, said in self.left.items():
            if op.parent is self.block:
                self._explain(op, said)
        return done

    def _look_at(self, op: Operation) -> None:
        if self._rules_for(type(op)) and id(op) not in self.is_waiting:
            self.is_waiting.add(id(op))
            self.waiting.append(op)

    def _look_again(self, op: Operation) -> None:
        """At once: an op that changes in place is ready before others that read it are looked at."""
        if id(op) in self.is_waiting:
            self.waiting.remove(op)
        self.is_waiting.add(id(op))
        self.waiting.appendleft(op)

    def _rules_for(self, kind: type[Operation]) -> list[tuple[Rule, Layer]]:
        found = self.by_class.get(kind)
        if found is None:
            found = [(one, root) for one, root in self.all if issubclass(kind, root.kinds)]
            self.by_class[kind] = found
        return found

    def _rewrite(self, op: Operation) -> Rule | None:
        """Apply the first rule that matches at an op, and give it back."""
        said, search = "", None
        for rule, root in self._rules_for(type(op)):
            if not root.may_be(op):
                continue
            search = search or Search(op, self.ctx, analyses=self.analyses)
            is_done, reason = self._apply(rule, root, search)
            if is_done:
                return rule
            said = said or reason
        if self.listens:
            self.left[op] = said
        return None

    def _apply(self, rule: Rule, root: Layer, search: Search) -> tuple[bool, str]:
        """Whether a rule has been applied at the root of a search, or why its rewrite declines."""
        said = ""

        def rewrite() -> bool:
            nonlocal said
            m = Match(search)
            reason = self._exchange(m, self._result(rule, m))
            if reason is not None:
                said = said or self._filled_in(reason, m)
                m.undo()
            return reason is None

        return root.match_op(search.root, search, lambda: search.readers_are_inside(rewrite)), said

    def _result(self, rule: Rule, m: Match) -> Outcome:
        try:
            found: Any = rule.result(m, self.pass_)
        except VerifyException as error:
            raise CompileError(f"rule {rule.called()} at {name_of(m.root)}: {first_lines(error)}") from error
        if found is None or isinstance(found, str | Operation | SSAValue) or _are_values(found):
            return cast("Outcome", found)
        raise CompileError(
            f"rule {rule.called()} at {name_of(m.root)}: its rewrite gave {found!r}, expected an op, a value or "
            "several, or a text that says why not"
        )

    def _exchange(self, m: Match, outcome: Outcome) -> str | None:
        """Put an outcome in the place of what matched; says why it cannot be."""
        if outcome is None or isinstance(outcome, str):
            return outcome or ""
        values = list(outcome.results) if isinstance(outcome, Operation) else _listed(outcome)
        types = [value.type for value in values], [result.type for result in m.replaced.results]
        if types[0] != types[1]:
            return f"the new result would be {_spelt(types[0])}, not {_spelt(types[1])}"
        is_replaced = outcome is not m.replaced and (not values or values != list(m.replaced.results))
        one = m.about or _new_layer(m, values)
        applied(one, m.note or ("" if m.made or not is_replaced else "it is left out"))
        self.last = name_of(one)
        around = [*m.made, *(use.operation for value in m.replaced.results for use in value.uses)]
        if is_replaced:
            _replace(m, values)
        _erase_unread(m, {value.owner for value in values} if is_replaced else {m.replaced})
        for one in (*around, *_producers(values)) if self.again else ():
            self._look_at(one)
        if self.again and not is_replaced:
            self._look_again(m.root)
        return None

    def _explain(self, op: Operation, said: str) -> None:
        """Say why the rule that came farthest does not apply here."""
        reasons, near = [said] if said else [], ""
        for _, root in self._rules_for(type(op)):
            search = Search(op, self.ctx, explains=True)
            root.match_op(op, search, lambda: search.readers_are_inside(search.weigh))
            if (reason := search.reason()) is not None:
                reasons.append(reason)
            near = near or search.near_miss() or ""
        if reasons:
            declined(op, reasons[0])
        elif near:
            missed(op, near)

    def _filled_in(self, reason: str, m: Match) -> str:
        """A reason with the names of layers in the place of `{name}`."""
        return _NAME.sub(lambda found: _called(m, found[1]), reason) if self.listens else reason


def _called(m: Match, name: str) -> str:
    found = m.captured(name)
    owner = found.owner if isinstance(found, SSAValue) else found
    return name_of(owner) if isinstance(owner, Operation) else name


def _new_layer(m: Match, values: Sequence[SSAValue]) -> Operation:
    """The layer that stands for what a rewrite did: the last one that gives a result, or that has been made."""
    owners = [value.owner for value in values]
    return next((one for one in (m.root, *reversed(m.made)) if one in owners), (m.root, *m.made)[-1])


def _listed(outcome: SSAValue | Sequence[SSAValue]) -> list[SSAValue]:
    return [outcome] if isinstance(outcome, SSAValue) else list(outcome)


def _are_values(found: Any) -> bool:
    return isinstance(found, Sequence) and all(isinstance(one, SSAValue) for one in cast("Sequence[object]", found))


def _spelt(types: Iterable[object]) -> str:
    return ", ".join(map(str, types))


def _replace(m: Match, values: Sequence[SSAValue]) -> None:
    """Let readers of what is replaced read `values`."""
    for old, new in zip(m.replaced.results, values, strict=True):
        if new.name_hint is None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)


def _erase_unread(m: Match, kept: Container[object]) -> None:
    """Erase what is replaced, and what only it read of the matched ops."""
    for one in (m.replaced, *m.behind, m.root, *reversed(m.ops), *reversed(m.shared)):
        if one.parent is not None and one not in kept and all(result.first_use is None for result in one.results):
            one.detach()
            one.erase()


def _producers(values: Iterable[SSAValue]) -> list[Operation]:
    return [value.owner for value in values if isinstance(value.owner, Operation)]


def _without_end(rule: Rule, count: int, layer: str) -> str:
    return (
        f"rule {rule.called()} goes on without end ({count} rewrites, the last at {layer}): "
        "what it makes must not match it again"
    )
