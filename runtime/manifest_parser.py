"""Validates the JSON table of contents of a plan and returns it as typed records.

Refused with a PlanError of one line: unknown fields, wrong types, indices out of range, arguments that do not fit the
kernel's signature, views in a circle, buffers used outside of their lifetime, sections or weights that are not there.
"""

from collections.abc import Collection, Mapping, Sequence
from math import inf, nan, prod
from typing import cast

from mlirt.errors import PlanError
from mlirt.runtime.data_types import SAFETENSORS_NAMES
from mlirt.runtime.expressions import Expression
from mlirt.runtime.json_record import JsonRecord
from mlirt.runtime.library_calls import LibraryCall, parse_call
from mlirt.runtime.manifest import (
    ARGUMENT_TYPES,
    BORDER_NUMBERS,
    FORMAT,
    Argument,
    Buffer,
    BufferArgument,
    FloatArgument,
    IntArgument,
    Kernel,
    Launch,
    Manifest,
    Symbol,
    Target,
    Tensor,
)
from mlirt.runtime.manifest_maps import map_argument
from mlirt.runtime.manifest_rules import check_halos, check_lifetimes, check_tensors, check_weights, roots
from mlirt.runtime.plugin_calls import parse_plugin
from mlirt.runtime.profile_ranges import ShapeRange
from mlirt.runtime.program import LengthRequirement
from mlirt.runtime.program_parser import LENGTH_FIELDS, parse_length_requirement, parse_program
from mlirt.runtime.state_pairs import parse_state
from mlirt.tensor_formats import LAYOUTS, LINEAR

_MANY = 1 << 20
_MAX_RANK = 64
_MAX_ALIGNMENT = 4096
_MAX_THREADS_PER_BLOCK = 1024
_MAX_SHARED_BYTES = 1 << 20
_MAX_CLUSTER = 16
_NON_FINITE = {"inf": inf, "-inf": -inf, "nan": nan}
_TOP_FIELDS = (
    *("format", "mlirt", "name", "target", "symbols", "sizes", "requirements", "inputs", "outputs", "state"),
    *("buffers", "kernels", "launches", "program", "conditions", "main", "profiles", "layers", "info", "parts"),
)


def parse_manifest(value: object, sections: Collection[str], weight_sizes: Mapping[str, int]) -> Manifest:
    """Validate `value` against the plan's section names and the byte sizes of its weights."""
    top = JsonRecord(value, "plan", _TOP_FIELDS)
    version = top.integer("format", 0, 1 << 31)
    if version != FORMAT:
        raise PlanError(f"the plan has format version {version}, this mlirt reads version {FORMAT}; please rebuild it")
    target = _target(top)
    bound, sizes = _symbol_names(top), top.texts("sizes", _MANY, [])
    parts = top.optional_text("parts")
    names = (*bound, *sizes, *([] if parts is None else [parts]))
    if len(set(names)) != len(names):
        raise top.error("sizes", "two symbols have one name")
    raw_buffers, raw_launches = top.items("buffers", _MANY), top.items("launches", _MANY)
    inputs = _tensors(top, "inputs", names, len(raw_buffers))
    buffers = tuple(
        _buffer(raw, f"buffers[{i}]", len(raw_buffers), len(raw_launches), names) for i, raw in enumerate(raw_buffers)
    )
    kernels = tuple(
        _kernel(raw, f"kernels[{i}]", target, sections, weight_sizes)
        for i, raw in enumerate(top.items("kernels", _MANY))
    )
    outputs = _tensors(top, "outputs", names, len(buffers))
    manifest = Manifest(
        mlirt=top.text("mlirt"),
        name=top.text("name"),
        target=target,
        symbols=_symbols(top, bound, inputs),
        sizes=sizes,
        parts=parts,
        requirements=_requirements(top, bound),
        inputs=inputs,
        outputs=outputs,
        state=parse_state(top, inputs, outputs, sections),
        buffers=buffers,
        kernels=kernels,
        launches=tuple(
            _launch(raw, f"launches[{i}]", target, kernels, len(buffers), names) for i, raw in enumerate(raw_launches)
        ),
        program=parse_program(top, len(raw_launches), len(buffers), names, sizes),
        conditions=_conditions(top, sections),
        main=top.optional_text("main"),
        profiles=tuple(_profile(raw, i, inputs) for i, raw in enumerate(top.items("profiles", 1024, []))),
        layers=tuple(_layer(raw, i) for i, raw in enumerate(top.items("layers", _MANY, []))),
        info=top.table("info", {}),
        roots=roots(buffers),
    )
    if target.kind == "cpu" and manifest.launches and manifest.main not in sections:
        raise top.error("main", f"there is no section {str(manifest.main)[:40]!r}")
    check_halos(buffers)
    check_weights(buffers, weight_sizes)
    check_tensors(manifest)
    check_lifetimes(manifest)
    return manifest


