"""What a rewrite gets: the layers that matched, and the means to make those that take their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import OptPropertyDef
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.context import weights_of
from mlirt.dialects.locations import fuse, name_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.errors import InvalidInputError
from mlirt.passes.rules.search import Captured, Search

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

Made = TypeVar("Made", bound=TensorOp)
Found = TypeVar("Found")
Inserted = TypeVar("Inserted", bound=Operation)


class Match:
    """Layers that match a pattern, by name: `m["x"]`. New ones are put in front of the root, the last of them.

    They bear the joined names of all that matched except shared layers, producers first.
    """

    def __init__(self, search: Search) -> None:
        self.ctx: Context = search.ctx
        self.root = self.replaced = search.root
        self.behind: tuple[Operation, ...] = ()
        self.ops = _each_once(search.ops)
        self.shared = _each_once(search.shared)
        self.made: list[Operation] = []
        self.note = ""
        """What the remark says that the rule has done, besides the names of the layers."""
        self.about: Operation | None = None
        """The layer that the remark is about, where it is not the one that takes the root's place."""
        self._search = search
        self._bound: dict[str, Any] = search.bound.copy()
        for name, found in search.lists.items():
            self._bound[name] = tuple(found)

    def __getitem__(self, name: str) -> Any:
        """The value that a name stands for, of an op its first result; None for a part that is absent."""
        found: Captured = self.captured(name)
        return found.results[0] if isinstance(found, Operation) else found

    def captured(self, name: str) -> Any:
        """What a name stands for: an op, a value, a tuple of them in a repeated part, or None where it is absent."""
        return self._bound.get(name)

    def array(self, of: str | SSAValue) -> Array:
        """The elements of a constant; raises `InvalidInputError` for a value that is computed."""
        value = self[of] if isinstance(of, str) else of
        found = array_of(value, self.ctx)
        if found is None:
            raise InvalidInputError(f"a rule asks for the elements of {of}, which is no constant")
        return found

    def analysis(self, find: Callable[[Block], Found]) -> Found:
        """What `find` finds out about the block of the root; asked once in a run of the pass, before its first use."""
        known = self._search.analyses
        if find not in known:
            known[find] = find(self._search.block)
        return known[find]

    def place(self, one: Operation) -> int:
        """Where an op of the block stands, so that of two ops the later one has more; a new one stands where the root
        does.
        """
        return self.analysis(_places)[one]

    def number(self, of: str) -> float:
        """The number that a constant is."""
        return self.array(of).reshape(-1)[0].item()

    def location(self, *ops: Operation) -> LocationAttr:
        """The joined names of these ops, or of all that matched."""
        return fuse(*(ops or self.ops))

    def insert(self, new: Inserted, *named_after: Operation, before: Operation | None = None) -> Inserted:
        """Put an op in front of the root, or of `before`, with the names of `named_after`, or of all that matched."""
        assert self.root.parent is not None
        new.location = self.location(*named_after)
        self.root.parent.insert_op_before(new, before or self.replaced)
        self.made.append(new)
        if (places := self._search.analyses.get(_places)) is not None:
            places[new] = places[before or self.replaced]
        return new

    def make(self, kind: type[Made], /, *operands: SSAValue | Sequence[SSAValue] | None, **properties: object) -> Made:
        """A layer with the types that it infers. Properties are plain values or attributes."""
        return self.make_after((), kind, *operands, **properties)

    def make_after(
        self,
        named_after: Sequence[Operation],
        kind: type[Made],
        /,
        *operands: SSAValue | Sequence[SSAValue] | None,
        **properties: object,
    ) -> Made:
        """The same with the joined names of some of the ops alone."""
        given = {name: one for name, one in properties.items() if not name.endswith("SegmentSizes")}
        missing = sorted(_needed(kind) - given.keys())
        if missing:
            raise VerifyException(f"{kind.name} needs the property {missing[0]!r}")
        results = len(kind.get_irdl_definition().results)
        return self.insert(kind.build_inferred(operands, given, results=results), *named_after)

    def constant(self, array: Array, role: str = "", *of: Operation) -> SSAValue:
        """A constant, whose elements are called after the root, or the ops `of`, and after their role there."""
        assert self.root.parent is not None
        name = " + ".join(map(name_of, of or (self.root,)))
        made = ConstantOp.from_array(array, weights_of(self.ctx), f"{name}.{role}" if role else name)
        self.root.parent.insert_op_before(made, self.replaced)
        self.made.append(made)
        return made.output

    def replaces(self, one: Operation, *between: Operation) -> None:
        """Let the outcome take the place of an op behind the root, and put what is made from now on in front of that.

        What is between both, last op first, is erased as well where nothing reads it any more.
        """
        self.replaced, self.behind = one, between

    def drop(self, *ops: Operation) -> None:
        """Erase ops too that nothing reads behind the rewrite: those that no part of the pattern stands for."""
        self.shared = tuple(dict.fromkeys((*self.shared, *ops)))

    def take_back(self, one: Operation) -> None:
        """Erase an op that has been made, and that nothing reads."""
        self.made.remove(one)
        one.detach()
        one.erase()

    def undo(self) -> None:
        """Take away what has been made."""
        for one in reversed(self.made):
            one.detach()
            one.erase()
        self.made.clear()


def _places(block: Block) -> dict[Operation, int]:
    return {one: place for place, one in enumerate(block.ops)}


@cache
def _needed(kind: type[TensorOp]) -> frozenset[str]:
    """The properties that a layer has no default for."""
    properties = kind.get_irdl_definition().properties.items()
    return frozenset(
        name
        for name, one in properties
        if not isinstance(one, OptPropertyDef) and one.default_value is None and not name.endswith("SegmentSizes")
    )


def _each_once(ops: list[Operation]) -> tuple[Operation, ...]:
    return tuple(ops) if len(ops) < 2 else tuple(dict.fromkeys(ops))
