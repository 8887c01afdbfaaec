"""Validates the JSON table of contents of a plan and returns it as typed records.

Refused with a PlanError of one line: unknown fields, wrong types, indices out of range, arguments that do not fit the
kernel's signature, views in a circle, buffers used outside of their lifetime, sections or weights that are not there.
What a field may be stands at the field (`manifest.Manifest` and the records in it).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from mlirt.errors import PlanError
from mlirt.runtime.manifest import FORMAT, Manifest, Tensor
from mlirt.runtime.manifest_rules import check_halos, check_lifetimes, check_tensors, check_weights, roots
from mlirt.runtime.record_kinds import MAX_ITEMS, TEXT, each, in_range, items
from mlirt.runtime.record_schema import (
    Fault,
    Scope,
    as_table,
    check_keys,
    json_fields,
    known_keys,
    read_field,
)
from mlirt.runtime.state_pairs import check_pairs

T = TypeVar("T")
_COUNTED = ("inputs", "outputs", "buffers", "kernels", "launches")
_FIRST = ("sizes", "parts", "inputs", "outputs", "kernels")
"""What the other fields are read with, behind the target."""


def parse_manifest(value: object, sections: Collection[str], weight_sizes: Mapping[str, int]) -> Manifest:
    """Validate `value` against the plan's section names and the byte sizes of its weights."""
    scope = Scope(sections=sections, weights=weight_sizes)
    try:
        given = _fields(value, scope)
    except Fault as fault:
        raise fault.in_plan() from fault.__cause__
    buffers = given["buffers"]
    manifest = Manifest(**given, roots=roots(buffers))
    if manifest.target.kind == "cpu" and manifest.launches and manifest.main not in sections:
        raise PlanError(f"plan manifest: plan.main: there is no section {str(manifest.main)[:40]!r}")
    check_halos(buffers)
    check_weights(buffers, weight_sizes)
    check_tensors(manifest)
    check_lifetimes(manifest)
    return manifest


def _fields(value: object, scope: Scope) -> dict[str, Any]:
    """The fields of a manifest by name: first those that others are read with."""
    table = as_table(value)
    check_keys(table, known_keys(Manifest) | {"format"})
    _check_version(table)
    fields, given = {one.name: one for one in json_fields(Manifest)}, dict[str, Any]()
    given["target"] = scope.target = read_field(fields["target"], table, scope, given)
    scope.counts = {name: len(_list(table, name)) for name in _COUNTED}
    bound = _symbol_names(table)
    scope.names = frozenset(bound)
    given["requirements"] = read_field(fields["requirements"], table, scope, given)
    for name in _FIRST:
        given[name] = read_field(fields[name], table, scope, given)
        if name == "parts":
            scope.sizes = given["sizes"]
            scope.names = _all_names(bound, given["sizes"], given["parts"])
        elif name in ("inputs", "outputs"):
            _check_tensors(name, given[name])
            setattr(scope, name, given[name])
    scope.kernels = given["kernels"]
    for name, one in fields.items():
        if name not in given:
            given[name] = read_field(one, table, scope, given)
    check_pairs(given["state"])
    return given


def _check_version(table: Mapping[str, Any]) -> None:
    found = _there(table, "format")
    version = _at(".format", lambda: in_range(found, 0, 1 << 31))
    if version != FORMAT:
        raise PlanError(f"the plan has format version {version}, this mlirt reads version {FORMAT}; please rebuild it")


def _list(table: Mapping[str, Any], name: str) -> list[Any]:
    found = _there(table, name)
    return _at(f".{name}", lambda: items(found, MAX_ITEMS))


def _there(table: Mapping[str, Any], name: str) -> Any:
    if table.get(name) is None:
        raise Fault("is missing", f".{name}")
    return table[name]


def _symbol_names(table: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the symbols that inputs bind, which formulas are read with."""

    def name_of(raw: object) -> str:
        name = _there(as_table(raw), "name")
        return _at(".name", lambda: TEXT.read(name, Scope(), {}))

    found = [] if table.get("symbols") is None else _list(table, "symbols")
    names = _at(".symbols", lambda: each(found, name_of))
    if len(set(names)) != len(names):
        raise Fault("two symbols have one name", ".symbols")
    return tuple(names)


def _all_names(bound: Sequence[str], sizes: Sequence[str], parts: str | None) -> frozenset[str]:
    names = [*bound, *sizes, *([] if parts is None else [parts])]
    if len(set(names)) != len(names):
        raise Fault("two symbols have one name", ".sizes")
    return frozenset(names)


def _check_tensors(name: str, tensors: Sequence[Tensor]) -> None:
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise Fault("two of them have one name", f".{name}")
    counters = [tensor.counts_runs for tensor in tensors]
    if counters != sorted(counters):
        raise Fault("inputs of the caller come before the number of the run", f".{name}")


def _at(path: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except Fault as fault:
        raise fault.within(path) from fault.__cause__
