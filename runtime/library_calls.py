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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mlirt.runtime.record_kinds import FLAG, TEXT, exactly, items, one_of, texts, whole
from mlirt.runtime.record_schema import Fault, Given, Kind, Scope, read_record, stored

_ELEMENTS = ("float16", "bfloat16", "float32", "int8", "int32")
_ACTIVATIONS = {"matmul": ("none", "relu", "gelu_tanh"), "convolution": ("none", "relu")}
_FAMILIES = {"cublas_lt": "matmul", "cudnn": "convolution"}
_NUMBERS = {"matmul": 10, "convolution": 9}
_MAX_PROPOSALS = 64
_MAX_WORKSPACE = 1 << 32
_MAX_STEPS = 1 << 20


def _flags(value: Any, scope: Scope, given: Given) -> tuple[bool, ...]:
    found = items(value, 2)
    if len(found) != 2 or not all(isinstance(one, bool) for one in found):
        raise Fault("expected true or false for both operands")
    return tuple(found)


LIBRARIES = tuple(_FAMILIES)


@dataclass(frozen=True)
class LibraryCall:
    """What a library is asked for; there are pointers to both operands, the result, workspace and, if any, a bias."""

    library: str
    elements: tuple[str, ...] = field(metadata=stored(texts(4)))
    """Of both operands, the result and, if there is one, the bias."""
    activation: str = field(metadata=stored(TEXT))
    """None, relu or, of products, gelu_tanh."""
    rounded: bool = field(metadata=stored(FLAG, default=False))
    """Whether float32 may be read with 10 bits of mantissa."""
    proposal: int = field(metadata=stored(whole(0, _MAX_PROPOSALS)))
    """Which of the library's ways to do it."""
    workspace_bytes: int = field(metadata=stored(whole(0, _MAX_WORKSPACE)))

    @property
    def is_biased(self) -> bool:
        return len(self.elements) > 3

    def check(self, scope: Scope) -> None:
        """The elements and the activation are those that the library knows."""
        known = _ACTIVATIONS[_FAMILIES[self.library]]
        if len(self.elements) < 3 or any(element not in _ELEMENTS for element in self.elements):
            raise Fault(f"expected three or four of {', '.join(_ELEMENTS)}", ".elements")
        if self.activation not in known:
            raise Fault(f"expected one of {', '.join(known)}, got {self.activation[:40]!r}", ".activation")

    def check_kernel(self, symbol: str, args: Sequence[str]) -> None:
        """A kernel of this symbol and these arguments stands for the call."""
        family = _FAMILIES[self.library]
        if symbol != family:
            raise Fault(f"{self.library} computes a {family!r}", ".symbol")
        pointers, numbers = len(self.elements) + 1, _NUMBERS[family]
        if list(args) != ["ptr"] * pointers + ["i64"] * numbers:
            raise Fault(f"expected {pointers} pointers and {numbers} numbers", ".args")


@dataclass(frozen=True)
class LibraryProduct(LibraryCall):
    """A product of matrices; lines of `transposed` operands lie along their own dimension, not along the depth."""

    transposed: tuple[bool, bool] = field(metadata=stored(Kind(_flags, "two of true or false")))
    """For both operands."""


@dataclass(frozen=True)
class LibraryConvolution(LibraryCall):
    """A convolution of images; the steps are those down and across."""

    stride: tuple[int, int] = field(metadata=stored(exactly(2, 1, _MAX_STEPS)))
    dilation: tuple[int, int] = field(metadata=stored(exactly(2, 1, _MAX_STEPS)))
    padding: tuple[int, int] = field(metadata=stored(exactly(2, 0, _MAX_STEPS)))
    channels_last: bool = field(metadata=stored(FLAG, default=False))
    groups: int = field(metadata=stored(whole(1, _MAX_STEPS)))


_CALLS: Mapping[str, type[LibraryCall]] = {"matmul": LibraryProduct, "convolution": LibraryConvolution}


def _call(value: Any, scope: Scope, given: Given) -> LibraryCall | None:
    library = given["library"]
    return None if library is None else read_record(_CALLS[_FAMILIES[library]], value, scope, library=library)


LIBRARY = one_of(*LIBRARIES, fault=lambda name: f"{name!r} is none of {', '.join(LIBRARIES)}")
CALL = Kind(_call, "LibraryProduct or LibraryConvolution", records=tuple(_CALLS.values()))

Queue = Callable[[int], None]


class Library(Protocol):
    """A library that computes launches on the current device."""

    def prepare(self, what: LibraryCall, addresses: Sequence[int], numbers: Sequence[int]) -> Queue:
        """What puts a call on a stream; raises `PlanError` where the library has no such one."""
        ...
