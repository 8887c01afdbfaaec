"""Makes the section `extents` of a plan: a contract for each kernel, tried on the launches of the plan itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.extents.contract import contract_of
from mlirt.dialects.kernel.core import FuncOp
from mlirt.errors import MlirtError
from mlirt.runtime.contract_checks import contract_record, contracts_section
from mlirt.runtime.extents import Contract, read_contracts, seal_of
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.program import never_run
from mlirt.runtime.shape_binding import Address, BoundLaunch, Shape, ShapeBinding, bind_shapes

_LENGTHS = (0, 1, 2, 3, 5, 8, 16, 17, 33, 64, 100, 257)
"""What a length that only a run knows is tried as."""


def extents_section(module: ModuleOp, manifest: Manifest, record: Mapping[str, object]) -> bytes:
    """The section for a manifest (and its JSON form) of a lowered module.

    The launches are sealed as they are: extents are upper bounds, which a right launch may exceed for some shapes.
    """
    kernels = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    records = cast("list[dict[str, object]]", record["kernels"])
    own = {str(one["symbol"]): one for one in records if one.get("plugin") is None and one.get("library") is None}
    bindings = list(_bindings(manifest))
    contracts: dict[str, dict[str, object]] = {}
    for number, kernel in enumerate(manifest.kernels):
        if kernel.symbol in own:
            launches = [
                (binding, binding.launches[i])
                for binding in bindings
                for i in _launches_of(manifest, number)
                if i not in never_run(manifest.program, binding.values)[0]
            ]
            contracts[kernel.symbol] = _tried(kernels[kernel.name], own[kernel.symbol], launches, manifest)
    sealed = [
        seal_of(record, i)
        for i, launch in enumerate(manifest.launches)
        if manifest.kernels[launch.kernel].plugin is None
    ]
    return contracts_section(contracts, sealed)


def _launches_of(manifest: Manifest, kernel: int) -> Iterator[int]:
    return (i for i, launch in enumerate(manifest.launches) if launch.kernel == kernel)


def _tried(
    kernel: FuncOp,
    record: Mapping[str, object],
    launches: Sequence[tuple[ShapeBinding, BoundLaunch]],
    manifest: Manifest,
) -> dict[str, object]:
    """The contract of a kernel, without what its own launches do not keep."""
    head = contract_record(record)
    integers = [place for place, kind in enumerate(cast("list[str]", head["args"])) if kind in ("i64", "i32")]
    signed = [place for place in integers if any(_is_negative(launch.args[place]) for _, launch in launches)]
    found = head | contract_of(kernel, signed)
    unproved = set(cast("list[int]", found["unproved"]))
    contract = _read(found)
    for binding, launch in launches:
        if manifest.target.kind == "cuda" and 0 in launch.grid:
            continue
        extents = contract.extents_of(launch.args, launch.grid)
        if isinstance(extents, str):
            unproved |= {place for place, arg in enumerate(launch.args) if isinstance(arg, Address)}
            break
        for place, (start, end) in extents.items():
            pointer = launch.args[place]
            assert isinstance(pointer, Address)
            if start < end and not 0 <= pointer.offset + start < pointer.offset + end <= binding.sizes[pointer.root]:
                unproved.add(place)
    kept = [one for one in cast("list[list[object]]", found["extents"]) if one[0] not in unproved]
    return found | {"unproved": sorted(unproved), "extents": kept}


def _read(record: dict[str, object]) -> Contract:
    return read_contracts(contracts_section({"": record}, [])).kernels[""]


def _is_negative(value: object) -> bool:
    return isinstance(value, int) and value < 0


def _bindings(manifest: Manifest) -> Iterator[ShapeBinding]:
    """The plan bound to shapes of its profiles, or to a few lengths; those that it refuses are left out."""
    for shapes, lengths in _shapes(manifest):
        try:
            yield bind_shapes(manifest, shapes, lengths)
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
        # Equal lengths, and in every other turn lengths that differ.
        values = {one.name: length + (k * i % 3 if i % 2 else 0) for k, one in enumerate(manifest.symbols)}
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
