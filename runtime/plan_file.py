"""The plan file: one file with all that running a network needs; data only, nothing in it is executed by loading.

Layout (all integers little-endian):
    0   8 bytes   magic `\\x89mlirt\\r\\n`
    8   u64       version of the container (3, or 4 with plans for several machines; the digest of 2 did not cover the
                  header, 1 had all weights as in memory)
    16  u64       length of the whole file
    24  u64       length of the index
    32  32 bytes  SHA-256 of the 32 bytes before and the index
    64  index     JSON: [[section name, offset, bytes, SHA-256 in hex], ...] in the order of the file
    ... sections  each at a multiple of 64 bytes; the bytes between are zero
Sections: `manifest` (JSON, below), `extents` (JSON: what the kernels touch, runtime/extents.py), `weights` (a
safetensors stream, mapped and not read but for what is stored in fewer bytes than it takes in memory, see
runtime/safetensors_section.py), and the object code by name.
`network.mlir` is the network as it was given, as IR without its large weights, unless the build was told to be silent
(ProfilingVerbosity.NONE); refittable plans have those in `network.safetensors`. Running ignores both.
A file of version 4 has a section `machines` in place of `manifest`, see runtime/plan_variants.py.

The manifest is what docs/plan-format.md says, which is made of the records of runtime/manifest.py.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, cast

import numpy as np

from mlirt.atomic_file import Bytes, write_file
from mlirt.errors import MlirtError, PlanError, reports_shortage
from mlirt.runtime import safetensors_section
from mlirt.runtime.compact_weights import Forms
from mlirt.runtime.contract_checks import check_contracts, sealed_contracts
from mlirt.runtime.extents import SECTION as _EXTENTS
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.manifest_parser import parse_manifest
from mlirt.runtime.plan_source import PlanFile, PlanSource, open_source
from mlirt.runtime.plan_variants import (
    MACHINES,
    GpuHere,
    Machine,
    Place,
    Variant,
    Variants,
    choose,
    machine_of,
    machines_of,
    merged,
)

MAGIC = b"\x89mlirt\r\n"
CONTAINER_VERSION = 3
FOR_MACHINES = 4
_READABLE = (1, 2, 3, FOR_MACHINES)
_HEADER_IS_SIGNED = 3
ALIGNMENT = 64
_START = struct.Struct("<8sQQQ")
_HEADER = struct.Struct("<8sQQQ32s")
HEADER_BYTES = _HEADER.size
_MAX_INDEX = 1 << 26
_MAX_MANIFEST = 1 << 30
_WEIGHTS, _MANIFEST = "weights", "manifest"


@dataclass(frozen=True)
class PlanOrigin:
    """Where a plan was read: its file, if that is mapped, and the section with its weights."""

    file: PlanFile | None
    weights: memoryview
    weights_digest: str


@dataclass(frozen=True)
class Plan:
    """A validated plan: its table of contents, object code by section name, and weights by key."""

    manifest: Manifest
    manifest_json: Mapping[str, object]
    """The manifest as a file has it."""
    sections: Mapping[str, Bytes]
    weights: Mapping[str, np.ndarray]
    origin: PlanOrigin | None = field(default=None, compare=False, repr=False)
    forms: Forms = field(default_factory=Forms, compare=False, repr=False)
    """In how few bytes each weight can be written, found when the plan is first written: kept plans are saved later."""
    variants: Variants | None = field(default=None, compare=False, repr=False)
    """The plans of the same network for other machines, with which this one is saved."""

    def check_weights(self) -> None:
        """Raise PlanError where the weights are not those that were saved: `read_plan` may have left that out."""
        if self.origin is not None:
            _check_digest(_WEIGHTS, self.origin.weights, self.origin.weights_digest)

    def without_state(self) -> Plan:
        """The same where inputs that an engine keeps are inputs like others."""
        return replace(self, manifest=replace(self.manifest, state=())) if self.manifest.state else self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan file at once or not at all."""
        write_file(path, self.pieces(), "the plan file")

    def pieces(self) -> Iterable[Bytes]:
        """The bytes of the plan file, the header first. Nothing is validated again.

        Where there is no section `extents`, one is written that holds every launch to the numbers that it has now.
        """
        if self.variants is None:
            bodies = {_MANIFEST: _manifest_text(self.manifest_json), **self._bodies()}
            return _file_pieces(bodies, safetensors_section.stream_of(self.weights, self.forms), CONTAINER_VERSION)
        chosen, read = self.variants.chosen, self.variants.read()
        bodies, weights = merged([self.as_variant(chosen) if one.name == chosen else one for one in read])
        return _file_pieces(bodies, safetensors_section.stream_of(weights), FOR_MACHINES)

    def _bodies(self) -> Mapping[str, Bytes]:
        """All sections but the manifest and the weights."""
        sections = _with_contracts(self.manifest_json, self.sections)
        for name in (_MANIFEST, _WEIGHTS):
            if name in sections:
                raise PlanError(f"section name {name!r} is reserved")
        return sections

    def as_variant(self, name: str) -> Variant:
        """This plan alone as one of several, for a machine of a name."""
        bodies = {_MANIFEST: _manifest_text(self.manifest_json), **self._bodies()}
        return Variant(name, self.manifest_json, bodies, self.weights)

    def to_bytes(self) -> bytes:
        """The plan file as bytes."""
        return b"".join(self.pieces())

    def with_extents(self, section: bytes) -> Plan:
        """The plan with the section `extents`, which alone is validated."""
        contracts, sealed = check_contracts(self.manifest, self.manifest_json, section)
        manifest = replace(self.manifest, contracts=contracts, sealed=sealed)
        return replace(self, manifest=manifest, sections={**self.sections, _EXTENTS: section})


