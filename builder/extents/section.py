"""Makes the section `extents` of a plan: a contract for each kernel, tried on the launches of the plan itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.extents.kept_contracts import KeptContracts
from mlirt.builder.extents.launch_reader import MAX_WORK
from mlirt.builder.extents.numbers import MAX_NUMBER
from mlirt.builder.extents.ranges import Effort
from mlirt.dialects.kernel.core import FuncOp
from mlirt.errors import CompileError, MlirtError
from mlirt.runtime.bound_launch import Address, BoundLaunch
from mlirt.runtime.contract_checks import contract_record, contracts_section
from mlirt.runtime.extents import Contract, Extents, Seals, read_contracts
from mlirt.runtime.manifest import IntArgument, Launch, Manifest
from mlirt.runtime.program import certain, never_run
from mlirt.runtime.shape_binding import ShapeBinder, ShapeBinding
from mlirt.runtime.symbol_values import Shape

_LENGTHS = (0, 1, 2, 3, 5, 8, 16, 17, 33, 64, 100, 257)
"""What a length that only a run knows is tried as."""
_SMALL = 1 << 20
_ATTEMPTS = (1 << 25, Effort(200, 2500), Effort(1000, 6000), MAX_WORK)
"""In turn: following a launch, where that takes so many numbers at most (of which 2^25 take 0.3 s), and formulas that
are looked for so long."""
_MAX_CONTRACTS = 16
"""Of one kernel: where its launches differ more, there is one contract for all."""


def extents_section(module: ModuleOp, manifest: Manifest, record: Mapping[str, object]) -> bytes:
    """The section for a manifest (and its JSON form) of a lowered module.

    Raises `CompileError` where nothing bounds what a kernel for a CPU touches through one of its arguments. Launches of
    libraries, and of kernels for a GPU that are not proved, are sealed as they are.
    """
    kernels = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    records = cast("list[dict[str, object]]", record["kernels"])
    own = {str(one["symbol"]): one for one in records if one.get("plugin") is None and one.get("library") is None}
    bindings = [_Bound.of(manifest, binding) for binding in _bindings(manifest)]
    of_kernels: dict[int, list[int]] = {}
    for i, launch in enumerate(manifest.launches):
        of_kernels.setdefault(launch.kernel, []).append(i)
    known = KeptContracts()
    contracts: dict[str, list[dict[str, object]]] = {}
    kept: set[int] = set()
    """The launches that keep a contract for all lengths that they are tried with."""
    for number, kernel in enumerate(manifest.kernels):
        if kernel.symbol not in own:
            continue
        indices = of_kernels.get(number, [])
        numbers = _Numbers.of(manifest, number, indices, bindings)
        head = contract_record(own[kernel.symbol])
        if manifest.target.kind == "cpu":
            found = head | known.of(kernels[kernel.name], numbers.signed, numbers.constants)[0]
            _check_complete(kernel.name, found, next((manifest.launches[i].layer for i in indices), ""))
            others = _for_launches(kernels[kernel.name], head, found, numbers, manifest, known)
            contracts[kernel.symbol] = [found, *others]
            kept |= set(indices)
        else:
            contracts[kernel.symbol] = _for_gpu(kernels[kernel.name], head, numbers, manifest, known)
            kept |= _kept(contracts[kernel.symbol], numbers)
    seals = Seals(record)
    sealed = [
        seals.of(i)
        for i, launch in enumerate(manifest.launches)
        if manifest.kernels[launch.kernel].plugin is None and i not in kept
    ]
    return contracts_section(contracts, sealed)


def _kept(contracts: Sequence[dict[str, object]], numbers: _Numbers) -> set[int]:
    """The launches each of which keeps one of the contracts, whatever the lengths."""
    if any(one["unproved"] for one in contracts):
        return set()
    read = [*map(_read, contracts)]
    tried = {launch.index for _, launch in numbers.launches}
    return tried - {
        launch.index
        for binding, launch in numbers.launches
        if 0 not in launch.grid and not any(_keeps(one, binding, launch) for one in read)
    }


def _for_gpu(
    kernel: FuncOp, head: dict[str, object], numbers: _Numbers, manifest: Manifest, known: KeptContracts
) -> list[dict[str, object]]:
    """The contracts of a kernel for a GPU that its own launches keep; one that proves nothing where there is none.

    Where launches differ in numbers that are known, there is one contract for each, which is short and exact: their
    threads are enumerated. Raises `CompileError` where one of them surely leaves a buffer.
    """
    found: list[dict[str, object]] = []
    for group in _alike(numbers, manifest):
        launches = [manifest.launches[i] for i in group]
        bound = [one for one in numbers.launches if one[1].index in group]
        constants, grid = _constants(launches), _known_grid(launches)
        is_known = _is_known(launches[0], constants, grid)
        contract = head
        for attempt in _ATTEMPTS:
            if isinstance(attempt, Effort):
                formulas, _ = known.of(kernel, numbers.signed, constants, grid, attempt)
                contract = _tried(head, head | formulas, bound)
            elif is_known and (whole := known.of_launch(kernel, constants, grid, attempt)) is not None:
                contract = _tried(head, head | whole[0], bound)
                if whole[1]:
                    _check_inside(kernel, head | whole[0], bound, manifest)
            if not contract["unproved"]:
                break
        if contract["unproved"] and not is_known:
            _check_each(kernel, head, bound, manifest, known)
        found.append(contract)
    return [one for one in found if not one["unproved"]] or found[:1]


def _is_known(launch: Launch, constants: Mapping[int, int], grid: Mapping[int, int]) -> bool:
    """Whether all numbers of launches like this one are known."""
    integers = [place for place, one in enumerate(launch.args) if isinstance(one, IntArgument)]
    return constants.keys() >= set(integers) and len(grid) == len(launch.grid)


def _check_each(
    kernel: FuncOp,
    head: dict[str, object],
    launches: Sequence[tuple[ShapeBinding, BoundLaunch]],
    manifest: Manifest,
    known: KeptContracts,
) -> None:
    """Launches of which nothing is proved, for the lengths that they are tried with."""
    for binding, launch in sorted(launches, key=lambda one: prod(one[1].grid)):
        constants = {place: one for place, one in enumerate(launch.args) if isinstance(one, int)}
        found = known.of_launch(kernel, constants, dict(enumerate(launch.grid)), _SMALL)
        if found is None:
            break  # larger ones would take longer
        if found[1]:
            _check_inside(kernel, head | found[0], [(binding, launch)], manifest)


def _check_inside(
    kernel: FuncOp,
    contract: dict[str, object],
    launches: Sequence[tuple[ShapeBinding, BoundLaunch]],
    manifest: Manifest,
) -> None:
    """Raise `CompileError` where a launch leaves a buffer, as no data can change.

    Launches that a run may not come to are left to the run.
    """
    read = _read(contract)
    for binding, launch in launches:
        extents = read.extents_of(launch.args, launch.grid) if 0 not in launch.grid else "no block runs"
        places = [] if isinstance(extents, str) else sorted(_outside(extents, binding, launch))
        if places and launch.index in certain(manifest.program):
            raise CompileError(
                f"layer {manifest.launches[launch.index].layer}: kernel {kernel.sym_name.data} leaves the buffers of "
                f"its arguments {places}; this is a defect of the compiler"
            )


def _alike(numbers: _Numbers, manifest: Manifest) -> list[set[int]]:
    """The launches of a kernel, by the integers that they pass and their grids where all of these are known."""
    groups: dict[object, set[int]] = {}
    for index in numbers.indices:
        launch = manifest.launches[index]
        passed = [one.value for one in launch.args if isinstance(one, IntArgument)] + [*launch.grid]
        is_known = all(isinstance(one, int) for one in passed)
        groups.setdefault(tuple(passed) if is_known else None, set()).add(index)
    return [*groups.values()] if len(groups) <= _MAX_CONTRACTS else [set(numbers.indices)]


def _known_grid(launches: Sequence[Launch]) -> dict[int, int]:
    """By axis how many blocks launches have, where that is the same number for all."""
    found: dict[int, int] = {}
    for axis in range(min((len(one.grid) for one in launches), default=0)):
        values = {value if isinstance(value := one.grid[axis], int) else None for one in launches}
        if len(values) == 1 and isinstance(value := values.pop(), int):
            found[axis] = value
    return found


def _check_complete(name: str, contract: Mapping[str, object], layer: str) -> None:
    if contract["unproved"]:
        raise CompileError(
            f"layer {layer}: nothing bounds what kernel {name} touches through its arguments {contract['unproved']}; "
            "this is a defect of the compiler"
        )


def _for_launches(
    kernel: FuncOp,
    head: dict[str, object],
    common: dict[str, object],
    numbers: _Numbers,
    manifest: Manifest,
    known: KeptContracts,
) -> Iterator[dict[str, object]]:
    """Further contracts, where a launch does not keep the common one for some lengths.

    First for the constants of single launches: the common one does not know how numbers that are no constants of the
    kernel follow from each other. Then, where a launch does not keep its own, one for any numbers: it has quotients by
    what the launch gives, whose remainders are known by more than quotients by constants tell.
    """
    first = _read(common)
    if all(_keeps(first, binding, launch) for binding, launch in numbers.launches):
        return
    kept = True
    for index in dict.fromkeys(launch.index for _, launch in numbers.launches):
        own = head | known.of(kernel, numbers.signed, _constants([manifest.launches[index]]))[0]
        read = _read(own)
        kept = kept and all(_keeps(read, *one) for one in numbers.launches if one[1].index == index)
        yield own
    if not kept:
        found = head | known.of(kernel, numbers.signed, {})[0]
        if not found["unproved"]:
            yield found


def _keeps(contract: Contract, binding: ShapeBinding, launch: BoundLaunch) -> bool:
    extents = contract.extents_of(launch.args, launch.grid)
    return not isinstance(extents, str) and not _outside(extents, binding, launch)


def _outside(extents: Extents, binding: ShapeBinding, launch: BoundLaunch) -> set[int]:
    """The places of the pointers with which a launch would leave its buffers."""
    found: set[int] = set()
    for place, (start, end) in extents.items():
        pointer = launch.args[place]
        assert isinstance(pointer, Address)
        if start < end and not 0 <= pointer.offset + start < pointer.offset + end <= binding.sizes[pointer.root]:
            found.add(place)
    return found


def _constants(launches: Sequence[Launch]) -> dict[int, int]:
    """By place the integers that launches of a kernel pass for all lengths alike."""
    found: dict[int, int] = {}
    for place in range(len(launches[0].args)) if launches else ():
        values = {one.value if isinstance(one := launch.args[place], IntArgument) else None for launch in launches}
        if len(values) == 1 and isinstance(value := values.pop(), int) and abs(value) < MAX_NUMBER:
            found[place] = value
    return found


@dataclass(frozen=True)
class _Bound:
    """The plan for some lengths."""

    binding: ShapeBinding
    skipped: Collection[int]
    """The launches that no run comes to."""

    @staticmethod
    def of(manifest: Manifest, binding: ShapeBinding) -> _Bound:
        return _Bound(binding, never_run(manifest.program, binding.values)[0])


@dataclass(frozen=True)
class _Numbers:
    """What the launches of a kernel pass."""

    signed: frozenset[int]
    """The places of integers that are negative for some lengths."""
    constants: Mapping[int, int]
    """By place the integers that are the same for every launch and all lengths."""
    launches: Sequence[tuple[ShapeBinding, BoundLaunch]]
    """Its launches for some lengths."""
    indices: Sequence[int]
    """Its launches, by number."""

    @staticmethod
    def of(manifest: Manifest, kernel: int, own: Sequence[int], bindings: Sequence[_Bound]) -> _Numbers:
        """Of a kernel and the launches of it."""
        launches = [
            (bound.binding, bound.binding.launches[i]) for bound in bindings for i in own if i not in bound.skipped
        ]
        integers = [place for place, kind in enumerate(manifest.kernels[kernel].args) if kind in ("i64", "i32")]
        signed = [place for place in integers if any(_is_negative(launch.args[place]) for _, launch in launches)]
        constants = _constants([manifest.launches[i] for i in own])
        return _Numbers(frozenset(signed), constants, launches, own)


def _tried(
    head: dict[str, object], found: dict[str, object], launches: Sequence[tuple[ShapeBinding, BoundLaunch]]
) -> dict[str, object]:
    """The contract of a kernel for a GPU, without what its own launches do not keep."""
    unproved = set(cast("list[int]", found["unproved"]))
    contract = _read(found)
    for binding, launch in launches:
        if 0 in launch.grid:
            continue
        extents = contract.extents_of(launch.args, launch.grid)
        if isinstance(extents, str):
            return head
        unproved |= _outside(extents, binding, launch)
    kept = [one for one in cast("list[list[object]]", found["extents"]) if one[0] not in unproved]
    return found | {"unproved": sorted(unproved), "extents": kept}


def _read(record: dict[str, object]) -> Contract:
    return read_contracts(contracts_section({"": [record]}, [])).kernels[""][0]


def _is_negative(value: object) -> bool:
    return isinstance(value, int) and value < 0


def _bindings(manifest: Manifest) -> Iterator[ShapeBinding]:
    """The plan bound to shapes of its profiles, or to a few lengths; those that it refuses are left out."""
    binder = ShapeBinder(manifest)
    for shapes, lengths in _shapes(manifest):
        try:
            yield binder.bind(shapes, lengths)
        except MlirtError:
            continue


def _shapes(manifest: Manifest) -> Iterator[tuple[list[Shape], dict[str, int]]]:
    if not manifest.symbols and not manifest.sizes:
        yield [tuple(cast("tuple[int, ...]", one.shape)) for one in manifest.given_inputs], {}
        return
    for profile in manifest.profiles:
        for pick in ("minimum", "optimum", "maximum"):
            given = [profile.get(one.name) for one in manifest.given_inputs]
            shapes = [tuple(getattr(one, pick)) for one in given if one is not None]
            if len(shapes) == len(given):
                yield shapes, dict.fromkeys(manifest.sizes, 1)
    for i, length in enumerate(_LENGTHS):
        # Equal lengths, and in every other turn lengths that differ, one way or the other.
        symbols = manifest.symbols if i % 4 == 1 else manifest.symbols[::-1]
        values = {one.name: length + (k * i % 3 if i % 2 else 0) for k, one in enumerate(symbols)}
        sizes = dict.fromkeys(manifest.sizes, length)
        found = _evaluated(manifest, {**values, **sizes})
        if found is not None:
            yield found, sizes


def _evaluated(manifest: Manifest, values: Mapping[str, int]) -> list[Shape] | None:
    from mlirt.runtime.expressions import ExpressionError, evaluate

    try:
        return [tuple(evaluate(dim, values) for dim in one.shape) for one in manifest.given_inputs]
    except ExpressionError:
        return None
