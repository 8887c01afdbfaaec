"""The kernel that lets a GPU decide about branches and loops of a graph: it sets a condition from a byte in memory.

It calls the device runtime's `cudaGraphSetConditional`, which is linked in from a static library of CUDA's runtime.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from mlirt.builder.cubin import is_cubin
from mlirt.builder.gpu_code import COMPUTE
from mlirt.builder.kernel_cache import KernelCache, key_of, versions

SYMBOL = "set_condition"
_LIBRARY = "libcudadevrt.a"


def setter_cubins(architectures: Sequence[str]) -> Mapping[str, bytes]:
    """The kernel's code by architecture; empty where the device runtime's library is not installed.

    Its arguments are the handle of a condition (u64), the address of a byte (u64), and what the byte is compared with
    (i32): the condition becomes whether the byte is not 0 (1), or is 0 (0).
    """
    library = _library()
    if library is None:
        return {}
    kernels = KernelCache()
    found: dict[str, bytes] = {}
    for architecture in architectures:
        if architecture.startswith(COMPUTE):
            continue  # the library is machine code: where PTX is run the host decides
        key = key_of("cuda", SYMBOL, architecture, versions("numba", "numba-cuda", "nvidia-nvjitlink"))
        code = kernels.get(key, is_cubin)
        if code is None:
            code = _linked(_ptx(architecture), architecture, library)
            kernels.put(key, code)
        found[architecture] = code
    return found


@cache
def _library() -> Path | None:
    """The device runtime that matches the linker, among the installed packages."""
    places = [Path(folder) for folder in sys.path if folder]
    found = [path for place in places for path in sorted(place.glob(f"nvidia/*/lib/{_LIBRARY}"))]
    return found[0] if found else None


def _ptx(architecture: str) -> str:
    cuda: Any = import_module("numba.cuda")
    types: Any = import_module("numba.core.types")
    set_on_device = cuda.declare_device("cudaGraphSetConditional", types.void(types.uint64, types.uint32), abi="c")

    def set_condition(handle: Any, place: Any, wanted: Any) -> None:
        if cuda.threadIdx.x == 0:
            holds = types.int32(1) if place[0] != 0 else types.int32(0)
            set_on_device(handle, types.uint32(1) if holds == wanted else types.uint32(0))

    signature = types.void(types.uint64, types.CPointer(types.uint8), types.int32)
    number = int(re.sub(r"\D", "", architecture))
    text, _ = cuda.compile(set_condition, signature, cc=divmod(number, 10), device=False, abi="numba")
    entry = re.search(r"\.visible \.entry (\w+)\(", text)
    assert entry is not None
    return text.replace(entry[1], SYMBOL)


def _linked(text: str, architecture: str, library: Path) -> bytes:
    nvjitlink: Any = import_module("cuda.bindings.nvjitlink")
    handle = nvjitlink.create(1, [f"-arch={architecture}"])
    try:
        data = text.encode() + b"\0"
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), f"{SYMBOL}.ptx")
        nvjitlink.add_file(handle, nvjitlink.InputType.LIBRARY, str(library))
        nvjitlink.complete(handle)
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
        return bytes(code)
    finally:
        nvjitlink.destroy(handle)
