"""The kinds of values that one field of a plan alone has, and the defaults that follow from the plan around it."""

from collections.abc import Mapping
from math import inf, nan, prod
from typing import Any

from mlirt.runtime.profile_ranges import ShapeRange
from mlirt.runtime.record_kinds import (
    MAX_ITEMS,
    each,
    in_range,
    is_whole,
    items,
    many,
    one_of,
    section,
    sections_by_architecture,
    texts,
)
from mlirt.runtime.record_schema import Fault, Given, Kind, Scope, as_table, check_keys, read_inline, read_record
from mlirt.runtime.state_pairs import StatePair
from mlirt.runtime.tensor_maps import MapLayout
from mlirt.tensor_formats import LAYOUTS, LINEAR

ARGUMENT_TYPES = ("ptr", "map", "i64", "i32", "f32", "f64")
MAX_MAP_RANK = 5
_MAX_THREADS_PER_BLOCK = 1024
_MAX_ARGUMENTS = 1024
_MAX_PROFILES = 1024
_NON_FINITE = {"inf": inf, "-inf": -inf, "nan": nan}
_SECTION, _SECTIONS = section(), sections_by_architecture()
_ARGUMENT_TYPES = texts(_MAX_ARGUMENTS)


def unknown_type(name: str) -> str:
    return f"unknown data type {name!r}"


def arch_of_cpu(scope: Scope, given: Given) -> str:
    """Empty on a CPU."""
    if given["kind"] != "cpu":
        raise Fault("is missing", ".arch")
    return ""


def nothing(scope: Scope, given: Given) -> dict[str, object]:
    """Empty."""
    return {}


def last_launch(scope: Scope, given: Given) -> int:
    """Behind all launches."""
    return max(scope.counts["launches"], 1)


def all_arguments(scope: Scope, given: Given) -> frozenset[int]:
    """All of them."""
    return frozenset(range(len(given["args"])))


def no_call(scope: Scope, given: Given) -> None:
    """Null, without a library."""
    if given["library"] is not None:
        raise Fault("is missing", ".call")


def one_block(scope: Scope, given: Given) -> tuple[int, ...]:
    """One block, on a CPU."""
    if scope.target is None or scope.target.kind != "cpu":
        raise Fault("is missing", ".grid")
    return (1, 1, 1)


def all_launches(scope: Scope, given: Given) -> tuple[int, ...]:
    """All launches in order."""
    return tuple(range(scope.counts["launches"]))


def _launch(value: Any, scope: Scope, given: Given) -> int:
    return in_range(value, 0, max(scope.counts["launches"], 1))


def _objects(value: Any, scope: Scope, given: Given) -> dict[str, str]:
    if isinstance(value, str):
        assert scope.target is not None
        return {scope.target.arch: _SECTION.read(value, scope, given)}
    return _SECTIONS.read(value, scope, given)


def _block(value: Any, scope: Scope, given: Given) -> tuple[int, ...]:
    sizes = items(value, 3)
    if len(sizes) != 3 or not all(is_whole(one) and one > 0 for one in sizes) or prod(sizes) > _MAX_THREADS_PER_BLOCK:
        raise Fault(f"expected three sizes with a product in [1, {_MAX_THREADS_PER_BLOCK}]")
    return tuple(sizes)


def _argument_types(value: Any, scope: Scope, given: Given) -> tuple[str, ...]:
    found = _ARGUMENT_TYPES.read(value, scope, given)
    if any(one not in ARGUMENT_TYPES for one in found):
        raise Fault(f"expected types of {', '.join(ARGUMENT_TYPES)}")
    return found


def _written(value: Any, scope: Scope, given: Given) -> frozenset[int]:
    count = len(given["args"])
    found = items(value, count)
    places = frozenset(one for one in found if is_whole(one) and 0 <= one < count)
    if len(places) != len(found):
        raise Fault(f"expected different places of the {count} arguments")
    return places


def _number(value: Any, scope: Scope, given: Given) -> float:
    if isinstance(value, str) and value in _NON_FINITE:
        return _NON_FINITE[value]
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308:
        return float(value)
    raise Fault(f"expected a number, got {str(value)[:40]}")


def _layout(value: Any, scope: Scope, given: Given) -> MapLayout:
    return read_inline(MapLayout, value, scope, sizes=(), steps=())


def _profiles(value: Any, scope: Scope, given: Given) -> tuple[Mapping[str, ShapeRange], ...]:
    return tuple(each(items(value, _MAX_PROFILES), lambda one: _profile(one, scope)))


def _profile(value: object, scope: Scope) -> dict[str, ShapeRange]:
    table, ranks = as_table(value), {tensor.name: len(tensor.shape) for tensor in scope.inputs}
    check_keys(table, ranks)
    found: dict[str, ShapeRange] = {}
    for name, rank in ranks.items():
        if table.get(name) is not None:
            try:
                found[name] = read_record(ShapeRange, table[name], scope)
                found[name].check_rank(rank)
            except Fault as fault:
                raise fault.within(f"[{name[:40]!r}]") from fault.__cause__
    return found


def _any_objects(value: Any, scope: Scope, given: Given) -> tuple[Mapping[str, object], ...]:
    return tuple(each(items(value, MAX_ITEMS), as_table))


FORMAT = one_of(LINEAR, *LAYOUTS, fault=lambda name: f"there is no tensor format {name!r}")
STATE = many(StatePair, limit=1 << 16)
LAUNCH = Kind(_launch, "index of launches")
OBJECTS = Kind(_objects, "section or {architecture: section}")
BLOCK = Kind(_block, f"three numbers with a product up to {_MAX_THREADS_PER_BLOCK}")
ARGUMENT_KINDS = Kind(_argument_types, f"[{' or '.join(map(repr, ARGUMENT_TYPES))}]")
WRITTEN = Kind(_written, "different indices of args")
NUMBER = Kind(_number, "number")
LAYOUT = Kind(_layout, "MapLayout", records=(MapLayout,))
PROFILES = Kind(_profiles, "[{input: ShapeRange}]", records=(ShapeRange,))
OBJECTS_OF_ANY = Kind(_any_objects, "[object]")


def arguments(records: Mapping[str, type[Any]]) -> Kind:
    """The arguments of a launch, each of the record that stands for its type in the kernel's."""

    def read(value: Any, scope: Scope, given: Given) -> tuple[Any, ...]:
        kernel, found = scope.kernels[given["kernel"]], items(value, _MAX_ARGUMENTS)
        kinds: tuple[str, ...] = kernel.args
        if len(found) != len(kinds):
            raise Fault(f"kernel {kernel.name!r} takes {len(kinds)} arguments, got {len(found)}")
        types = iter(kinds)
        made = each(found, lambda one: read_record(records[next(types)], one, scope))
        return tuple([getattr(one, "map", one) for one in made])

    return Kind(read, "[argument]", records=tuple(dict.fromkeys(records.values())))
