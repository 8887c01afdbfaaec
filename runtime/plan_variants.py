"""Plans of one network for several machines in one file: a section says which sections and weights belong to each.

Every variant is a whole plan: its own manifest, contracts and object code. Sections with equal bytes are stored once,
and so are weights; those of another variant in another order are stored as that order (runtime/strided_orders.py). The
section `machines` is JSON: a list of tables with `name`, `kind`, `triple`, `features`, `archs`, on GPUs `shared_bytes`
(that a block of some kernel needs), `sections` (name in the plan: name in the file) and `weights` (key: name in the
section `weights`, or that of another array with `walk`, `dtype` and `shape`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np

from mlirt.atomic_file import Bytes
from mlirt.errors import PlanError
from mlirt.runtime.data_types import SAFETENSORS_NAMES, numpy_dtype
from mlirt.runtime.host_cpu import host_features, host_triple, runs_here
from mlirt.runtime.strided_orders import Order, order_of, ordered, signature, walk_of

MACHINES = "machines"
_MAX_VARIANTS = 64
_MIN_ORDERED_BYTES = 1 << 14
"""Smaller weights are stored as they are."""


@dataclass(frozen=True)
class Place:
    """Where a weight is: the name in the section; or an array there whose words in an `order` are this one's."""

    name: str
    order: Order | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()

    def as_json(self) -> object:
        """As the section `machines` has it."""
        if self.order is None:
            return self.name
        return {"from": self.name, "walk": self.order.as_json(), "dtype": self.dtype, "shape": list(self.shape)}

    @staticmethod
    def of(record: object) -> Place:
        """What `as_json` has written; raises PlanError for what is none."""
        if isinstance(record, str):
            return Place(record)
        table = cast("dict[str, object]", record) if isinstance(record, dict) else {}
        name, dtype = table.get("from"), table.get("dtype")
        order, shape = walk_of(table.get("walk")), _naturals(table.get("shape"))
        known = isinstance(name, str) and isinstance(dtype, str) and dtype in SAFETENSORS_NAMES
        if not known or order is None or shape is None:
            raise PlanError(f"damaged plan file: section {MACHINES!r} places a weight nowhere")
        return Place(cast("str", name), order, cast("str", dtype), shape)

    def take(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """The weight, of the arrays of the section; raises PlanError where it lies outside of them."""
        stored = arrays.get(self.name)
        if stored is None:
            raise PlanError(f"damaged plan file: there is no weight {self.name[:80]!r}")
        if self.order is None:
            return stored
        dtype = numpy_dtype(self.dtype)
        same = prod(self.shape) * dtype.itemsize == prod(self.order.shape) * self.order.word_bytes
        if (
            not same
            or stored.nbytes % self.order.word_bytes
            or not self.order.fits(stored.nbytes // self.order.word_bytes)
        ):
            raise PlanError(f"damaged plan file: a weight lies outside of {self.name[:80]!r}")
        return ordered(stored, self.order, dtype, self.shape)


@dataclass(frozen=True)
class GpuHere:
    """A GPU's compute capability, and the shared memory that a block may have (0 where the driver does not tell)."""

    capability: tuple[int, int]
    shared_bytes: int = 0


AskGpu: TypeAlias = "Callable[[], GpuHere | None]"
"""The GPU that is here, asked for where that matters; None where there is none."""


@dataclass(frozen=True)
class Machine:
    """What one variant is for, and where its parts are."""

    name: str
    kind: str
    triple: str
    features: tuple[str, ...]
    archs: tuple[str, ...]
    sections: Mapping[str, str]
    weights: Mapping[str, object]
    """By key what `Place.of` reads."""
    shared_bytes: int = 0
    """That a block of some kernel needs on a GPU."""

    def rank_here(self, gpu: AskGpu) -> tuple[int, ...] | None:
        """How well its code suits this machine, the greatest best; None where it does not run here."""
        if self.kind == "cpu":
            return (len(self.features),) if runs_here(self.triple, self.features) else None
        from mlirt.runtime.cuda_architectures import rank_of

        found = gpu()
        if found is None or 0 < found.shared_bytes < self.shared_bytes:
            return None
        return max((one for arch in self.archs if (one := rank_of(arch, found.capability)) is not None), default=None)

    def describes(self, kind: str, triple: str, features: Sequence[str]) -> bool:
        """Whether this is the machine that a manifest is for."""
        return (self.kind, self.triple, sorted(self.features)) == (kind, triple, sorted(features))

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.archs) or self.triple})"


@dataclass(frozen=True)
class Variant:
    """A whole plan as sections, the manifest among them, and weights, with the name of the machine that it is for."""

    name: str
    manifest: Mapping[str, object]
    sections: Mapping[str, Bytes]
    weights: Mapping[str, np.ndarray]


def choose(machines: Sequence[Machine], gpu: AskGpu) -> Machine | None:
    """The variant that suits this machine best: a GPU's, machine code before PTX, the newest of each; else the
    processor's with the most features, which include wider vectors.
    """
    ranks = [(one.kind == "cuda", rank, one) for one in machines if (rank := one.rank_here(gpu)) is not None]
    return max(ranks, key=lambda row: row[:2])[2] if ranks else None


def refuse(machines: Sequence[Machine], gpu: AskGpu) -> PlanError:
    """The error for a machine that none of the variants runs on."""
    found = gpu()
    device = [] if found is None else [f"GPU sm_{found.capability[0]}{found.capability[1]}"]
    having = ", ".join(map(str, machines))
    wide = [name for name in ("avx512f", "avx2", "sse4.2", "sve256", "dotprod", "lse") if name in host_features()]
    here = ", ".join([host_triple(), *wide[:2], *device])
    return PlanError(
        f"the plan has code for {having[:400]}, and none of it runs on this machine ({here}); rebuild it with --cpu or "
        "--gpu for this one"
    )


