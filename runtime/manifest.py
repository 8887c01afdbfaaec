"""The table of contents of a plan as typed records, whose fields say what JSON may have for them.

The reader (`manifest_parser.parse_manifest`, the only way in), the builder's writer and docs/plan-format.md follow from
these records, so whoever holds a Manifest may rely on its indices and types. Rules that span records are in
`manifest_rules`. What a record's `check` raises, or a kind of `record_kinds`, is a PlanError with the field's path.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from mlirt.runtime import manifest_fields as kinds
from mlirt.runtime.data_types import SAFETENSORS_NAMES
from mlirt.runtime.expressions import Expression
from mlirt.runtime.extents import Contract
from mlirt.runtime.library_calls import CALL, LIBRARY, LibraryCall
from mlirt.runtime.plugin_calls import PluginCall
from mlirt.runtime.profile_ranges import ShapeRange
from mlirt.runtime.program import PROGRAM, LengthRequirement, Program
from mlirt.runtime.record_kinds import (
    FLAG,
    FORMULA,
    MAX_RANK,
    TABLE,
    TEXT,
    formulas,
    index,
    many,
    nested,
    numbers,
    one_of,
    sections_by_architecture,
    texts,
    whole,
)
from mlirt.runtime.record_schema import Fault, Scope, stored
from mlirt.runtime.state_pairs import StatePair
from mlirt.runtime.tensor_maps import MapLayout
from mlirt.tensor_formats import LAYOUTS, LINEAR

FORMAT = 2
BORDER_NUMBERS = 5
_MAX_ALIGNMENT = 4096
_MAX_SHARED_BYTES = 1 << 20
_MAX_CLUSTER = 16
_MAX_BYTE = 255
_MAX_VECTOR_BITS = 1 << 16


@dataclass(frozen=True)
class Target:
    """The machine that the plan was made for."""

    kind: Literal["cpu", "cuda"] = field(metadata=stored(one_of("cpu", "cuda")))
    triple: str = field(metadata=stored(TEXT, default=""))
    """Of LLVM, on a CPU."""
    features: tuple[str, ...] = field(metadata=stored(texts(1024), default=()))
    """Of the instruction set."""
    vector_bits: int = field(metadata=stored(whole(0, _MAX_VECTOR_BITS), default=0))
    arch: str = field(metadata=stored(TEXT, default=kinds.arch_of_cpu))
    """Of a GPU, such as "sm_90a"; a plan for a CPU may leave it out."""
    device: str = field(default="", metadata=stored(TEXT, default=""))
    """In words, what the estimates of kernels were made for."""


@dataclass(frozen=True)
class Symbol:
    """A named dimension, bound from the actual length of one axis of one input, which is exactly this symbol."""

    name: str = field(metadata=stored(TEXT))
    input: int = field(metadata=stored(index("inputs")))
    axis: int = field(metadata=stored(whole(0, MAX_RANK)))

    def check(self, scope: Scope) -> None:
        """The axis is there, and is that symbol."""
        source = scope.inputs[self.input]
        if self.axis >= len(source.shape):
            raise Fault(f"{self.axis} is no index of the {len(source.shape)} axes", ".axis")
        if source.shape[self.axis] != self.name:
            raise Fault(f"axis {self.axis} of input {source.name!r} is not the symbol {self.name!r}", ".axis")


@dataclass(frozen=True)
class Tensor:
    """A public input or output.

    Every input owns one `input` buffer. An output may name any buffer: an `output` buffer is bound to the returned
    array directly, from any other it is copied after the last launch, whose lifetime must reach the end.
    """

    name: str = field(metadata=stored(TEXT))
    dtype: str = field(metadata=stored(one_of(*SAFETENSORS_NAMES, fault=kinds.unknown_type)))
    """NumPy's name of the element type."""
    shape: tuple[Expression, ...] = field(metadata=stored(formulas()))
    buffer: int = field(metadata=stored(index("buffers")))
    squeezed: bool = field(default=False, metadata=stored(FLAG, default=False, only="outputs"))
    """The output is given without its dimensions of length 1."""
    counts_runs: bool = field(default=False, metadata=stored(FLAG, default=False, only="inputs"))
    """The input is the int64 number of runs that a context has made before, which no caller gives; it comes last."""
    format: str = field(default=LINEAR, metadata=stored(kinds.FORMAT, default=LINEAR))
    """How it lies in memory, by TensorRT's name."""
    logical: tuple[Expression, ...] | None = field(default=None, metadata=stored(formulas(), default=None))
    """The shape as callers know it, where a format has another one in memory, which `shape` is."""
    needed_by: tuple[str, ...] = field(default=(), metadata=stored(texts(MAX_RANK), default=(), only="inputs"))
    """For each dimension the layer that needs it to be what it is, or nothing; empty where no layer does.

    Instead of its name there may be what it says of another length: `{left}` is what is expected, `{right}` what came.
    """

    @property
    def known_shape(self) -> tuple[Expression, ...]:
        """The shape without regard to how it lies in memory."""
        return self.shape if self.logical is None else self.logical

    def check(self, scope: Scope) -> None:
        """The number of runs is one int64; a format stores the logical shape as an array of the other one."""
        if self.counts_runs and (self.dtype, self.shape) != ("int64", ()):
            raise Fault("the number of a run is one int64", ".counts_runs")
        if self.needed_by and len(self.needed_by) != len(self.shape):
            raise Fault(f"expected {len(self.shape)} layers, got {len(self.needed_by)}", ".needed_by")
        if self.format == LINEAR:
            if self.logical is not None:
                raise Fault("a linear tensor has one shape", ".logical")
            return
        layout, logical = LAYOUTS[self.format], self.logical
        if logical is None:
            raise Fault("is missing", ".logical")
        if len(logical) < layout.from_end or not isinstance(logical[layout.axis(len(logical))], int):
            raise Fault(f"no tensor of this shape has the format {self.format}", ".logical")
        if layout.stored_shape(logical) != self.shape:
            raise Fault(f"the format {self.format} does not store it as an array of the tensor's shape", ".logical")


