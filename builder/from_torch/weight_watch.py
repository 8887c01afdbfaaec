"""Whether the weights that were built into an engine are still what they were; asked by every call.

A network has hundreds of weights, and PyTorch takes 0.3 us to tell the version and the address of each, so that native
code compares the addresses. It also compares a few words of each weight in the host's memory: `weight.data += delta`
changes elements without a new version or address.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter, is_, methodcaller
from typing import Any

import numpy as np
import torch

from mlirt.runtime.llvm_binding import llvm

_version = attrgetter("_version")
"""How often a tensor has been written to in place; tensors of inference mode do not know."""
_address = methodcaller("data_ptr")
"""Where the elements of a tensor lie, which `weight.data = other` changes and counts as no write."""

SAMPLES = 4
"""Words of a weight that are compared, spread over its elements."""
_WORD = 4
_PLAIN = (torch.Tensor, torch.nn.Parameter)

_SOURCE = """
define i64 @changed(ptr %tensors, ptr %addresses, i64 %count, ptr %words, ptr %values, i64 %samples) {{
start:
  %is_none = icmp eq i64 %count, 0
  br i1 %is_none, label %no, label %each
each:
  %k = phi i64 [0, %start], [%next, %same_address]
  %tensor_at = getelementptr ptr, ptr %tensors, i64 %k
  %tensor = load ptr, ptr %tensor_at
  %address = call ptr inttoptr (i64 {address_of} to ptr)(ptr %tensor)
  %noted_at = getelementptr ptr, ptr %addresses, i64 %k
  %noted = load ptr, ptr %noted_at
  %is_there = icmp eq ptr %address, %noted
  br i1 %is_there, label %same_address, label %yes
same_address:
  %next = add i64 %k, 1
  %is_more = icmp ult i64 %next, %count
  br i1 %is_more, label %each, label %sampled
sampled:
  %are_any = icmp ne i64 %samples, 0
  br i1 %are_any, label %sample, label %no
sample:
  %j = phi i64 [0, %sampled], [%after, %sample]
  %before = phi i32 [0, %sampled], [%bits, %sample]
  %word_at = getelementptr ptr, ptr %words, i64 %j
  %place = load ptr, ptr %word_at
  %word = load i32, ptr %place, align 1
  %value_at = getelementptr i32, ptr %values, i64 %j
  %value = load i32, ptr %value_at
  %differing = xor i32 %word, %value
  %bits = or i32 %before, %differing
  %after = add i64 %j, 1
  %is_open = icmp ult i64 %after, %samples
  br i1 %is_open, label %sample, label %end
end:
  %differ = icmp ne i32 %bits, 0
  br i1 %differ, label %yes, label %no
yes:
  ret i64 1
no:
  ret i64 0
}}
"""


class WeightWatch:
    """The weights as they are when this is made, which it keeps."""

    def __init__(self, weights: Sequence[Any]) -> None:
        self.weights = list(weights)
        self._versioned = [one for one in self.weights if not one.is_inference()]
        self._versions = list(map(_version, self._versioned))
        self._samples = list(map(_sample, self.weights))
        self._have_moved = self._native() or self._by_python()

    def have_changed(self, given: Sequence[Any]) -> bool:
        """Whether a call has other weights than these, or the same after a write."""
        # No loop of Python goes over the weights: it would take longer than small networks do.
        return (
            not all(map(is_, given, self.weights))
            or list(map(_version, self._versioned)) != self._versions
            or bool(self._have_moved())
        )

    def written(self, given: Sequence[Any]) -> list[int]:
        """The places of the weights that a call still has, and that have been written to since this was made."""
        versions = dict(zip(map(id, self._versioned), self._versions, strict=True))
        found = enumerate(zip(self.weights, given, self._samples, strict=True))
        return [
            k
            for k, (old, new, sample) in found
            if new is old and (versions.get(id(old), -1) not in (-1, old._version) or _sample(new) != sample)
        ]

    def _by_python(self) -> Callable[[], bool]:
        weights, addresses = self.weights, list(map(_address, self.weights))
        return lambda: list(map(_address, weights)) != addresses

    def _native(self) -> Callable[[], int] | None:
        """What compares addresses and words; None where PyTorch does not help or a weight is of another type."""
        run = _function()
        if run is None or not all(type(one) in _PLAIN for one in self.weights):
            return None
        tensors = np.array(list(map(id, self.weights)), np.uint64)
        addresses = np.array(list(map(_address, self.weights)), np.uint64)
        words = np.array([place for one in self.weights for place in _word_places(one)], np.uint64)
        values = np.array([value for sample in self._samples for value in sample], np.uint32)
        held = (tensors, addresses, len(tensors), words, values, len(words))
        given = [one if isinstance(one, int) else one.ctypes.data for one in held]

        def have_moved(held: object = held) -> int:
            del held  # the arrays that native code reads
            return run(*given)

        return have_moved


def _sample(weight: Any) -> list[int]:
    """Some words of a weight."""
    return [ctypes.c_uint32.from_address(place).value for place in _word_places(weight)]


def _word_places(weight: Any) -> list[int]:
    """The addresses of some words of a weight whose elements lie one behind the other in the host's memory."""
    size = weight.numel() * weight.element_size()
    if type(weight) not in _PLAIN or weight.device.type != "cpu" or size < _WORD or not _is_dense(weight):
        return []
    last = size // _WORD - 1
    return [weight.data_ptr() + _WORD * place for place in sorted({last * k // (SAMPLES - 1) for k in range(SAMPLES)})]


def _is_dense(weight: Any) -> bool:
    order = sorted(range(weight.dim()), key=lambda axis: (weight.stride(axis), weight.shape[axis]), reverse=True)
    return bool(weight.permute(order).is_contiguous())


@cache
def _function() -> Callable[..., int] | None:
    """`changed` of the source above, which keeps the interpreter's lock."""
    address_of = getattr(torch._C._dynamo.guards, "_torchinductor_pyobject_tensor_data_ptr", None)
    if not isinstance(address_of, int):
        return None
    binding = llvm()
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(opt=2, jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(_SOURCE.format(address_of=address_of)), machine)
    engine.finalize_object()
    table = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    found = ctypes.PYFUNCTYPE(ctypes.c_int64, *table, *table)(engine.get_function_address("changed"))
    setattr(found, "engine", engine)  # the code goes when this does
    return found
