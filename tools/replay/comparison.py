"""What has changed between two records: which kernels, from which phase on, and how their texts differ."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlirt.tools.replay.record_file import Record

KINDS = ("phase", "estimates", "kernel")


@dataclass(frozen=True)
class Change:
    """A text of a network that is another one now, is new, or is gone; None stands for no text."""

    network: str
    label: str
    old: str | None
    new: str | None

    @property
    def kind(self) -> str:
        return self.label.partition(" ")[0]

    @property
    def what(self) -> str:
        return "changed" if self.old and self.new else "new" if self.new else "gone"

    def __str__(self) -> str:
        return f"{self.network}: {self.label}: {self.what}"


def changes(old: Record, new: Record) -> list[Change]:
    """What differs, in the order of the networks; of the phases of a network only the first that differs."""
    found: list[Change] = []
    for network in dict.fromkeys([*old.networks, *new.networks]):
        before, after = old.networks.get(network, {}), new.networks.get(network, {})
        labels = [label for label in dict.fromkeys([*before, *after]) if before.get(label) != after.get(label)]
        phases = [label for label in labels if label.startswith("phase ")]
        found += [
            Change(network, label, before.get(label), after.get(label)) for label in labels if label not in phases[1:]
        ]
    return found


def summary(found: Sequence[Change], old: Record, new: Record) -> str:
    """One line: how many texts of each kind there are, and how many changed."""
    parts = list[str]()
    for kind in KINDS:
        labels = {(network, label) for one in (old, new) for network in one.networks for label in one.networks[network]}
        total = sum(label.startswith(f"{kind} ") for _, label in labels)
        if kind == "phase":
            networks = {one.network for one in found if one.kind == kind}
            parts.append(f"the IR of {len(networks)} of {len({network for network, _ in labels})} networks")
        else:
            number = sum(one.kind == kind for one in found)
            parts.append(f"{number} of {total} {'kernels' if kind == 'kernel' else 'lists of estimates'}")
    return f"{', '.join(parts)} changed"


@dataclass(frozen=True)
class ChangedText:
    """Two texts that differ, and all places where one has become the other; an empty one is none."""

    places: tuple[str, ...]
    old: str
    new: str

    @property
    def title(self) -> str:
        """The first place, and how many more there are."""
        others = len(self.places) - 1
        return f"{self.places[0]} (and {others} more)" if others else self.places[0]


def changed_texts(found: Sequence[Change], old: Record, new: Record, kinds: Sequence[str]) -> list[ChangedText]:
    """The texts of these kinds that differ, each pair once; those that a record does not hold are left out.

    What a kernel is called follows from all of its text, so that name counts as its family's.
    """
    places: dict[tuple[str, str], list[str]] = {}
    for one in found:
        sides = ((one.old, old), (one.new, new))
        if one.kind in kinds and all(digest is None or digest in record.texts for digest, record in sides):
            places.setdefault((one.old or "", one.new or ""), []).append(f"{one.network}: {one.label}")
    return [
        ChangedText(tuple(where), _plain(old.texts.get(before, "")), _plain(new.texts.get(after, "")))
        for (before, after), where in places.items()
    ]


def differences(texts: Sequence[ChangedText]) -> Iterator[str]:
    """Unified differences, headed by where they are; lines without ends."""
    for text in texts:
        before, after = (text.title if side else "/dev/null" for side in (text.old, text.new))
        lines = difflib.unified_diff(text.old.splitlines(), text.new.splitlines(), before, after, lineterm="")
        yield from list(lines) or [f"{text.title}: only its name has changed"]


def _plain(text: str) -> str:
    """A text in which kernels are called by their families."""
    return re.sub(r"\b([a-z]\w*)_[0-9a-f]{8}(?=_|\b)", r"\1", text)
