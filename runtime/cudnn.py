"""Convolutions by cuDNN, through ctypes: the library, and its calls on a stream."""

from collections.abc import Hashable, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from dataclasses import replace
from functools import cache
from typing import Any

from mlirt.errors import PlanError
from mlirt.runtime.cudnn_convolutions import BIAS, INPUT, KERNEL, RESULT, ConvolutionGraph
from mlirt.runtime.cudnn_descriptors import Descriptor, Field, Kind
from mlirt.runtime.library_calls import LibraryCall, LibraryConvolution, Queue
from mlirt.runtime.shared_libraries import load_shared

_NAMES = ("libcudnn.so.9", "cudnn64_9.dll")
_MAX_ALIGNMENT = 16


@cache
def open_cudnn(ordinal: int = 0) -> "Cudnn":
    """The library of this machine; raises `PlanError` where it is not installed."""
    library = load_shared(_NAMES)
    if library is None:
        raise PlanError(
            "the plan calls cuDNN, which is not here: install the package nvidia-cudnn-cu13, or build the engine "
            "without the tactic source CUDNN"
        )
    return Cudnn(library)


class Cudnn:
    """The library and its state on the current device, with the convolutions that were asked for before."""

    def __init__(self, library: Any) -> None:
        self.library = library
        _declare(library)
        self.handle = c_void_p()
        self._graphs: dict[Hashable, ConvolutionGraph] = {}
        self.call("cudnnCreate", byref(self.handle))

    def call(self, name: str, *arguments: Any) -> None:
        """Call an entry of the library; raises `PlanError` unless it succeeds."""
        status = getattr(self.library, name)(*arguments)
        if status:
            raise PlanError(f"cuDNN {self.version()}: {name}: {self.library.cudnnGetErrorString(status).decode()}")

    def version(self) -> int:
        """Such as 91900 for 9.19."""
        return int(self.library.cudnnGetVersion())

    def prepare(self, what: LibraryCall, addresses: Sequence[int], numbers: Sequence[int]) -> Queue:
        """What puts a convolution on a stream; raises `PlanError` where the library has no such one."""
        assert isinstance(what, LibraryConvolution)
        given, kernel, result, workspace, *bias = addresses
        tensors = (given, kernel, result, *bias)
        plan = self._graph(what, numbers, [_alignment(one) for one in tensors]).way(what.proposal)
        if plan is None:
            raise PlanError(
                f"cuDNN {self.version()} has no way number {what.proposal + 1} for a convolution of "
                f"{what.elements[0]} with these shapes; rebuild the engine here"
            )
        pointers = Descriptor(self.call, Kind.POINTERS).set(Field.POINTERS_WORKSPACE, workspace)
        pointers.set(Field.POINTERS_IDS, *(INPUT, KERNEL, RESULT, BIAS)[: len(tensors)])
        pointers.set(Field.POINTERS_ADDRESSES, *tensors).finish()

        def queue(stream: int) -> None:
            self.call("cudnnSetStream", self.handle, stream)
            self.call("cudnnBackendExecute", self.handle, plan.handle, pointers.handle)

        return queue

    def _graph(self, what: LibraryConvolution, numbers: Sequence[int], alignments: Sequence[int]) -> ConvolutionGraph:
        """The graph of a convolution; its plans may take long to compile, and equal layers share them.

        It stays as long as the library: CUDA graphs that were captured before run the code of its plans.
        """
        key = replace(what, proposal=0), tuple(numbers), tuple(alignments)
        if key not in self._graphs:
            self._graphs[key] = ConvolutionGraph(self.call, self.handle, what, numbers, alignments)
        return self._graphs[key]


def _alignment(address: int) -> int:
    """The power of two that an address is a multiple of, as far as the library cares."""
    return min(address & -address, _MAX_ALIGNMENT) or _MAX_ALIGNMENT


def _declare(library: Any) -> None:
    """Give every entry its argument types: a 64-bit handle passed as a plain int would be cut to 32 bits."""
    pointer, number, made = c_void_p, c_int, POINTER(c_void_p)
    signatures: dict[str, list[Any]] = {
        "cudnnCreate": [made],
        "cudnnSetStream": [pointer, pointer],
        "cudnnBackendCreateDescriptor": [number, made],
        "cudnnBackendDestroyDescriptor": [pointer],
        "cudnnBackendSetAttribute": [pointer, number, number, c_int64, pointer],
        "cudnnBackendGetAttribute": [pointer, number, number, c_int64, POINTER(c_int64), pointer],
        "cudnnBackendFinalize": [pointer],
        "cudnnBackendExecute": [pointer, pointer, pointer],
    }
    for name, argument_types in signatures.items():
        function = getattr(library, name)
        function.argtypes, function.restype = argument_types, c_int
    library.cudnnGetVersion.argtypes, library.cudnnGetVersion.restype = [], c_size_t
    library.cudnnGetErrorString.argtypes, library.cudnnGetErrorString.restype = [number], c_char_p
