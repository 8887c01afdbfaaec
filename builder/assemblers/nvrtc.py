"""NVRTC as an assembler of whole programs: the PTX of a kernel is the inline assembly of one in CUDA C++.

NVRTC takes no PTX. What it compiles is one unit with nothing to link, so that warpgroups may give registers to others.
The kernel in C++ has the parameters, the bounds and the shared memory of the entry, and its body is the entry's, in a
scope of its own: inline assembly is not changed, and parameters are called as the compiler calls them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mlirt.builder.assemblers.assembler_log import cubin_of, refusal
from mlirt.builder.cubin import Cubin
from mlirt.errors import CompileError

PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
_ENTRY = re.compile(r"\.visible \.entry (\w+)\(\n(.*?)\n?\)\n((?:\..*\n)*)\{\n(.*)\n\}\s*", re.DOTALL)
_PARAMETER = re.compile(r"\s*\.param (?:\.align (\d+) )?\.([busf])(\d+) (\w+)(?:\[(\d+)\])?,?")
_SHARED = re.compile(r"\.extern \.shared \.align (\d+) \.b8 (\w+)\[\];")
_HEADER = re.compile(r"(?://.*|\.version .*|\.target .*|\.address_size .*)?\n")
_NUMBERS = {8: "unsigned char", 16: "unsigned short", 32: "unsigned int", 64: "unsigned long long"}
_FLOATS = {32: "float", 64: "double"}


def assemble(text: str, architecture: str, name: str) -> Cubin:
    """Assemble the PTX of a kernel as a whole program; `CompileError` where NVRTC is not here or refuses it."""
    try:
        nvrtc: Any = import_module("cuda.bindings.nvrtc")
        status, program = nvrtc.nvrtcCreateProgram(program_of(text, name).encode(), f"{name}.cu".encode(), 0, [], [])
    except (ImportError, RuntimeError) as error:
        raise refusal("NVRTC", name, architecture, f"it is not installed ({error})") from error
    try:
        options = [f"--gpu-architecture={architecture}".encode(), b"--ptxas-options=-v"]
        if int(status) == 0:
            (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _content(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if int(status) != 0:
            raise refusal("NVRTC", name, architecture, log)
        return cubin_of(_content(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN), log.decode(errors="replace"))
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _content(program: Any, size: Any, get: Any) -> bytes:
    _, length = size(program)
    content = bytes(length)
    get(program, content)
    return content


def program_of(text: str, name: str) -> str:
    """The kernel in CUDA C++; raises `CompileError` where the PTX has more than one entry with its memory."""
    entry, memory = _ENTRY.search(text), _SHARED.search(text)
    if entry is None or entry[1] != name:
        raise _unknown(name, "entry")
    around = _SHARED.sub("", text[: entry.start()] + text[entry.end() :], count=1)
    rest = _HEADER.sub("", around + "\n").strip()
    if rest:
        raise _unknown(name, f"declaration {rest[:60]!r}")
    parameters = [_Parameter.of(line, name, number) for number, line in enumerate(entry[2].splitlines())]
    lines = [one.declared for one in parameters if one.declared]
    body = [line for line in entry[4].splitlines() if line.strip() and not line.strip().startswith("//")]
    if memory is not None:
        lines.append(f"extern __shared__ __align__({memory[1]}) char {memory[2]}[];")
    given = ", ".join(one.given for one in parameters)
    lines += [f'extern "C" __global__ void {_bounds(entry[3], name)} {name}({given}) {{']
    if memory is not None:
        lines.append(f'asm volatile("" :: "l"({memory[2]}));')  # what is not used would not be declared
    lines += ["asm volatile(", *(json.dumps(line + "\n") for line in ["{", *body, "}"]), '::: "memory");', "}", ""]
    return "\n".join(lines)


@dataclass(frozen=True)
class _Parameter:
    """A parameter in CUDA C++, and the type that it needs, if that is not a number."""

    given: str
    declared: str = ""

    @staticmethod
    def of(line: str, name: str, number: int) -> _Parameter:
        found = _PARAMETER.fullmatch(line)
        if found is None or found[4] != f"{name}_param_{number}":
            raise _unknown(name, f"parameter {line.strip()!r}")
        alignment, kind, bits, _, size = found.groups()
        if size is not None:
            own = f"Parameter{number}"
            declared = f"struct __align__({alignment or 1}) {own} {{ char bytes[{size}]; }};"
            return _Parameter(f"const __grid_constant__ {own} p{number}", declared)
        type_ = (_FLOATS if kind == "f" else _NUMBERS).get(int(bits))
        if type_ is None:
            raise _unknown(name, f"parameter {line.strip()!r}")
        return _Parameter(f"{type_} p{number}")


def _bounds(directives: str, name: str) -> str:
    """What the entry says of its blocks: how many threads, how many of them at once, in clusters of how many."""
    numbers, cluster = list[str](), ""
    for line in directives.split("\n"):
        if match := re.fullmatch(r"\.maxntid (\d+), 1, 1", line):
            numbers.insert(0, match[1])
        elif match := re.fullmatch(r"\.minnctapersm (\d+)", line):
            numbers.append(match[1])
        elif match := re.fullmatch(r"\.reqnctapercluster (\d+), 1, 1", line):
            cluster = f" __cluster_dims__({match[1]})"
        elif line not in ("", ".explicitcluster"):
            raise _unknown(name, f"directive {line!r}")
    if ".maxntid" not in directives:
        raise _unknown(name, "number of threads")
    return f"__launch_bounds__({', '.join(numbers)}){cluster}"


def _unknown(name: str, what: str) -> CompileError:
    return CompileError(f"kernel {name}: the PTX is no single kernel that NVRTC can be given: {what}")
