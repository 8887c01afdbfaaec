"""Convolutions by cuDNN, through ctypes: what it proposes for a convolution, and its call on a stream."""

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_size_t, c_void_p
from functools import cache
from typing import Any

from mlirt.errors import PlanError
from mlirt.runtime.library_calls import LibraryCall, LibraryConvolution, Queue
from mlirt.runtime.shared_libraries import load_shared

_NAMES = ("libcudnn.so.9", "cudnn64_9.dll")
# As the library numbers them.
_ELEMENTS = {"float32": 0, "float16": 2, "bfloat16": 9}
_CHANNELS_FIRST, _CHANNELS_LAST, _CORRELATION = 0, 1, 1
_DEFAULT, _MATRIX_UNITS, _PLAIN = 0, 1, 3  # kinds of arithmetic; float32 is rounded by default
_SUMS = 0  # float32
_RELU, _IDENTITY = 1, 5
_NAN_PASSES = 1
_DETERMINISTIC = 1
_WITH_IDENTITY = 1  # the only algorithm that adds a bias without a rectifier
_MOST = 8  # proposals


class _Proposal(ctypes.Structure):
    _fields_ = [
        ("algorithm", c_int),
        ("status", c_int),
        ("time", c_float),
        ("memory", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    ]


@cache
def open_cudnn() -> "Cudnn":
    """The library of this machine; raises `PlanError` where it is not installed."""
    library = load_shared(_NAMES)
    if library is None:
        raise PlanError(
            "the plan calls cuDNN, which is not here: install the package nvidia-cudnn-cu13, or build the engine "
            "without the tactic source CUDNN"
        )
    return Cudnn(library)


class Cudnn:
    """The library and its state on the current device."""

    def __init__(self, library: Any) -> None:
        self.library = library
        _declare(library)
        self.handle = c_void_p()
        self.check("cudnnCreate", library.cudnnCreate(byref(self.handle)))

    def check(self, call: str, status: int) -> None:
        """Raise unless a call succeeded."""
        if status:
            reason = self.library.cudnnGetErrorString(status).decode()
            raise PlanError(f"cuDNN {int(self.library.cudnnGetVersion())}: {call}: {reason}")

    def prepare(self, what: LibraryCall, addresses: Sequence[int], numbers: Sequence[int]) -> Queue:
        """What puts a convolution on a stream; raises `PlanError` where the library has no such one."""
        assert isinstance(what, LibraryConvolution)
        return _Prepared(self, what, addresses, numbers).queue


class _Prepared:
    """A convolution with the library's descriptions of it, which live as long."""

    def __init__(
        self, owner: Cudnn, what: LibraryConvolution, addresses: Sequence[int], numbers: Sequence[int]
    ) -> None:
        self._owner, self._what, self._addresses = owner, what, addresses
        self._made: list[tuple[str, c_void_p]] = []
        images, channels, height, width, kernels, down, across, rows, columns = numbers
        self._input = self._tensor(what.elements[0], images, channels, height, width)
        self._result = self._tensor(what.elements[2], images, kernels, rows, columns)
        self._kernel = self._new("Filter")
        shape = (kernels, channels // what.groups, down, across)
        order = _CHANNELS_LAST if what.channels_last else _CHANNELS_FIRST
        self._call("cudnnSetFilter4dDescriptor", self._kernel, _ELEMENTS[what.elements[1]], order, *shape)
        self._math = _MATRIX_UNITS if what.elements[0] != "float32" else _DEFAULT if what.rounded else _PLAIN
        self._window = self._new("Convolution")
        steps = (*what.padding, *what.stride, *what.dilation)
        self._call("cudnnSetConvolution2dDescriptor", self._window, *steps, _CORRELATION, _SUMS)
        self._call("cudnnSetConvolutionGroupCount", self._window, what.groups)
        self._call("cudnnSetConvolutionMathType", self._window, self._math)
        if what.is_biased:
            self._bias = self._tensor(what.elements[3], 1, kernels, 1, 1)
            self._activation = self._new("Activation")
            kind = _RELU if what.activation == "relu" else _IDENTITY
            self._call("cudnnSetActivationDescriptor", self._activation, kind, _NAN_PASSES, 0.0)
        self._proposal = self._proposed()
        self._call("cudnnSetConvolutionMathType", self._window, self._proposal.math)

    def __del__(self) -> None:
        with suppress(AttributeError):
            for kind, one in self._made:
                getattr(self._owner.library, f"cudnnDestroy{kind}Descriptor")(one)

    def queue(self, stream: int) -> None:
        """Put the convolution on a stream."""
        given, kernel, result, workspace, *bias = self._addresses
        one, none = c_float(1), c_float(0)
        self._call("cudnnSetStream", self._owner.handle, stream)
        work = (self._window, self._proposal.algorithm, workspace, self._proposal.memory)
        start = (self._owner.handle, byref(one), self._input, given, self._kernel, kernel, *work, byref(none))
        if bias:
            rest = (self._result, result, self._bias, bias[0], self._activation, self._result, result)
            self._call("cudnnConvolutionBiasActivationForward", *start, *rest)
        else:
            self._call("cudnnConvolutionForward", *start, self._result, result)

    def _tensor(self, element: str, images: int, channels: int, height: int, width: int) -> c_void_p:
        """A tensor without gaps."""
        tensor = self._new("Tensor")
        sizes = (images, channels, height, width)
        inner = (1, width * channels, channels) if self._what.channels_last else (height * width, width, 1)
        steps = (channels * height * width, *inner)
        self._call("cudnnSetTensor4dDescriptorEx", tensor, _ELEMENTS[element], *sizes, *steps)
        return tensor

    def _proposed(self) -> _Proposal:
        """The proposal that the plan wants, of those that give the same bits in every run and need no more memory."""
        found, count = (_Proposal * _MOST)(), c_int()
        described = (self._input, self._kernel, self._window, self._result)
        self._call("cudnnGetConvolutionForwardAlgorithm_v7", self._owner.handle, *described, _MOST, byref(count), found)
        plain = self._what.is_biased and self._what.activation == "none"
        fitting = [
            one
            for one in found[: count.value]
            if not one.status
            and one.determinism == _DETERMINISTIC
            and one.memory <= self._what.workspace_bytes
            and (one.algorithm == _WITH_IDENTITY or not plain)
            and (one.math == self._math or self._math != _PLAIN)
        ]
        if len(fitting) <= self._what.proposal:
            raise PlanError(
                f"cuDNN {int(self._owner.library.cudnnGetVersion())} has no way number {self._what.proposal + 1} for "
                "a convolution of these shapes; rebuild the engine here"
            )
        return fitting[self._what.proposal]

    def _new(self, kind: str) -> c_void_p:
        made = c_void_p()
        self._call(f"cudnnCreate{kind}Descriptor", byref(made))
        self._made.append((kind, made))
        return made

    def _call(self, name: str, *arguments: Any) -> None:
        self._owner.check(name, getattr(self._owner.library, name)(*arguments))


def _declare(library: Any) -> None:
    """Give every entry its argument types: a 64-bit handle passed as a plain int would be cut to 32 bits."""
    any_pointer, number, made = c_void_p, c_int, POINTER(c_void_p)
    kinds = ("Tensor", "Filter", "Convolution", "Activation")
    # Handle, one, input, kernel, window, algorithm, workspace, zero.
    start = [*[any_pointer] * 7, number, any_pointer, c_size_t, any_pointer]
    signatures: dict[str, list[Any]] = {
        "cudnnCreate": [made],
        "cudnnSetStream": [any_pointer, any_pointer],
        **{f"cudnnCreate{kind}Descriptor": [made] for kind in kinds},
        **{f"cudnnDestroy{kind}Descriptor": [any_pointer] for kind in kinds},
        "cudnnSetTensor4dDescriptorEx": [any_pointer, *[number] * 9],
        "cudnnSetFilter4dDescriptor": [any_pointer, *[number] * 6],
        "cudnnSetConvolution2dDescriptor": [any_pointer, *[number] * 8],
        "cudnnSetConvolutionGroupCount": [any_pointer, number],
        "cudnnSetConvolutionMathType": [any_pointer, number],
        "cudnnSetActivationDescriptor": [any_pointer, number, number, c_double],
        "cudnnGetConvolutionForwardAlgorithm_v7": [*[any_pointer] * 5, number, POINTER(number), POINTER(_Proposal)],
        "cudnnConvolutionForward": [*start, any_pointer, any_pointer],
        "cudnnConvolutionBiasActivationForward": [*start, *[any_pointer] * 7],
    }
    for name, argument_types in signatures.items():
        function = getattr(library, name)
        function.argtypes, function.restype = argument_types, c_int
    library.cudnnGetVersion.argtypes, library.cudnnGetVersion.restype = [], c_size_t
    library.cudnnGetErrorString.argtypes, library.cudnnGetErrorString.restype = [number], c_char_p