def merged(variants: Sequence[Variant]) -> tuple[dict[str, Bytes], dict[str, np.ndarray]]:
    """The sections of the file that holds some plans, and its weights."""
    sections, names = dict[str, Bytes](), dict[bytes, str]()
    stored = _StoredWeights()
    rows: list[dict[str, object]] = []
    for number, variant in enumerate(variants):
        own = dict[str, str]()
        for name, body in sorted(variant.sections.items()):
            own[name] = names.setdefault(hashlib.sha256(body).digest(), f"{number}/{name}")
            sections.setdefault(own[name], body)
        weights = {
            key: stored.put(f"{number}/{key}", array).as_json() for key, array in sorted(variant.weights.items())
        }
        rows.append(_row(variant, own, weights))
    sections[MACHINES] = json.dumps(rows, sort_keys=True, separators=(",", ":")).encode()
    return sections, stored.arrays


class _StoredWeights:
    """The arrays of a file, none of them twice, and none that is another one in another order."""

    def __init__(self) -> None:
        self.arrays = dict[str, np.ndarray]()
        self._places = dict[bytes, Place]()
        self._alike = dict[tuple[str, int], list[str]]()

    def put(self, name: str, array: np.ndarray) -> Place:
        """Where an array is, which is stored under a name if it has to be."""
        flat = np.ascontiguousarray(array)
        state = hashlib.sha256(f"{array.dtype}{array.shape}".encode())
        state.update(flat.reshape(-1).view(np.uint8).data)
        found = self._places.get(state.digest())
        if found is None:
            found = self._places[state.digest()] = self._new(name, flat)
        return found

    def _new(self, name: str, array: np.ndarray) -> Place:
        if array.nbytes >= _MIN_ORDERED_BYTES:
            alike = self._alike.setdefault((array.dtype.name, signature(array)), [])
            for other in alike:
                order = order_of(array, np.ascontiguousarray(self.arrays[other]))
                if order is not None:
                    return Place(other, order, array.dtype.name, array.shape)
            alike.append(name)
        self.arrays[name] = array
        return Place(name)


def _row(variant: Variant, sections: Mapping[str, str], weights: Mapping[str, object]) -> dict[str, object]:
    made_for = machine_of(variant.name, variant.manifest)
    own = {"name": made_for.name, "kind": made_for.kind, "triple": made_for.triple}
    lists = {"features": list(made_for.features), "archs": list(made_for.archs)}
    room = {"shared_bytes": made_for.shared_bytes} if made_for.kind == "cuda" else {}
    return {**own, **lists, **room, "sections": sections, "weights": weights}


def machine_of(name: str, manifest: Mapping[str, object]) -> Machine:
    """What a manifest says of the machine that a plan is for."""
    target = cast("Mapping[str, Any]", manifest["target"])
    kernels = cast("Sequence[Mapping[str, Any]]", manifest["kernels"])
    homes = [one.get("object") for one in kernels]
    archs = sorted({arch for one in homes if isinstance(one, Mapping) for arch in cast("Mapping[str, str]", one)})
    features = cast("Sequence[str]", target.get("features") or ())
    shared = max((cast("int", one.get("shared_bytes") or 0) for one in kernels), default=0)
    return Machine(name, target["kind"], target.get("triple") or "", tuple(features), tuple(archs), {}, {}, shared)


def machines_of(section: memoryview) -> tuple[Machine, ...]:
    """What the section `machines` says; raises PlanError where it is damaged."""
    try:
        rows = cast("object", json.loads(bytes(section)))
    except (ValueError, RecursionError) as error:
        raise PlanError(f"damaged plan file: section {MACHINES!r} is not JSON") from error
    if not isinstance(rows, list) or not 0 < len(cast("list[object]", rows)) <= _MAX_VARIANTS:
        raise PlanError(f"damaged plan file: section {MACHINES!r} is no list of machines")
    return tuple(_machine(row) for row in cast("list[object]", rows))


def _machine(row: object) -> Machine:
    table = cast("dict[str, object]", row) if isinstance(row, dict) else {}
    words = [table.get(name) for name in ("name", "kind", "triple")]
    features, archs = _texts(table.get("features")), _texts(table.get("archs"))
    sections, weights = table.get("sections"), table.get("weights")
    homes = _texts(list(cast("dict[str, object]", sections).values())) if isinstance(sections, dict) else None
    shared = _naturals([table.get("shared_bytes", 0)])
    if None in (_texts(words), features, archs, homes, shared) or not isinstance(weights, dict):
        raise PlanError(f"damaged plan file: a machine of section {MACHINES!r} is malformed")
    name, kind, triple = cast("list[str]", words)
    tables = cast("dict[str, str]", sections), cast("dict[str, object]", weights)
    return Machine(name, kind, triple, features or (), archs or (), *tables, *(shared or ()))


def _texts(values: object) -> tuple[str, ...] | None:
    """A list of texts; None for what is none."""
    found = cast("list[object]", values) if isinstance(values, list) else [None]
    texts = tuple(one for one in found if isinstance(one, str))
    return texts if len(texts) == len(found) else None


def _naturals(values: object) -> tuple[int, ...] | None:
    """A list of at most 32 lengths; None for what is none."""
    given = cast("list[object]", values) if isinstance(values, list) else [None]
    found = tuple(one for one in given if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 1 << 40)
    return found if len(found) == len(given) <= 32 else None


@dataclass(frozen=True)
class Variants:
    """All plans of a file, of which one is loaded: the machines that they are for, and their parts when asked for."""

    machines: tuple[Machine, ...]
    chosen: str
    read: Callable[[], Sequence[Variant]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.machines)
