"""Which assembler makes the code of a kernel whose warpgroups give registers to others, and that of all others.

nvJitLink, which assembles most kernels, ignores `setmaxnreg`. Kernels that have it go to an assembler of whole
programs: NVRTC, which is installed with numba-cuda, or the ptxas that MLIRT_ASSEMBLER names. Where that refuses a
kernel nvJitLink takes it: the results are the same, but registers may go through memory.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from mlirt.builder.assemblers import nvjitlink, nvrtc, ptxas
from mlirt.builder.cubin import Cubin
from mlirt.builder.kernel_cache import versions
from mlirt.errors import CompileError, InvalidInputError

VARIABLE = "MLIRT_ASSEMBLER"
NVRTC, NVJITLINK = "nvrtc", "nvjitlink"
_GIVES_REGISTERS = "setmaxnreg."


def asked_assembler() -> str:
    """What MLIRT_ASSEMBLER says: `nvrtc` (also where it says nothing), `nvjitlink`, or the path of a program.

    Raises `InvalidInputError` for anything else: programs are not looked for.
    """
    asked = os.environ.get(VARIABLE) or NVRTC
    if asked in (NVRTC, NVJITLINK) or (Path(asked).is_absolute() and Path(asked).is_file()):
        return asked
    raise InvalidInputError(f"{VARIABLE} is {asked!r}; expected {NVRTC}, {NVJITLINK} or the full path of a ptxas")


def moves_registers() -> bool:
    """Whether warpgroups can give registers to others."""
    return asked_assembler() != NVJITLINK


def assembler_versions() -> str:
    """The assembler that is asked for, with its version: a part of the keys of what it makes."""
    asked = asked_assembler()
    if asked == NVRTC:
        return f"{NVRTC} {versions(*nvrtc.PACKAGES)}"
    return asked if asked == NVJITLINK else f"ptxas {ptxas.version_of(asked)}"


def assemble(text: str, architecture: str, name: str, asked: str) -> Cubin:
    """Assemble the PTX of a kernel; what `asked_assembler` says counts where its warpgroups give registers to others.

    Raises `CompileError` where nvJitLink refuses it. Where another one does, `Cubin.remark` says why.
    """
    if _GIVES_REGISTERS not in text or asked == NVJITLINK:
        return nvjitlink.link(text, architecture, name)
    try:
        if asked == NVRTC:
            return nvrtc.assemble(text, architecture, name)
        return ptxas.assemble(asked, text, architecture, name)
    except CompileError as error:
        remark = f"{error}; nvJitLink takes it, so that its warpgroups have fewer registers"
        return replace(nvjitlink.link(text, architecture, name), remark=remark)
