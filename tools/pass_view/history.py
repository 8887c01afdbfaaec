"""What each pass of a pipeline changed, and what it said: an instrument that compares the module around each pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.passes.remarks import Remark, Remarks
from mlirt.tools.pass_view.snapshots import OpText, Texts

_BORDER = "verify-legality"


@dataclass
class Place:
    """Ops that belong together, as they stand for the same layers: those that went, that came, that were changed."""

    layers: list[str] = field(default_factory=list[str])
    removed: list[OpText] = field(default_factory=list[OpText])
    inserted: list[OpText] = field(default_factory=list[OpText])
    changed: list[tuple[OpText, OpText]] = field(default_factory=list[tuple[OpText, OpText]])
    remarks: list[Remark] = field(default_factory=list[Remark])

    @property
    def before(self) -> list[OpText]:
        return [*self.removed, *(old for old, _ in self.changed)]

    @property
    def after(self) -> list[OpText]:
        return [*self.inserted, *(new for _, new in self.changed)]

    @property
    def title(self) -> str:
        """Its layers, else the ops that it is about."""
        return ", ".join(self.layers) or ", ".join(dict.fromkeys(op.name for op in (*self.before, *self.after)))


@dataclass
class PassRecord:
    """A run of a pass, the `number`th of all that ran (--pass-limit counts likewise).

    `old` and `new` are the ops of the module around it, kept where something changed.
    """

    number: int
    spec: str
    name: str
    phase: str = ""
    places: list[Place] = field(default_factory=list[Place])
    remarks: list[Remark] = field(default_factory=list[Remark])
    """Those that are at no op which changed."""
    old: Sequence[OpText] = ()
    new: Sequence[OpText] = ()


@dataclass
class PassHistory:
    """Watches a pipeline; `remarks` collects what its passes say meanwhile."""

    remarks: Remarks
    passes: list[PassRecord] = field(default_factory=list[PassRecord])
    _texts: Texts = field(default_factory=Texts)
    _before: list[OpText] | None = None
    _said: int = 0
    _open_phase: int = 0
    _count: int = 0

    def before_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Remember the ops that the pass finds; what the pass before it left is that already."""
        if self._before is None:
            self._before = self._texts.of(module)
        self._said = len(self.remarks.remarks)

    def after_pass(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Keep what the pass changed and said; the check of a border tells which phase has ended."""
        self._count += 1
        if pass_.name == _BORDER:
            for record in self.passes[self._open_phase :]:
                record.phase = str(getattr(pass_, "phase", ""))
            self._open_phase = len(self.passes)
            return
        assert self._before is not None
        after = self._texts.of(module)
        said = self.remarks.remarks[self._said :]
        record = PassRecord(self._count, str(pass_.pipeline_pass_spec()), pass_.name)
        record.places = places_of(self._before, after)
        record.remarks = _unplaced(said, record.places)
        if record.places:
            record.old, record.new = self._before, after
        self.passes.append(record)
        self._before = after


def places_of(before: Sequence[OpText], after: Sequence[OpText]) -> list[Place]:
    """The differences of two states of a module, those of the same layers together, in the order of the new one."""
    old, new = {op.key: op for op in before}, {op.key: op for op in after}
    removed = [op for op in before if op.key not in new]
    inserted = [op for op in after if op.key not in old]
    removed, inserted = _without_copies(removed, inserted)
    changed = [(old[op.key], op) for op in after if op.key in old and old[op.key].text != op.text]
    groups = _Groups()
    for op in (*removed, *inserted):
        groups.join(op.key, op.layers)
    for one, other in changed:
        groups.join(one.key, (*one.layers, *other.layers))
    readers: dict[int, int] = {}
    for one in (*removed, *inserted, *(op for pair in changed for op in pair)):
        for key in one.reads:
            readers.setdefault(key, one.key)
    for op in (*removed, *inserted):
        if not op.layers and op.key in readers:  # a constant, for example, belongs to what reads it
            groups.join_keys([op.key, readers[op.key]])
    places: dict[int, Place] = {}

    def place(key: int) -> Place:
        return places.setdefault(groups.root(key), Place())

    for op in inserted:
        place(op.key).inserted.append(op)
    for pair in changed:
        place(pair[0].key).changed.append(pair)
    for op in removed:
        place(op.key).removed.append(op)
    order = {op.key: number for number, op in enumerate(after)}
    last = len(order)
    for one in places.values():
        one.layers = list(dict.fromkeys(layer for op in (*one.after, *one.before) for layer in op.layers))
    return sorted(places.values(), key=lambda one: min((order[op.key] for op in one.after), default=last))


def _without_copies(removed: Iterable[OpText], inserted: Iterable[OpText]) -> tuple[list[OpText], list[OpText]]:
    """Those that were not put in the place of an op that reads the same."""
    gone, came = list(removed), list(inserted)
    both = Counter(op.text for op in gone) & Counter(op.text for op in came)
    return _left(gone, both.copy()), _left(came, both.copy())


def _left(ops: Iterable[OpText], copies: Counter[str]) -> list[OpText]:
    left: list[OpText] = []
    for op in ops:
        if copies[op.text]:
            copies[op.text] -= 1
        else:
            left.append(op)
    return left


class _Groups:
    """Ops that have a layer in common, with those that they have one in common with, and so on."""

    def __init__(self) -> None:
        self._parents: dict[int | str, int | str] = {}
        self._numbers: dict[int | str, int] = {}

    def join(self, key: int, layers: Iterable[str]) -> None:
        self._union([key, *layers])

    def join_keys(self, keys: Sequence[int]) -> None:
        self._union(keys)

    def root(self, key: int) -> int:
        return self._numbers.setdefault(self._find(key), len(self._numbers))

    def _union(self, items: Sequence[int | str]) -> None:
        first = self._find(items[0])
        for item in items[1:]:
            self._parents[self._find(item)] = first

    def _find(self, item: int | str) -> int | str:
        self._parents.setdefault(item, item)
        while self._parents[item] != item:
            self._parents[item] = self._parents[self._parents[item]]
            item = self._parents[item]
        return item


def _unplaced(said: Iterable[Remark], places: Sequence[Place]) -> list[Remark]:
    """Put each remark to the place of its layer; those that have none are left."""
    by_title: dict[str, Place] = {}
    for place in places:
        for name in (*place.layers, *(op.title for op in (*place.before, *place.after))):
            by_title.setdefault(name, place)
    left: list[Remark] = []
    for remark in said:
        found = by_title.get(remark.layer) or by_title.get(remark.layer.split(" + ")[0])
        if found is None:
            left.append(remark)
        else:
            found.remarks.append(remark)
    return left
