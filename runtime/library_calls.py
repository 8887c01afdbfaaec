"""Launches that a library of the machine computes: what a plan says of them, and what is asked of such a library.

In the manifest the record of such a kernel has, in place of code, `"library": "cublas_lt"`, `"symbol": "matmul"` and
`"product": {"elements", "transposed", "activation", "rounded", "proposal", "workspace_bytes"}`:

    result[b, m, n] = activation(sum over k of left[b, m, k] * right[b, k, n] + bias[n])

It takes pointers to left, right, result, workspace and, where `elements` has four entries, bias; then as i64 rows,
columns, depth, batch, and for left, right and result the steps in elements from line to line and from matrix to
matrix. The name of a library is one of a list, never a path.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mlirt.runtime.json_record import JsonRecord

PRODUCT_LIBRARIES = ("cublas_lt",)
_ELEMENTS = ("float16", "bfloat16", "float32", "int8", "int32")
_ACTIVATIONS = ("none", "relu", "gelu_tanh")
_NUMBERS = 10
_MOST_PROPOSALS = 64
_MOST_WORKSPACE = 1 << 32


@dataclass(frozen=True)
class LibraryProduct:
    """A product that a library is asked for. `elements` are those of left, right, result and, if there is one, bias."""

    library: str
    elements: tuple[str, ...]
    transposed: tuple[bool, bool]
    activation: str
    rounded: bool
    """Whether float32 may be read with 10 bits of mantissa."""
    proposal: int
    """Which of the library's ways to do it."""
    workspace_bytes: int

    @property
    def is_biased(self) -> bool:
        return len(self.elements) > 3


Call = Callable[[int], None]


class ProductLibrary(Protocol):
    """A library that multiplies matrices on the current device."""

    def product(self, what: LibraryProduct, addresses: Sequence[int], numbers: Sequence[int]) -> Call:
        """What puts a product on a stream; raises `PlanError` where the library has no such product."""
        ...


def parse_product(record: JsonRecord, args: Sequence[str]) -> LibraryProduct:
    """The product of a kernel's record, whose arguments have the types `args`."""
    library = record.text("library")
    if library not in PRODUCT_LIBRARIES:
        raise record.error("library", f"{library[:40]!r} is none of {', '.join(PRODUCT_LIBRARIES)}")
    if record.text("symbol") != "matmul":
        raise record.error("symbol", "a library computes a 'matmul'")
    fields = "elements transposed activation rounded proposal workspace_bytes".split()
    inner = JsonRecord(record.get("product"), f"{record.where}.product", fields)
    elements, activation = inner.texts("elements", 4), inner.text("activation")
    if len(elements) < 3 or any(element not in _ELEMENTS for element in elements):
        raise inner.error("elements", f"expected three or four of {', '.join(_ELEMENTS)}")
    if activation not in _ACTIVATIONS:
        raise inner.error("activation", f"expected one of {', '.join(_ACTIVATIONS)}, got {activation[:40]!r}")
    turned = inner.items("transposed", 2)
    if len(turned) != 2 or any(not isinstance(one, bool) for one in turned):
        raise inner.error("transposed", "expected true or false for the left and the right operand")
    if list(args) != ["ptr"] * (len(elements) + 1) + ["i64"] * _NUMBERS:
        raise record.error("args", f"expected {len(elements) + 1} pointers and {_NUMBERS} numbers")
    return LibraryProduct(
        library=library,
        elements=elements,
        transposed=(bool(turned[0]), bool(turned[1])),
        activation=activation,
        rounded=inner.flag("rounded"),
        proposal=inner.integer("proposal", 0, _MOST_PROPOSALS),
        workspace_bytes=inner.integer("workspace_bytes", 0, _MOST_WORKSPACE),
    )