@dataclass(frozen=True)
class Buffer:
    """A piece of memory.

    A view (`view_of`) owns none: its kind, lifetime and offset are ignored; views of views are fine. The `bytes` of a
    weight are a number, at most the stored size; those of an input or output buffer are exactly those of its tensor.
    """

    kind: Literal["arena", "input", "output", "weight"] = field(
        metadata=stored(one_of("arena", "input", "output", "weight"))
    )
    size: Expression = field(metadata=stored(FORMULA, key="bytes"))
    first: int = field(metadata=stored(kinds.LAUNCH, default=0))
    """The first launch of its lifetime. A buffer that is written by launch 3 and last read by launch 5 lives in [3, 5],
    both included; the lifetime covers all uses through its views. Only arena buffers need one.
    """
    last: int = field(metadata=stored(kinds.LAUNCH, default=kinds.last_launch))
    """The last one; without it the buffer lives to the end."""
    halo: str | None = field(metadata=stored(TEXT, default=None))
    """Buffers of one class have equal sizes and the same `fill`; all bytes of their memory are that before the first
    run of a shape. With a `border` only those of the border are, whenever a launch uses the buffer: it may share memory
    with any other then.
    """
    fill: int = field(metadata=stored(whole(0, _MAX_BYTE), default=0))
    """The byte that a halo holds."""
    view_of: int | None = field(metadata=stored(index("buffers"), default=None))
    """The buffer whose bytes it shows."""
    view_offset: Expression = field(metadata=stored(FORMULA, default=0))
    """From which byte of that on."""
    weight: str | None = field(metadata=stored(TEXT, default=None))
    """The key of the stored weight."""
    offset: Expression | None = field(metadata=stored(FORMULA, default=None))
    """Where it lies in the arena; counts only where every arena buffer has one, else the runtime plans the memory."""
    align: int = field(metadata=stored(whole(1, _MAX_ALIGNMENT), default=64))
    """The alignment in bytes that kernels need of its address, a power of two. Arena and weights have at least 64; an
    array of the caller with less is copied.
    """
    border: tuple[Expression, ...] = field(default=(), metadata=stored(formulas(BORDER_NUMBERS), default=()))
    """Where the halo's cells lie: images, rows, bytes of a row, rows above and below, bytes at both ends of a row."""

    def check(self, scope: Scope) -> None:
        """A lifetime does not end before it begins; a border is that of a halo."""
        if self.last < self.first:
            most = scope.counts["launches"]
            raise Fault(f"expected a whole number in [{self.first}, {max(most, 1)}], got {self.last}", ".last")
        if self.align & (self.align - 1):
            raise Fault(f"{self.align} is no power of two", ".align")
        if self.border and (len(self.border) != BORDER_NUMBERS or self.halo is None or self.kind != "arena"):
            raise Fault(f"expected {BORDER_NUMBERS} numbers, of a buffer with a halo in the arena", ".border")


