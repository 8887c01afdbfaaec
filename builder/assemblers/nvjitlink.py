"""nvJitLink as the assembler of most kernels. It ignores `setmaxnreg`, as other units might be linked."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mlirt.builder.assemblers.assembler_log import cubin_of, one_line, refusal
from mlirt.builder.cubin import Cubin


def link(text: str, architecture: str, name: str) -> Cubin:
    """Assemble PTX for an architecture."""
    nvjitlink: Any = import_module("cuda.bindings.nvjitlink")
    options = [f"-arch={architecture}", "-verbose"]
    handle = nvjitlink.create(len(options), options)
    data = text.encode() + b"\0"
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), f"{name}.ptx")
        nvjitlink.complete(handle)
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
        log = _log(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle)
    except Exception as error:
        log = _log(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)
        raise refusal("nvJitLink", name, architecture, log) from error
    finally:
        nvjitlink.destroy(handle)
    return cubin_of(bytes(code), log)


def _log(size: Any, get: Any, handle: Any) -> str:
    buffer = bytearray(size(handle))
    if buffer:
        get(handle, buffer)
    return one_line(bytes(buffer))