def make_plan(manifest: Mapping[str, object], sections: Mapping[str, Bytes], weights: Mapping[str, np.ndarray]) -> Plan:
    """Validate a plan in memory, without the way through a file."""
    sizes = {key: array.nbytes for key, array in weights.items()}
    record = as_json(manifest)
    return Plan(_parsed(record, sections, sizes), record, sections, weights)


def _parsed(manifest: object, sections: Mapping[str, Bytes], weight_sizes: Mapping[str, int]) -> Manifest:
    """The manifest with the contracts of its kernels, where there is the section with them."""
    parsed = parse_manifest(manifest, sections, weight_sizes)
    if _EXTENTS not in sections:
        return parsed
    contracts, sealed = check_contracts(parsed, cast("Mapping[str, object]", manifest), bytes(sections[_EXTENTS]))
    return replace(parsed, contracts=contracts, sealed=sealed)


def plan_for_machines(plans: Mapping[str, Plan]) -> Plan:
    """The plan that suits this machine best of several by the names of their machines; it is saved with the others.

    The first one where none suits.
    """
    kept = [plan.as_variant(name) for name, plan in plans.items()]
    machines = tuple(machine_of(one.name, one.manifest) for one in kept)
    chosen = (choose(machines, gpu_here) or machines[0]).name
    return replace(plans[chosen], variants=Variants(machines, chosen, lambda: kept))


def write_plan(
    destination: str | os.PathLike[str] | IO[bytes],
    manifest: Mapping[str, object],
    sections: Mapping[str, Bytes],
    weights: Mapping[str, np.ndarray],
) -> None:
    """Write a plan file to a path (atomically) or a binary stream; the same arguments give the same bytes.

    `manifest` must satisfy the schema above: PlanError before anything is written where it does not.
    InvalidInputError for a path where no file can be written.
    """
    plan = make_plan(manifest, sections, weights)
    if isinstance(destination, str | os.PathLike):
        plan.save(destination)
        return
    for piece in plan.pieces():
        destination.write(piece)