@dataclass(frozen=True)
class Kernel:
    """A compiled function, or what a library or a plugin computes in its place."""

    name: str = field(metadata=stored(TEXT))
    symbol: str = field(metadata=stored(TEXT))
    objects: Mapping[str, str] = field(metadata=stored(kinds.OBJECTS, key="object"))
    """The section with its code, or one for each architecture; none where a library or a plugin computes it. Beside
    `sm_80` there may be `compute_80`: PTX, compressed by zlib, for GPUs that no other code runs on.
    """
    block: tuple[int, int, int] = field(metadata=stored(kinds.BLOCK, default=(1, 1, 1)))
    """The threads along x, y and z."""
    shared_bytes: int = field(metadata=stored(whole(0, _MAX_SHARED_BYTES), default=0))
    args: tuple[str, ...] = field(metadata=stored(kinds.ARGUMENT_KINDS))
    """The types of its arguments."""
    cluster: int = field(metadata=stored(whole(1, _MAX_CLUSTER), default=1))
    """So many blocks along x start together and see each other's shared memory."""
    dependent_launch: bool = field(metadata=stored(FLAG, default=False))
    """It may start before the launch before it has ended, and waits for that itself."""
    written: frozenset[int] = field(metadata=stored(kinds.WRITTEN, default=kinds.all_arguments))
    """The places of the arguments through which it may write, all where this is absent: launches that only read some
    memory may run together.
    """
    cooperative: bool = field(metadata=stored(FLAG, default=False))
    """The blocks run all at the same time, as those that wait for each other must: a launch with more than the device
    has room for is refused.
    """
    library: str | None = field(default=None, metadata=stored(LIBRARY, default=None))
    """A library of the machine, one of a list of names and never a path, computes it, inside of the captured graph."""
    call: LibraryCall | None = field(default=None, metadata=stored(CALL, default=kinds.no_call))
    """What is asked of the library."""
    plugin: PluginCall | None = field(default=None, metadata=stored(nested(PluginCall, name="symbol"), default=None))
    """The host calls a plugin that the process has registered by this name, version and namespace, behind the launches
    before it.
    """

    def check(self, scope: Scope) -> None:
        """The arguments are those that the library or the plugin takes."""
        if self.call is not None:
            self.call.check_kernel(self.symbol, self.args)
            if scope.target is None or scope.target.kind != "cuda":
                raise Fault("only a plan for CUDA calls libraries", ".library")
        if self.plugin is not None:
            self.plugin.check_kernel(self.args, self.written)


