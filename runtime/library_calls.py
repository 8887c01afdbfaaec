"""Launches that a library of the machine computes: what a plan says of them, and what is asked of such a library.

In the manifest the record of such a kernel has, in place of code, `"library"`, `"symbol"` and
`"call": {"elements", "activation", "rounded", "proposal", "workspace_bytes", ..}`. It takes pointers to both operands,
the result, workspace and, where `elements` has four entries, a bias; then numbers as i64. `"cublas_lt"` has `"matmul"`,
with `"transposed"` for both operands:

    result[b, m, n] = activation(sum over k of left[b, m, k] * right[b, k, n] + bias[n])

and the numbers rows, columns, depth, batch, and for left, right and result the steps in elements from line to line and
from matrix to matrix. `"cudnn"` has `"convolution"`, with `"stride"`, `"dilation"`, `"padding"` and `"groups"`, of
images [n, c, h, w] with kernels [k, c / groups, r, s], all without gaps, with `"channels_last"` in the order of memory
[n, h, w, c] and [k, r, s, c / groups], and the numbers n, c, h, w, k, r, s and the result's rows and columns. The name
of a library is one of a list, never a path.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mlirt.runtime.json_record import JsonRecord

_ELEMENTS = ("float16", "bfloat16", "float32", "int8", "int32")
_ACTIVATIONS = {"matmul": ("none", "relu", "gelu_tanh"), "convolution": ("none", "relu")}
_FAMILIES = {"cublas_lt": "matmul", "cudnn": "convolution"}
_NUMBERS = {"matmul": 10, "convolution": 9}
_COMMON = ("elements", "activation", "rounded", "proposal", "workspace_bytes")
_OWN = {"matmul": ("transposed",), "convolution": ("stride", "dilation", "padding", "channels_last", "groups")}
_MOST_PROPOSALS = 64
_MOST_WORKSPACE = 1 << 32
_MOST_STEPS = 1 << 20

LIBRARIES = tuple(_FAMILIES)


@dataclass(frozen=True)
class LibraryCall:
    """What a library is asked for. `elements` are those of both operands, the result and, if there is one, the bias."""

    library: str
    elements: tuple[str, ...]
    activation: str
    rounded: bool
    """Whether float32 may be read with 10 bits of mantissa."""
    proposal: int
    """Which of the library's ways to do it."""
    workspace_bytes: int

    @property
    def is_biased(self) -> bool:
        return len(self.elements) > 3


@dataclass(frozen=True)
class LibraryProduct(LibraryCall):
    """A product of matrices; lines of `transposed` operands lie along their own dimension, not along the depth."""

    transposed: tuple[bool, bool]


@dataclass(frozen=True)
class LibraryConvolution(LibraryCall):
    """A convolution of images; the steps are those down and across."""

    stride: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int]
    channels_last: bool
    groups: int


Queue = Callable[[int], None]


class Library(Protocol):
    """A library that computes launches on the current device."""

    def prepare(self, what: LibraryCall, addresses: Sequence[int], numbers: Sequence[int]) -> Queue:
        """What puts a call on a stream; raises `PlanError` where the library has no such one."""
        ...


def parse_call(record: JsonRecord, args: Sequence[str]) -> LibraryCall:
    """The call of a kernel's record, whose arguments have the types `args`."""
    library = record.text("library")
    if library not in LIBRARIES:
        raise record.error("library", f"{library[:40]!r} is none of {', '.join(LIBRARIES)}")
    family = _FAMILIES[library]
    if record.text("symbol") != family:
        raise record.error("symbol", f"{library} computes a {family!r}")
    inner = JsonRecord(record.get("call"), f"{record.where}.call", (*_COMMON, *_OWN[family]))
    elements, activation = inner.texts("elements", 4), inner.text("activation")
    if len(elements) < 3 or any(element not in _ELEMENTS for element in elements):
        raise inner.error("elements", f"expected three or four of {', '.join(_ELEMENTS)}")
    if activation not in _ACTIVATIONS[family]:
        raise inner.error("activation", f"expected one of {', '.join(_ACTIVATIONS[family])}, got {activation[:40]!r}")
    if list(args) != ["ptr"] * (len(elements) + 1) + ["i64"] * _NUMBERS[family]:
        raise record.error("args", f"expected {len(elements) + 1} pointers and {_NUMBERS[family]} numbers")
    common = (
        *(library, elements, activation, inner.flag("rounded")),
        *(inner.integer("proposal", 0, _MOST_PROPOSALS), inner.integer("workspace_bytes", 0, _MOST_WORKSPACE)),
    )
    if family == "matmul":
        return LibraryProduct(*common, transposed=_flags(inner, "transposed"))
    return LibraryConvolution(
        *common,
        stride=_pair(inner, "stride", 1),
        dilation=_pair(inner, "dilation", 1),
        padding=_pair(inner, "padding", 0),
        channels_last=inner.flag("channels_last"),
        groups=inner.integer("groups", 1, _MOST_STEPS),
    )


def _flags(record: JsonRecord, key: str) -> tuple[bool, bool]:
    found = record.items(key, 2)
    if len(found) != 2 or any(not isinstance(one, bool) for one in found):
        raise record.error(key, "expected true or false for both operands")
    return bool(found[0]), bool(found[1])


def _pair(record: JsonRecord, key: str, least: int) -> tuple[int, int]:
    found = [one for one in record.items(key, 2) if isinstance(one, int) and not isinstance(one, bool)]
    if len(found) != 2 or not all(least <= one <= _MOST_STEPS for one in found):
        raise record.error(key, f"expected two whole numbers from {least} on")
    return found[0], found[1]