def _requirements(top: JsonRecord, names: Collection[str]) -> tuple[LengthRequirement, ...]:
    raw = enumerate(top.items("requirements", _MANY, []))
    records = (JsonRecord(one, f"requirements[{i}]", LENGTH_FIELDS) for i, one in raw)
    return tuple(parse_length_requirement(record, names) for record in records)


def _conditions(top: JsonRecord, sections: Collection[str]) -> dict[str, str]:
    found = top.table("conditions", {})
    for section in found.values():
        if not isinstance(section, str) or section not in sections:
            raise top.error("conditions", f"there is no section {str(section)[:40]!r}")
    return cast("dict[str, str]", found)


def _target(top: JsonRecord) -> Target:
    record = JsonRecord(top.get("target"), "target", "kind triple features vector_bits arch device".split())
    kind = record.text("kind")
    if kind not in ("cpu", "cuda"):
        raise record.error("kind", f"expected 'cpu' or 'cuda', got {kind[:40]!r}")
    return Target(
        kind=kind,
        triple=record.text("triple", ""),
        features=record.texts("features", 1024, []),
        vector_bits=record.integer("vector_bits", 0, 1 << 16, 0),
        arch=record.text("arch", "" if kind == "cpu" else None),
        device=record.text("device", ""),
    )


def _symbol_names(top: JsonRecord) -> tuple[str, ...]:
    records = [JsonRecord(raw, "symbols[]", ("name", "input", "axis")) for raw in top.items("symbols", _MANY, [])]
    names = tuple(record.text("name") for record in records)
    if len(set(names)) != len(names):
        raise top.error("symbols", "two symbols have one name")
    return names


def _symbols(top: JsonRecord, names: Collection[str], inputs: tuple[Tensor, ...]) -> tuple[Symbol, ...]:
    found: list[Symbol] = []
    for i, (name, raw) in enumerate(zip(names, top.items("symbols", _MANY, []), strict=True)):
        record = JsonRecord(raw, f"symbols[{i}]", ("name", "input", "axis"))
        source = record.index("input", len(inputs), "inputs")
        axis = record.index("axis", len(inputs[source].shape), "axes")
        if inputs[source].shape[axis] != name:
            raise record.error("axis", f"axis {axis} of input {inputs[source].name!r} is not the symbol {name!r}")
        found.append(Symbol(name, source, axis))
    return tuple(found)


_TENSOR_FLAGS = ("squeezed", "counts_runs")
_TENSOR_FIELDS = {
    "inputs": ("name", "dtype", "shape", "buffer", "counts_runs", "format", "logical", "needed_by"),
    "outputs": ("name", "dtype", "shape", "buffer", "squeezed", "format", "logical"),
}


def _tensors(top: JsonRecord, key: str, names: Collection[str], buffer_count: int) -> tuple[Tensor, ...]:
    found: list[Tensor] = []
    for i, raw in enumerate(top.items(key, _MANY)):
        record = JsonRecord(raw, f"{key}[{i}]", _TENSOR_FIELDS[key])
        dtype = record.text("dtype")
        if dtype not in SAFETENSORS_NAMES:
            raise record.error("dtype", f"unknown data type {dtype[:40]!r}")
        shape = tuple(record.formulas("shape", names, _MAX_RANK))
        buffer = record.index("buffer", buffer_count, "buffers")
        squeezed, counts_runs = (name in _TENSOR_FIELDS[key] and record.flag(name) for name in _TENSOR_FLAGS)
        if counts_runs and (dtype, shape) != ("int64", ()):
            raise record.error("counts_runs", "the number of a run is one int64")
        if not counts_runs and any(before.counts_runs for before in found):
            raise record.error("counts_runs", "inputs of the caller come before the number of the run")
        format, logical = _format(record, shape, names)
        layers = record.texts("needed_by", _MAX_RANK, []) if key == "inputs" else ()
        if layers and len(layers) != len(shape):
            raise record.error("needed_by", f"expected {len(shape)} layers, got {len(layers)}")
        found.append(Tensor(record.text("name"), dtype, shape, buffer, squeezed, counts_runs, format, logical, layers))
    if len({tensor.name for tensor in found}) != len(found):
        raise top.error(key, "two of them have one name")
    return tuple(found)


