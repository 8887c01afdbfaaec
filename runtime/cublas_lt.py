"""Products of matrices by cuBLASLt, through ctypes: what it proposes for a product, and its call on a stream.

The library thinks in columns: a matrix whose rows are lines in memory is its transpose there. So it is asked for
`result^T = right^T left^T`, and a bias along our columns is one along its rows.
"""

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from ctypes import POINTER, byref, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any

from mlirt.errors import PlanError
from mlirt.runtime.library_calls import LibraryCall, LibraryProduct, Queue
from mlirt.runtime.shared_libraries import load_shared

_NAMES = ("libcublasLt.so.13", "libcublasLt.so.12", "cublasLt64_13.dll", "cublasLt64_12.dll")
# As the library numbers them.
_ELEMENTS = {"float32": 0, "float16": 2, "int8": 3, "int32": 10, "bfloat16": 14}
_FLOAT32, _FLOAT32_ROUNDED, _INT32 = 68, 77, 72
_TRANSPOSED = 1
_EPILOGUES = {
    ("none", False): 1,
    ("none", True): 4,
    ("relu", False): 2,
    ("relu", True): 6,
    ("gelu_tanh", False): 32,
    ("gelu_tanh", True): 36,
}
_TRANSPOSE_A, _TRANSPOSE_B, _EPILOGUE, _BIAS_POINTER, _BIAS_TYPE = 3, 4, 7, 8, 26  # of products
_BATCH_COUNT, _BATCH_STEP = 5, 6  # of layouts
_WORKSPACE, _REDUCTIONS, _ALIGNMENT_A = 1, 3, 5  # of preferences
_IN_ORDER = 2  # partial sums are added by a kernel of their own, never by whoever comes first
_MAX_ALIGNMENT = 256


