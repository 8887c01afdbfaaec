"""The table of contents of a plan as typed, validated records: what `runtime/plan_file.py` documents as JSON.

`manifest_parser.parse_manifest` is the only way in, so whoever holds a Manifest may rely on its indices and types.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mlirt.runtime.expressions import Expression
from mlirt.runtime.extents import Contract
from mlirt.runtime.library_calls import LibraryCall
from mlirt.runtime.plugin_calls import PluginCall
from mlirt.runtime.profile_ranges import ShapeRange
from mlirt.runtime.program import LengthRequirement, Program
from mlirt.runtime.state_pairs import StatePair
from mlirt.runtime.tensor_maps import MapLayout

FORMAT = 2
BORDER_NUMBERS = 5
ARGUMENT_TYPES = ("ptr", "map", "i64", "i32", "f32", "f64")


@dataclass(frozen=True)
class Target:
    """The machine that the plan was made for."""

    kind: Literal["cpu", "cuda"]
    triple: str
    features: tuple[str, ...]
    vector_bits: int
    arch: str
    device: str = ""
    """In words, what the estimates of kernels were made for."""


@dataclass(frozen=True)
class Symbol:
    """A named dimension, bound from the actual length of one axis of one input."""

    name: str
    input: int
    axis: int


@dataclass(frozen=True)
class Tensor:
    """A public input or output; a `squeezed` output is given without its dimensions of length 1.

    An input that `counts_runs` is the number of runs that a context has made before, which no caller gives.
    """

    name: str
    dtype: str
    shape: tuple[Expression, ...]
    buffer: int
    squeezed: bool = False
    counts_runs: bool = False
    format: str = "LINEAR"
    logical: tuple[Expression, ...] | None = None
    """The shape as callers know it, where a format has another one in memory, which `shape` is."""
    needed_by: tuple[str, ...] = ()
    """For each dimension the layer that needs it to be what it is, or nothing; empty where no layer does."""

    @property
    def known_shape(self) -> tuple[Expression, ...]:
        """The shape without regard to how it lies in memory."""
        return self.shape if self.logical is None else self.logical


@dataclass(frozen=True)
class Buffer:
    """A piece of memory; a view names the buffer whose bytes it shows."""

    kind: Literal["arena", "input", "output", "weight"]
    size: Expression
    first: int
    last: int
    halo: str | None
    fill: int
    view_of: int | None
    view_offset: Expression
    weight: str | None
    offset: Expression | None
    align: int
    border: tuple[Expression, ...] = ()
    """Where the halo's cells lie: images, rows, bytes of a row, rows above and below, bytes at both ends of a row."""


@dataclass(frozen=True)
class Kernel:
    """A compiled function; `objects` maps an architecture ("" on the CPU) to the section with its code.

    Blocks along x form clusters of `cluster`. A `dependent_launch` may begin before the launch before it has ended: the
    kernel waits for that itself. `written` has the arguments through which it may write.
    The blocks of a `cooperative` one run all at the same time: a launch with more than the device has room for is
    refused. A `call` is computed by a library of the machine, and a `plugin` by itself, so that there is no code for
    them.
    """

    name: str
    symbol: str
    objects: Mapping[str, str]
    block: tuple[int, int, int]
    shared_bytes: int
    args: tuple[str, ...]
    cluster: int
    dependent_launch: bool
    written: frozenset[int]
    cooperative: bool
    call: LibraryCall | None = None
    plugin: PluginCall | None = None


@dataclass(frozen=True)
class BufferArgument:
    """A pointer `offset` bytes into a buffer, of which the kernel uses `extent` bytes (None: not stated).

    The kernel touches that `part` of the buffer alone; `(0, 1)` is a part of `(0,)`, and `()` the whole.
    """

    buffer: int
    offset: Expression
    extent: Expression | None
    part: tuple[int, ...]


@dataclass(frozen=True)
class MapArgument:
    """A description of a tensor that starts `offset` bytes into a buffer: sizes and steps (in bytes) by formulas.

    `fixed` has what does not depend on the shapes of a run.
    """

    buffer: int
    offset: Expression
    sizes: tuple[Expression, ...]
    steps: tuple[Expression, ...]
    fixed: MapLayout


@dataclass(frozen=True)
class IntArgument:
    """A whole number that may depend on the shapes."""

    value: Expression


@dataclass(frozen=True)
class FloatArgument:
    """A constant floating-point number."""

    value: float


Argument = BufferArgument | MapArgument | IntArgument | FloatArgument


@dataclass(frozen=True)
class Launch:
    """One step of a run: a kernel with its arguments."""

    kernel: int
    layer: str
    args: tuple[Argument, ...]
    grid: tuple[Expression, ...]
    no_barrier: bool
    serial: bool


@dataclass(frozen=True)
class Manifest:
    """The whole table of contents."""

    mlirt: str
    name: str
    target: Target
    symbols: tuple[Symbol, ...]
    sizes: tuple[str, ...]
    """Symbols that only a run can tell: it is made with guesses, and again where they turn out wrong."""
    requirements: tuple[LengthRequirement, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]
    program: Program
    """The order of the launches: one after the other, but for branches and loops."""
    conditions: Mapping[str, str]
    """By architecture the section with the kernel that sets a condition of a CUDA graph."""
    main: str | None
    profiles: tuple[Mapping[str, ShapeRange], ...]
    layers: tuple[Mapping[str, object], ...]
    info: Mapping[str, object]
    contracts: Mapping[str, Sequence[Contract]] = field(default_factory=dict[str, Sequence[Contract]], kw_only=True)
    """By symbol what the kernels touch, for launches with some numbers or others."""
    sealed: frozenset[int] = field(default=frozenset(), kw_only=True)
    """The launches whose numbers are those that the compiler has written."""
    """What kernels touch, by symbol; none where a plan was made in memory without them."""
    state: tuple[StatePair, ...] = field(default=(), kw_only=True)
    """Outputs that are inputs of the next run, and stay in the engine between."""
    parts: str | None = field(default=None, kw_only=True)
    """The symbol for how many parts of a launch are under way at once at most, where formulas have one."""
    roots: tuple[int, ...]
    """For each buffer the buffer that owns its bytes: itself, or what its views lead to."""

    @property
    def hosted(self) -> frozenset[int]:
        """The launches that the host makes: those of plugins."""
        return frozenset(i for i, one in enumerate(self.launches) if self.kernels[one.kernel].plugin is not None)

    @property
    def given_inputs(self) -> tuple[Tensor, ...]:
        """The inputs that a caller gives; they come first."""
        return tuple(tensor for tensor in self.inputs if not tensor.counts_runs)