def _format(
    record: JsonRecord, shape: tuple[Expression, ...], names: Collection[str]
) -> tuple[str, tuple[Expression, ...] | None]:
    """The format of a tensor, and its shape as callers know it, which must be that of what is stored."""
    name = record.text("format", LINEAR)
    if name == LINEAR:
        return name, None
    if name not in LAYOUTS:
        raise record.error("format", f"there is no tensor format {name[:40]!r}")
    layout, logical = LAYOUTS[name], tuple(record.formulas("logical", names, _MAX_RANK))
    if len(logical) < layout.from_end or not isinstance(logical[layout.axis(len(logical))], int):
        raise record.error("logical", f"no tensor of this shape has the format {name}")
    if layout.stored_shape(logical) != shape:
        raise record.error("logical", f"the format {name} does not store it as an array of the tensor's shape")
    return name, logical


_MAX_BYTE = 255
_BUFFER_FIELDS = "kind bytes first last halo border fill view_of view_offset weight offset align".split()


def _buffer(raw: object, where: str, count: int, launches: int, names: Collection[str]) -> Buffer:
    record = JsonRecord(raw, where, _BUFFER_FIELDS)
    kind = record.text("kind")
    if kind not in ("arena", "input", "output", "weight"):
        raise record.error("kind", f"expected 'arena', 'input', 'output' or 'weight', got {kind[:40]!r}")
    first = record.integer("first", 0, max(launches, 1), 0)
    last = record.integer("last", first, max(launches, 1), max(launches, 1))
    align = record.integer("align", 1, _MAX_ALIGNMENT, 64)
    if align & (align - 1):
        raise record.error("align", f"{align} is no power of two")
    border = record.formulas("border", names, BORDER_NUMBERS, [])
    if border and (len(border) != BORDER_NUMBERS or record.optional_text("halo") is None or kind != "arena"):
        raise record.error("border", f"expected {BORDER_NUMBERS} numbers, of a buffer with a halo in the arena")
    return Buffer(
        kind=kind,
        size=record.formula("bytes", names),
        first=first,
        last=last,
        halo=record.optional_text("halo"),
        fill=record.integer("fill", 0, _MAX_BYTE, 0),
        view_of=None if record.get("view_of", None) is None else record.index("view_of", count, "buffers"),
        view_offset=record.formula("view_offset", names, 0),
        weight=record.optional_text("weight"),
        offset=None if record.get("offset", None) is None else record.formula("offset", names),
        align=align,
        border=tuple(border),
    )


_LAUNCH_KINDS = ("cluster", "dependent_launch", "cooperative")
_LIBRARY_FIELDS = ("library", "call")
_KERNEL_FIELDS = (
    *("name", "symbol", "object", "block", "shared_bytes", "args", "written"),
    *_LAUNCH_KINDS,
    *_LIBRARY_FIELDS,
    "plugin",
)


def _kernel(
    raw: object, where: str, target: Target, sections: Collection[str], weight_sizes: Mapping[str, int]
) -> Kernel:
    record = JsonRecord(raw, where, _KERNEL_FIELDS)
    field = record.get("object")
    if isinstance(field, str):
        objects: dict[str, object] = {target.arch: field}
    else:
        objects = record.table("object")
    for section in objects.values():
        if not isinstance(section, str) or section not in sections:
            raise record.error("object", f"there is no section {str(section)[:40]!r}")
    sizes = record.items("block", 3, [1, 1, 1])
    block = tuple(size if isinstance(size, int) and not isinstance(size, bool) else 0 for size in sizes)
    if len(block) != 3 or min(block) < 1 or prod(block) > _MAX_THREADS_PER_BLOCK:
        raise record.error("block", f"expected three sizes with a product in [1, {_MAX_THREADS_PER_BLOCK}]")
    args = record.texts("args", 1024)
    if any(arg not in ARGUMENT_TYPES for arg in args):
        raise record.error("args", f"expected types of {', '.join(ARGUMENT_TYPES)}")
    written = _written(record, len(args))
    return Kernel(
        name=record.text("name"),
        symbol=record.text("symbol"),
        objects=cast("dict[str, str]", objects),
        block=block,
        shared_bytes=record.integer("shared_bytes", 0, _MAX_SHARED_BYTES, 0),
        args=args,
        cluster=record.integer("cluster", 1, _MAX_CLUSTER, 1),
        dependent_launch=record.flag("dependent_launch"),
        written=written,
        cooperative=record.flag("cooperative"),
        call=_call(record, target, args),
        plugin=parse_plugin(record, args, written, weight_sizes),
    )


def _call(record: JsonRecord, target: Target, args: Sequence[str]) -> LibraryCall | None:
    if record.optional_text("library") is None:
        return None
    if target.kind != "cuda":
        raise record.error("library", "only a plan for CUDA calls libraries")
    return parse_call(record, args)