def plan_bytes(
    manifest: Mapping[str, object], sections: Mapping[str, Bytes], weights: Mapping[str, np.ndarray]
) -> bytes:
    """The plan file as bytes; `write_plan` says of what."""
    return b"".join(make_plan(manifest, sections, weights).pieces())


def _with_contracts(manifest: Mapping[str, object], sections: Mapping[str, Bytes]) -> Mapping[str, Bytes]:
    if _EXTENTS in sections:
        return sections
    return {**sections, _EXTENTS: sealed_contracts(manifest)}


def _manifest_text(manifest: Mapping[str, object]) -> bytes:
    return json.dumps(manifest, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _file_pieces(sections: Mapping[str, Bytes], stream: safetensors_section.Stream, version: int) -> Iterable[Bytes]:
    order = sorted(sections, key=lambda name: (name not in (_MANIFEST, MACHINES), name))
    bodies = {name: memoryview(sections[name]).cast("B") for name in order}
    # Read twice, for the digest and for the file, so that no copy of the weights is ever there.
    digests = {name: _digest([body]) for name, body in bodies.items()} | {_WEIGHTS: _digest(stream.pieces())}
    sizes = {name: len(body) for name, body in bodies.items()} | {_WEIGHTS: stream.size}
    index, offsets, end = _layout(sizes, digests)
    start = _START.pack(MAGIC, version, end, len(index))
    yield start + hashlib.sha256(start + index).digest()
    yield index
    position = _HEADER.size + len(index)
    for name, body in bodies.items():
        yield bytes(offsets[name] - position)
        yield body
        position = offsets[name] + sizes[name]
    yield bytes(offsets[_WEIGHTS] - position)
    yield from stream.pieces()


def size_and_digest(header: bytes) -> tuple[int, str]:
    """What the header of a plan file says of the file: its length, and the digest that covers all of it."""
    if len(header) != HEADER_BYTES:
        raise PlanError("this is no mlirt plan file: it is shorter than a header")
    _, _, size, _, digest = _HEADER.unpack(header)
    return size, digest.hex()


def _layout(sizes: Mapping[str, int], digests: Mapping[str, str]) -> tuple[bytes, dict[str, int], int]:
    """The index, and the offsets in it; its own length moves the offsets, so it is padded to a fixed length."""
    reserved = sum(len(json.dumps(name)) + 120 for name in sizes) + 16
    position = _HEADER.size + reserved
    offsets: dict[str, int] = {}
    for name, size in sizes.items():
        offsets[name] = -(-position // ALIGNMENT) * ALIGNMENT
        position = offsets[name] + size
    rows = [[name, offsets[name], sizes[name], digests[name]] for name in sizes]
    index = json.dumps(rows, separators=(",", ":")).encode()
    return index + b" " * (reserved - len(index)), offsets, position


def _digest(body: Iterable[Bytes]) -> str:
    state = hashlib.sha256()
    for piece in body:
        state.update(piece)
    return state.hexdigest()


def as_json(manifest: Mapping[str, object]) -> Mapping[str, object]:
    """A manifest as it will be read from a file."""
    return cast("Mapping[str, object]", _json_form(manifest))


_AS_IT_IS = frozenset({str, int, bool, type(None)})
"""The types whose values JSON has as they are: of most values of a manifest nothing else is asked."""


def _json_form(value: object) -> object:
    """`value` as JSON has it: tuples as lists, floats that are not finite as their names."""
    kind = type(value)
    if kind is dict:
        table = cast("dict[object, object]", value)
        return {str(key): one if type(one) in _AS_IT_IS else _json_form(one) for key, one in table.items()}
    if kind is list or kind is tuple:
        return [one if type(one) in _AS_IT_IS else _json_form(one) for one in cast("Sequence[object]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): _json_form(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_json_form(item) for item in cast("list[object]", value)]
    return value


@reports_shortage("the plan file")
def read_plan(source: str | os.PathLike[str] | Bytes, *, check_weights: bool = True) -> Plan:
    """Open a plan file or its bytes; raise PlanError where it is damaged. Without `check_weights` the digest of the
    weights is not compared: the rest of a mapped file is all that is read.

    A file of at most 32 MiB is read. A larger one is mapped, so that its weights are read when they are used and shared
    by processes: while an engine has it, it may be replaced (as `save` and `mv` do) but not written to. Who cannot say
    so passes the bytes.
    """
    opened = open_source(source)
    try:
        return _plan_of(opened, check_weights)
    except PlanError as error:
        if isinstance(source, str | os.PathLike):
            raise PlanError(f"{os.fspath(source)}: {error}") from error
        raise


def _plan_of(opened: PlanSource, check_weights: bool) -> Plan:
    index = _read_index(opened.data)
    if any(row[0] == MACHINES for row in index):
        return _plan_for_this_machine(opened, index, check_weights)
    bodies = _read_sections(opened.data, index, () if check_weights else (_WEIGHTS,))
    if _MANIFEST not in bodies or _WEIGHTS not in bodies:
        raise PlanError("damaged plan file: it has no manifest or no weights section")
    origin = PlanOrigin(opened.file, bodies[_WEIGHTS], next(row[3] for row in index if row[0] == _WEIGHTS))
    identity = origin.weights_digest if check_weights else opened.state or None
    forms = Forms()
    weights = safetensors_section.parse(bodies.pop(_WEIGHTS), identity, forms)
    manifest = _read_json(bodies.pop(_MANIFEST), "the manifest", _MAX_MANIFEST)
    if _EXTENTS not in bodies:
        raise PlanError("the plan file does not say what its kernels touch (section 'extents'); please rebuild it")
    parsed = _parsed(manifest, bodies, {key: array.nbytes for key, array in weights.items()})
    opened.check_unchanged()
    opened.release_pages()
    record, sections = cast("Mapping[str, object]", manifest), cast("Mapping[str, Bytes]", bodies)
    return Plan(parsed, record, sections, weights, origin, forms)


def _plan_for_this_machine(opened: PlanSource, index: list[tuple[str, int, int, str]], check_weights: bool) -> Plan:
    """The plan of several that suits this machine best; the first one where none does. Only its sections are read."""
    bodies = _read_sections(opened.data, index, [row[0] for row in index if row[0] != MACHINES])
    digests = {row[0]: row[3] for row in index}
    machines = machines_of(bodies[MACHINES])
    chosen = choose(machines, gpu_here) or machines[0]
    stream = bodies.get(_WEIGHTS)
    if stream is None:
        raise PlanError("damaged plan file: it has no weights section")
    if check_weights:
        _check_digest(_WEIGHTS, stream, digests[_WEIGHTS])

    def parts_of(one: Machine, identity: str | None = None) -> Variant:
        for name in one.sections.values():
            if name not in bodies:
                raise PlanError(f"damaged plan file: there is no section {name[:80]!r}")
            _check_digest(name, bodies[name], digests[name])
        own = {name: bodies[place] for name, place in one.sections.items()}
        if not own.keys() >= {_MANIFEST, _EXTENTS}:
            raise PlanError("damaged plan file: a machine has no manifest, or nobody says what its kernels touch")
        places = {key: Place.of(place) for key, place in one.weights.items()}
        stored = safetensors_section.parse(stream, identity, None, {place.name for place in places.values()})
        weights = {key: place.take(stored) for key, place in places.items()}
        record = _read_json(own[_MANIFEST], "the manifest", _MAX_MANIFEST)
        return Variant(one.name, cast("Mapping[str, object]", record), own, weights)

    found = parts_of(chosen, digests[_WEIGHTS] if check_weights else None)
    sections = {name: body for name, body in found.sections.items() if name != _MANIFEST}
    parsed = _parsed(found.manifest, sections, {key: array.nbytes for key, array in found.weights.items()})
    if not chosen.describes(parsed.target.kind, parsed.target.triple, parsed.target.features):
        raise PlanError(f"damaged plan file: the plan for {chosen.name[:80]} is for another machine")
    opened.check_unchanged()
    variants = Variants(machines, chosen.name, lambda: [parts_of(one) for one in machines])
    origin = PlanOrigin(opened.file, stream, digests[_WEIGHTS])
    return Plan(parsed, found.manifest, sections, found.weights, origin, Forms(), variants)


def gpu_here() -> GpuHere | None:
    """What matters of the GPU that is here; None where there is none."""
    from mlirt.runtime.cuda_driver import open_driver

    try:
        driver = open_driver()
        return GpuHere(driver.compute_capability(), int(driver.figures()["shared_bytes"]))
    except MlirtError:
        return None


def _read_index(data: memoryview) -> list[tuple[str, int, int, str]]:
    if len(data) < _HEADER.size or bytes(data[:8]) != MAGIC:
        raise PlanError("this is no mlirt plan file (its first bytes differ); Engine.save or --saveEngine make one")
    _, version, file_bytes, index_bytes, digest = _HEADER.unpack(data[: _HEADER.size])
    if version not in _READABLE:
        raise PlanError(f"the plan file has version {version}, this mlirt reads {CONTAINER_VERSION}; please rebuild it")
    if file_bytes != len(data):
        raise PlanError(f"damaged plan file: it should have {file_bytes} bytes but has {len(data)}")
    end = _HEADER.size + index_bytes
    if index_bytes > _MAX_INDEX or end > len(data):
        raise PlanError("damaged plan file: the index is longer than the file")
    start = bytes(data[: _START.size]) if version >= _HEADER_IS_SIGNED else b""
    if hashlib.sha256(start + data[_HEADER.size : end]).digest() != digest:
        raise PlanError("damaged plan file: the digest of the index does not match")
    rows = _read_json(data[_HEADER.size : end], "the index", _MAX_INDEX)
    if not isinstance(rows, list):
        raise PlanError("damaged plan file: the index is no list")
    index: list[tuple[str, int, int, str]] = []
    for raw in cast("list[object]", rows):
        row = cast("list[object]", raw) if isinstance(raw, list) else []
        if [type(field) for field in row] != [str, int, int, str]:
            raise PlanError("damaged plan file: a row of the index is malformed")
        name, offset, size, section_digest = cast("tuple[str, int, int, str]", tuple(row))
        index.append((name, offset, size, section_digest))
    return index


def _read_sections(
    data: memoryview, index: list[tuple[str, int, int, str]], unchecked: Collection[str]
) -> dict[str, memoryview]:
    position = _HEADER.size + _HEADER.unpack(data[: _HEADER.size])[3]
    bodies: dict[str, memoryview] = {}
    for name, offset, size, digest in index:
        end = offset + size
        if size < 0 or offset % ALIGNMENT or not position <= offset < position + ALIGNMENT or end > len(data):
            raise PlanError(f"damaged plan file: section {name[:80]!r} lies outside of the file or over another")
        if any(data[position:offset]):
            raise PlanError(f"damaged plan file: the bytes before section {name[:80]!r} are not zero")
        if name in bodies:
            raise PlanError(f"damaged plan file: two sections are called {name[:80]!r}")
        bodies[name] = data[offset:end]
        if name not in unchecked:
            _check_digest(name, bodies[name], digest)
        position = end
    if position != len(data):
        raise PlanError("damaged plan file: there are bytes after the last section")
    return bodies


def _check_digest(name: str, body: memoryview, digest: str) -> None:
    if hashlib.sha256(body).hexdigest() != digest:
        raise PlanError(f"damaged plan file: the digest of section {name[:80]!r} does not match")


def _read_json(text: memoryview, what: str, limit: int) -> object:
    if len(text) > limit:
        raise PlanError(f"damaged plan file: {what} is longer than {limit} bytes")
    try:
        return cast("object", json.loads(bytes(text)))
    except (ValueError, RecursionError) as error:
        raise PlanError(f"damaged plan file: {what} is not JSON") from error
