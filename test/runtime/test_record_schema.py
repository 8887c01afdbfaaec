"""Records whose fields say how JSON has them: what is read, written and told about them is the same."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import pytest

from mlirt.builder.plan_writer.record import record
from mlirt.dialects.symbolic import sym
from mlirt.runtime.manifest import Buffer, Manifest, Tensor
from mlirt.runtime.record_kinds import (
    FORMULA,
    TEXT,
    formulas,
    index,
    many,
    nested,
    numbers,
    one_of,
    section,
    texts,
    whole,
)
from mlirt.runtime.record_schema import (
    Fault,
    Given,
    Scope,
    formula_keys,
    json_fields,
    known_keys,
    read_record,
    records_of,
    stored,
)

SCOPE = Scope(names={"n"}, counts={"buffers": 3, "launches": 4}, sections={"main.o"})


@dataclass(frozen=True)
class Inner:
    """A record in a record."""

    place: int = field(metadata=stored(index("buffers")))
    size: Any = field(metadata=stored(FORMULA, key="bytes", default=7))


def _length(scope: Scope, given: Given) -> int:
    return len(given["kind"])


@dataclass(frozen=True)
class Outer:
    """One of each kind."""

    extra: str
    kind: str = field(metadata=stored(one_of("a", "b")))
    inner: Inner = field(metadata=stored(nested(Inner)))
    others: tuple[Inner, ...] = field(metadata=stored(many(Inner), default=()))
    count: int = field(metadata=stored(whole(1, 5), default=_length))
    shape: tuple[Any, ...] = field(metadata=stored(formulas(2), default=()))
    box: tuple[int, ...] = field(metadata=stored(numbers(0, 9, 3), default=()))
    code: str | None = field(metadata=stored(section(), default=None))
    labels: tuple[str, ...] = field(metadata=stored(texts(2), default=()))
    title: str = field(default="", metadata=stored(TEXT, default="none", only="titled"))

    def check(self, scope: Scope) -> None:
        if self.kind == "b" and not self.box:
            raise Fault("b needs a box", ".box")


def read(**changes: object) -> Outer:
    given: dict[str, object] = {"kind": "a", "inner": {"place": 1}}
    return read_record(Outer, given | changes, SCOPE, extra="said")


def test_defaults_and_other_names() -> None:
    found = read(count=None, inner={"place": 2, "bytes": ["*", "n", 2]})
    assert found == Outer("said", "a", Inner(2, ("*", "n", 2)), (), 1, (), (), None, ())
    assert read().inner.size == 7
    titled = read_record(Outer, {"kind": "a", "inner": {"place": 1}, "title": "x"}, SCOPE, "titled", extra="")
    assert titled.title == "x"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "c"}, "kind: expected 'a' or 'b', got 'c'"),
        ({"kind": "b"}, "box: b needs a box"),
        ({"inner": None}, "inner: is missing"),
        ({"inner": {}}, "inner.place: is missing"),
        ({"inner": {"place": 3}}, "inner.place: 3 is no index of the 3 buffers"),
        ({"inner": {"place": True}}, "inner.place: True is no index of the 3 buffers"),
        ({"others": [{"place": 0}, {"place": 0, "bytes": "m"}]}, "others[1].bytes: unknown symbol 'm'"),
        ({"others": [{"place": 0}, 5]}, "others[1]: expected an object, got int"),
        ({"others": {}}, "others: expected a list, got dict"),
        ({"count": 6}, "count: expected a whole number in [1, 5], got 6"),
        ({"shape": [1, 2, 3]}, "shape: has 3 items, more than 2"),
        ({"shape": [["+", 1]]}, "shape: a formula is [operator, a, b]"),
        ({"box": [10]}, "box: expected whole numbers in [0, 9]"),
        ({"code": "nowhere"}, "code: there is no section 'nowhere'"),
        ({"labels": ["a", 1]}, "labels: expected a list of texts"),
        ({"title": "x"}, "title: is no field of this object"),
        ({"inner": {"place": 0, "a\nb": 1}}, r"inner.'a\nb': is no field of this object"),
    ],
)
def test_faults_name_the_path(changes: dict[str, object], message: str) -> None:
    with pytest.raises(Fault) as caught:
        read(**changes)
    told = str(caught.value.in_plan()).removeprefix("plan manifest: ").removeprefix("plan.")
    assert told.startswith(message)
    assert "\n" not in told


def test_what_is_written_is_read_again() -> None:
    n = sym("n")
    inner = record(Inner, place=1, size=n * 2 + 1)
    written = record(Outer, kind="b", inner=inner, box=[1, 2], shape=[n, 3])
    assert written == {
        "kind": "b",
        "inner": {"place": 1, "bytes": ["+", 1, ["*", 2, "n"]]},
        "box": [1, 2],
        "shape": ["n", 3],
    }
    assert read_record(Outer, written, SCOPE, extra="").shape == ("n", 3)
    with pytest.raises(TypeError, match=r"Outer: it has no \['colour'\], and needs \['inner'\]"):
        record(Outer, kind="a", colour=1)
    assert record(Outer, "", ("inner",), kind="a") == {"kind": "a"}


def test_what_follows_from_the_fields() -> None:
    assert known_keys(Inner) == {"place", "bytes"}
    assert list(records_of(Outer)) == [Outer, Inner]
    assert formula_keys(Outer) == {"bytes", "shape"}
    assert "squeezed" not in known_keys(Tensor, "inputs")
    assert "squeezed" in known_keys(Tensor, "outputs")
    assert {"bytes", "view_offset", "grid", "int", "left", "steps", "border"} <= formula_keys(Manifest)


def test_every_field_of_the_manifest_is_stored_or_made_by_the_reader() -> None:
    made = {one.name for one in fields(Manifest)} - {one.name for one in json_fields(Manifest)}
    assert made == {"contracts", "sealed", "roots"}
    assert all(one.metadata for one in fields(Buffer))