_LAUNCH_FIELDS = ("kernel", "layer", "args", "grid", "no_barrier", "serial")


def _written(record: JsonRecord, count: int) -> frozenset[int]:
    """The places of the arguments that are written through; all of them where the record is silent."""
    found = record.items("written", count, list(range(count)))
    places = frozenset(
        item for item in found if isinstance(item, int) and not isinstance(item, bool) and 0 <= item < count
    )
    if len(places) != len(found):
        raise record.error("written", f"expected different places of the {count} arguments")
    return places


def _launch(
    raw: object, where: str, target: Target, kernels: tuple[Kernel, ...], buffer_count: int, names: Collection[str]
) -> Launch:
    record = JsonRecord(raw, where, _LAUNCH_FIELDS)
    kernel = record.index("kernel", len(kernels), "kernels")
    expected, given = kernels[kernel].args, record.items("args", 1024)
    if len(given) != len(expected):
        raise record.error("args", f"kernel {kernels[kernel].name!r} takes {len(expected)} arguments, got {len(given)}")
    grid = record.formulas("grid", names, 3, [1, 1, 1] if target.kind == "cpu" else None)
    if len(grid) != 3:
        raise record.error("grid", "expected three sizes")
    return Launch(
        kernel=kernel,
        layer=record.text("layer"),
        args=tuple(
            _argument(item, f"{where}.args[{i}]", kind, buffer_count, names)
            for i, (item, kind) in enumerate(zip(given, expected, strict=True))
        ),
        grid=tuple(grid),
        no_barrier=record.flag("no_barrier"),
        serial=record.flag("serial"),
    )


def _part(record: JsonRecord) -> tuple[int, ...]:
    items = record.items("part", _MAX_RANK, [])
    numbers = tuple(item for item in items if isinstance(item, int) and not isinstance(item, bool) and item >= 0)
    if len(numbers) != len(items):
        raise record.error("part", "expected whole numbers")
    return numbers


def _argument(raw: object, where: str, kind: str, buffer_count: int, names: Collection[str]) -> Argument:
    if kind == "ptr":
        record = JsonRecord(raw, where, ("buffer", "offset", "bytes", "part"))
        return BufferArgument(
            buffer=record.index("buffer", buffer_count, "buffers"),
            offset=record.formula("offset", names, 0),
            extent=None if record.get("bytes", None) is None else record.formula("bytes", names),
            part=_part(record),
        )
    if kind == "map":
        table = JsonRecord(raw, where, ("map",)).table("map")
        return map_argument(table, f"{where}.map", buffer_count, names)
    if kind in ("i64", "i32"):
        return IntArgument(JsonRecord(raw, where, ("int",)).formula("int", names))
    record = JsonRecord(raw, where, ("float",))
    number = record.get("float")
    if isinstance(number, str) and number in _NON_FINITE:
        return FloatArgument(_NON_FINITE[number])
    if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < 1e308:
        return FloatArgument(float(number))
    raise record.error("float", f"expected a number, got {str(number)[:40]}")


def _profile(raw: object, i: int, inputs: tuple[Tensor, ...]) -> dict[str, ShapeRange]:
    ranks = {tensor.name: len(tensor.shape) for tensor in inputs}
    profile = JsonRecord(raw, f"profiles[{i}]", ranks)
    found: dict[str, ShapeRange] = {}
    for name, rank in ranks.items():
        if profile.get(name, None) is None:
            continue
        record = JsonRecord(profile.get(name), f"profiles[{i}][{name[:40]!r}]", ("min", "opt", "max"))
        shapes = [_profile_shape(record, key, rank) for key in ("min", "opt", "max")]
        if any(not low <= best <= high for low, best, high in zip(*shapes, strict=True)):
            raise record.error("opt", "expected min <= opt <= max in every dimension")
        found[name] = ShapeRange(*shapes)
    return found


def _profile_shape(record: JsonRecord, key: str, rank: int) -> tuple[int, ...]:
    items = record.items(key, _MAX_RANK)
    shape = tuple(d for d in items if isinstance(d, int) and not isinstance(d, bool) and 0 <= d < 1 << 48)
    if len(shape) != len(items) or len(shape) != rank:
        raise record.error(key, f"expected {rank} dimensions")
    return shape


def _layer(raw: object, i: int) -> Mapping[str, object]:
    if not isinstance(raw, dict):
        raise PlanError(f"plan manifest: layers[{i}]: expected an object, got {type(raw).__name__}")
    return cast("dict[str, object]", raw)