@dataclass(frozen=True)
class BufferArgument:
    """A pointer into a buffer: 0 <= offset <= bytes of the buffer, and offset + `bytes` <= that too."""

    buffer: int = field(metadata=stored(index("buffers")))
    offset: Expression = field(metadata=stored(FORMULA, default=0))
    """In bytes."""
    extent: Expression | None = field(metadata=stored(FORMULA, key="bytes", default=None))
    """How many bytes the kernel uses from there on; not stated where it is absent."""
    part: tuple[int, ...] = field(metadata=stored(numbers(0, 1 << 62, MAX_RANK, "expected whole numbers"), default=()))
    """The kernel touches nothing but that part of the buffer: no byte of it is in another part, unless one list of
    numbers begins with the other; `[0, 1]` is a part of `[0]`, and `[]` the whole.
    """


@dataclass(frozen=True)
class MapArgument:
    """A description of a tensor that a CUDA kernel copies boxes from, outermost dimension first.

    Its last element lies in the buffer.
    """

    buffer: int = field(metadata=stored(index("buffers")))
    offset: Expression = field(metadata=stored(FORMULA, default=0))
    """In bytes."""
    sizes: tuple[Expression, ...] = field(metadata=stored(formulas(kinds.MAX_MAP_RANK)))
    steps: tuple[Expression, ...] = field(metadata=stored(formulas(kinds.MAX_MAP_RANK)))
    """From one element of a dimension to the next, in bytes."""
    fixed: MapLayout = field(metadata=stored(kinds.LAYOUT, is_inline=True))
    """What does not depend on the shapes of a run."""

    def check(self, scope: Scope) -> None:
        """There is a step for each size, and the box and the window are of as many dimensions."""
        if not self.sizes or len(self.sizes) != len(self.steps):
            raise Fault(f"{len(self.steps)} steps for {len(self.sizes)} sizes", ".steps")
        fixed = self.fixed
        spatial = len(self.sizes) - 2 if fixed.stride else 0
        if any(len(one) != spatial for one in (fixed.lower, fixed.upper, fixed.stride)):
            raise Fault(f"a window over {len(self.sizes)} dimensions has {spatial} strides and corners", ".stride")
        if len(fixed.box) != (2 if fixed.stride else len(self.sizes)):
            raise Fault(f"{len(fixed.box)} lengths do not fit {len(self.sizes)} dimensions", ".box")


@dataclass(frozen=True)
class MapInArgument:
    """The JSON around a description of a tensor."""

    map: MapArgument = field(metadata=stored(nested(MapArgument)))


@dataclass(frozen=True)
class IntArgument:
    """A whole number that may depend on the shapes."""

    value: Expression = field(metadata=stored(FORMULA, key="int"))


@dataclass(frozen=True)
class FloatArgument:
    """A constant floating-point number; one that is not finite is spelt "inf", "-inf" or "nan"."""

    value: float = field(metadata=stored(kinds.NUMBER, key="float"))


Argument = BufferArgument | MapArgument | IntArgument | FloatArgument
ARGUMENTS: Mapping[str, type[Any]] = {
    "ptr": BufferArgument,
    "map": MapInArgument,
    "i64": IntArgument,
    "i32": IntArgument,
    "f32": FloatArgument,
    "f64": FloatArgument,
}
"""What a kernel takes as an argument of each type."""


@dataclass(frozen=True)
class Launch:
    """One step of a run: a kernel with its arguments."""

    kernel: int = field(metadata=stored(index("kernels")))
    layer: str = field(metadata=stored(TEXT))
    args: tuple[Argument, ...] = field(metadata=stored(kinds.arguments(ARGUMENTS)))
    """One for each of the kernel's, of its type."""
    grid: tuple[Expression, ...] = field(metadata=stored(formulas(3), default=kinds.one_block))
    """The blocks along x, y and z. Counts on CUDA only, where a launch whose grid has a 0 is skipped."""
    no_barrier: bool = field(metadata=stored(FLAG, default=False))
    """On a CPU: the next launch need not wait for this one; buffers of both then count as alive together."""
    serial: bool = field(metadata=stored(FLAG, default=False))
    """On a CPU: one thread alone runs it."""

    def check(self, scope: Scope) -> None:
        """A grid has three sizes."""
        if len(self.grid) != 3:
            raise Fault("expected three sizes", ".grid")