class _Proposal(ctypes.Structure):
    _fields_ = [
        ("algorithm", c_uint64 * 8),
        ("workspace_bytes", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


@cache
def open_cublas_lt(ordinal: int = 0) -> "CublasLt":
    """The library of this machine; raises `PlanError` where it is not installed."""
    library = load_shared(_NAMES)
    if library is None:
        raise PlanError(
            "the plan calls cuBLASLt, which is not here: install the package nvidia-cublas, or build the engine "
            "without the tactic source CUBLAS_LT"
        )
    return CublasLt(library)


class CublasLt:
    """The library and its state on the current device."""

    def __init__(self, library: Any) -> None:
        self.library = library
        _declare(library)
        self.handle = c_void_p()
        self.check("cublasLtCreate", library.cublasLtCreate(byref(self.handle)))

    def check(self, call: str, status: int) -> None:
        """Raise unless a call succeeded."""
        if status:
            raise PlanError(f"cuBLASLt {self.version()}: {call} fails with status {status}")

    def version(self) -> int:
        """Such as 130100 for 13.1."""
        return int(self.library.cublasLtGetVersion())

    def prepare(self, what: LibraryCall, addresses: Sequence[int], numbers: Sequence[int]) -> Queue:
        """What puts a product on a stream; raises `PlanError` where the library has no such product."""
        assert isinstance(what, LibraryProduct)
        return _Prepared(self, what, addresses, numbers).queue


class _Prepared:
    """A product with the library's descriptions of it, which live as long."""

    def __init__(self, owner: CublasLt, what: LibraryProduct, addresses: Sequence[int], numbers: Sequence[int]) -> None:
        self._owner, self._made = owner, list[tuple[str, c_void_p]]()
        self._addresses = addresses
        rows, columns, depth, batch, *steps = numbers
        left, right, result = (steps[k : k + 2] for k in (0, 2, 4))
        self._scalars = [(c_float if what.elements[2] != "int32" else c_int32)(value) for value in (1, 0)]
        self._product = self._describe(what, addresses)
        shapes = [(columns, depth), (depth, rows), (columns, rows)]
        transposed = [what.transposed[1], what.transposed[0], False]
        elements = [what.elements[k] for k in (1, 0, 2)]
        self._layouts = [
            self._layout(element, (shape[1], shape[0]) if is_transposed else shape, line, matrix, batch)
            for element, shape, is_transposed, (line, matrix) in zip(
                elements, shapes, transposed, (right, left, result), strict=True
            )
        ]
        self._proposal = self._proposed(what, addresses)

    def __del__(self) -> None:
        with suppress(AttributeError):
            for kind, one in self._made:
                getattr(self._owner.library, f"cublasLt{kind}Destroy")(one)

    def queue(self, stream: int) -> None:
        """Put the product on a stream."""
        left, right, result, workspace, *_ = self._addresses
        one, none = map(byref, self._scalars)
        a, b, d = self._layouts
        matrices = (right, a, left, b, none, result, d, result, d)
        status = self._owner.library.cublasLtMatmul(
            *(self._owner.handle, self._product, one, *matrices),
            *(byref(self._proposal), workspace, self._proposal.workspace_bytes, stream),
        )
        self._owner.check("cublasLtMatmul", status)

    def _describe(self, what: LibraryProduct, addresses: Sequence[int]) -> c_void_p:
        sums, scalars = (_INT32, "int32") if what.elements[2] == "int32" else (_FLOAT32, "float32")
        sums = _FLOAT32_ROUNDED if what.rounded else sums
        described = self._new("MatmulDesc", sums, _ELEMENTS[scalars])
        self._set("MatmulDesc", described, _TRANSPOSE_A, c_int32(_TRANSPOSED * what.transposed[1]))
        self._set("MatmulDesc", described, _TRANSPOSE_B, c_int32(_TRANSPOSED * what.transposed[0]))
        self._set("MatmulDesc", described, _EPILOGUE, c_uint32(_EPILOGUES[what.activation, what.is_biased]))
        if what.is_biased:
            self._set("MatmulDesc", described, _BIAS_POINTER, c_uint64(addresses[4]))
            self._set("MatmulDesc", described, _BIAS_TYPE, c_int32(_ELEMENTS[what.elements[3]]))
        return described

    def _layout(self, element: str, shape: tuple[int, int], line: int, matrix: int, batch: int) -> c_void_p:
        layout = self._new("MatrixLayout", _ELEMENTS[element], *shape, line)
        if batch != 1:
            self._set("MatrixLayout", layout, _BATCH_COUNT, c_int32(batch))
            self._set("MatrixLayout", layout, _BATCH_STEP, c_int64(matrix))
        return layout

    def _proposed(self, what: LibraryProduct, addresses: Sequence[int]) -> _Proposal:
        preference = self._new("MatmulPreference")
        self._set("MatmulPreference", preference, _WORKSPACE, c_uint64(what.workspace_bytes))
        self._set("MatmulPreference", preference, _REDUCTIONS, c_uint32(_IN_ORDER))
        left, right, result = addresses[:3]
        for place, address in enumerate((right, left, result, result)):
            self._set("MatmulPreference", preference, _ALIGNMENT_A + place, c_uint32(_alignment(address)))
        found, count = (_Proposal * (what.proposal + 1))(), c_int()
        a, b, d = self._layouts
        status = self._owner.library.cublasLtMatmulAlgoGetHeuristic(
            self._owner.handle, self._product, a, b, d, d, preference, len(found), found, byref(count)
        )
        if status or count.value <= what.proposal or found[what.proposal].state:
            raise PlanError(
                f"cuBLASLt {self._owner.version()} has no way number {what.proposal + 1} to multiply "
                f"{' and '.join(what.elements[:2])} of these shapes (status {status}); rebuild the engine here"
            )
        return found[what.proposal]

    def _new(self, kind: str, *arguments: int) -> c_void_p:
        made = c_void_p()
        call = f"cublasLt{kind}Create"
        self._owner.check(call, getattr(self._owner.library, call)(byref(made), *arguments))
        self._made.append((kind, made))
        return made

    def _set(self, kind: str, of: c_void_p, attribute: int, value: Any) -> None:
        call = f"cublasLt{kind}SetAttribute"
        status = getattr(self._owner.library, call)(of, attribute, byref(value), ctypes.sizeof(value))
        self._owner.check(f"{call} {attribute}", status)


def _alignment(address: int) -> int:
    """The power of two that an address is a multiple of, as far as the library cares."""
    return min(address & -address, _MAX_ALIGNMENT) or _MAX_ALIGNMENT


def _declare(library: Any) -> None:
    """Give every entry its argument types: a 64-bit handle passed as a plain int would be cut to 32 bits."""
    made, number = POINTER(c_void_p), c_int
    kinds = ("MatmulDesc", "MatrixLayout", "MatmulPreference")
    signatures: dict[str, list[Any]] = {
        "cublasLtCreate": [made],
        "cublasLtMatmulDescCreate": [made, number, number],
        "cublasLtMatrixLayoutCreate": [made, number, c_uint64, c_uint64, c_int64],
        "cublasLtMatmulPreferenceCreate": [made],
        **{f"cublasLt{kind}SetAttribute": [c_void_p, number, c_void_p, c_size_t] for kind in kinds},
        **{f"cublasLt{kind}Destroy": [c_void_p] for kind in kinds},
        "cublasLtMatmulAlgoGetHeuristic": [*[c_void_p] * 7, number, POINTER(_Proposal), POINTER(number)],
        "cublasLtMatmul": [*[c_void_p] * 3, *[c_void_p] * 9, POINTER(_Proposal), c_void_p, c_size_t, c_void_p],
    }
    for name, argument_types in signatures.items():
        function = getattr(library, name)
        function.argtypes, function.restype = argument_types, c_int
    library.cublasLtGetVersion.argtypes, library.cublasLtGetVersion.restype = [], c_size_t