@dataclass(frozen=True)
class Manifest:
    """The whole table of contents. Unknown fields are refused, except in `layers` and `info`."""

    mlirt: str = field(metadata=stored(TEXT))
    """The version of the builder."""
    name: str = field(metadata=stored(TEXT))
    target: Target = field(metadata=stored(nested(Target)))
    symbols: tuple[Symbol, ...] = field(metadata=stored(many(Symbol), default=()))
    sizes: tuple[str, ...] = field(metadata=stored(texts(), default=()))
    """Symbols that only a run can tell: it is made with guesses, and again where they turn out wrong."""
    requirements: tuple[LengthRequirement, ...] = field(metadata=stored(many(LengthRequirement), default=()))
    """What layers need of lengths that follow from the shapes, in formulas of `symbols`; shapes for which one does not
    hold are refused.
    """
    inputs: tuple[Tensor, ...] = field(metadata=stored(many(Tensor, "inputs")))
    outputs: tuple[Tensor, ...] = field(metadata=stored(many(Tensor, "outputs")))
    buffers: tuple[Buffer, ...] = field(metadata=stored(many(Buffer)))
    kernels: tuple[Kernel, ...] = field(metadata=stored(many(Kernel)))
    launches: tuple[Launch, ...] = field(metadata=stored(many(Launch)))
    program: Program = field(metadata=stored(PROGRAM, default=kinds.all_launches))
    """The order of the launches, each once: one after the other where it is absent, but for branches and loops."""
    conditions: Mapping[str, str] = field(metadata=stored(sections_by_architecture(), default=kinds.nothing))
    """Code of the kernel that decides inside of CUDA graphs."""
    main: str | None = field(metadata=stored(TEXT, default=None))
    """The section with the function that runs launches on a CPU."""
    profiles: tuple[Mapping[str, ShapeRange], ...] = field(metadata=stored(kinds.PROFILES, default=()))
    """The shapes of a run are within one of them, where there are any."""
    layers: tuple[Mapping[str, object], ...] = field(metadata=stored(kinds.OBJECTS_OF_ANY, default=()))
    """What the inspector shows of each launch."""
    info: Mapping[str, object] = field(metadata=stored(TABLE, default=kinds.nothing))
    """Free for the builder."""
    state: tuple[StatePair, ...] = field(default=(), kw_only=True, metadata=stored(kinds.STATE, default=()))
    """Outputs that are inputs of the next run, and stay in the engine between."""
    parts: str | None = field(default=None, kw_only=True, metadata=stored(TEXT, default=None))
    """The symbol for how many parts of a launch are under way at once at most, where formulas have one."""
    contracts: Mapping[str, Sequence[Contract]] = field(default_factory=dict[str, Sequence[Contract]], kw_only=True)
    """By symbol what the kernels touch, for launches with some numbers or others; none where a plan was made in memory
    without them.
    """
    sealed: frozenset[int] = field(default=frozenset(), kw_only=True)
    """The launches whose numbers are those that the compiler has written."""
    roots: tuple[int, ...]
    """For each buffer the buffer that owns its bytes: itself, or what its views lead to."""

    @property
    def hosted(self) -> frozenset[int]:
        """The launches that the host makes: those of plugins."""
        return frozenset(i for i, one in enumerate(self.launches) if self.kernels[one.kernel].plugin is not None)

    @cached_property
    def given_inputs(self) -> tuple[Tensor, ...]:
        """The inputs that a caller gives; they come first."""
        return tuple(tensor for tensor in self.inputs if not tensor.counts_runs)
