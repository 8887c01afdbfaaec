"""A C library for CUDA devices: machine code and PTX as sections, which the driver loads when a handle is made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mlirt.errors import PlanError, UnsupportedError
from mlirt.runtime.c_library.cuda_tables import CudaTables
from mlirt.runtime.c_library.library_files import LibraryFiles
from mlirt.runtime.c_library.system_files import CUDA_FILES, CUDA_FILES_ELSEWHERE
from mlirt.runtime.c_library.toolchain import compiler, machine_of
from mlirt.runtime.cuda_architectures import is_ptx
from mlirt.runtime.kept_ptx import ptx_text
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.memory_planning import ALIGNMENT
from mlirt.runtime.plan_file import Plan
from mlirt.systems import architecture_of


def refuse_cuda(manifest: Manifest) -> None:
    """Raise UnsupportedError where the plan has what C libraries for CUDA lack."""
    kernels = [manifest.kernels[launch.kernel] for launch in manifest.launches]
    plugins = sorted({kernel.symbol for kernel in kernels if kernel.plugin is not None})
    libraries = sorted({kernel.call.library for kernel in kernels if kernel.call is not None})
    fault = ""
    if plugins:
        fault = f"the plugins {', '.join(plugins)[:200]} are functions of Python, which a C library cannot call"
    elif libraries:
        fault = (
            f"launches of the plan are calls of {', '.join(libraries)}, which a C library does not make; build without "
            "libraries"
        )
    if fault:
        raise UnsupportedError(fault)


class CudaFiles(LibraryFiles):
    """Kernels are sections of code; the library is for the compiler's own processor."""

    target = "cuda"
    alignment = ALIGNMENT

    def __init__(self, plan: Plan, name: str, folder: Path) -> None:
        self._compiler = compiler(None)
        is_usual = architecture_of(machine_of(self._compiler)) == "x86_64"
        super().__init__(plan, name, folder, CUDA_FILES if is_usual else CUDA_FILES_ELSEWHERE)
        named = [kernel.objects for kernel in plan.manifest.kernels] + [plan.manifest.conditions]
        self._architectures = {section: arch for objects in named for arch, section in objects.items()}
        self._numbers = {section: number for number, section in enumerate(sorted(self._architectures))}

    def command(self) -> list[str]:
        """One for any processor under Linux."""
        return self._compiler

    def tables(self, weight_places: Mapping[str, int]) -> str:
        """With sections by their numbers."""
        return CudaTables(self.plan.manifest, weight_places, self.name, self._numbers, self.weight_bytes).source()

    def write_code(self) -> tuple[list[str], list[str]]:
        """One file for each section, and the assembly that takes them."""
        lines = ['.section .rodata.code, "a", %progbits']
        for section, number in self._numbers.items():
            (self.folder / f"code_{number}.bin").write_bytes(self._code(section))
            label = f"{self.name}_code_{number}"
            lines += [".balign 64", f".globl {label}", f".hidden {label}", f"{label}:", f'.incbin "code_{number}.bin"']
        lines += ['.section .note.GNU-stack, "", %progbits', ""]
        (self.folder / "code.S").write_text("\n".join(lines), "ascii")
        return ["code.S"], []

    def _code(self, section: str) -> bytes:
        code = bytes(self.plan.sections[section])
        if is_ptx(self._architectures[section]):
            return ptx_text(code, section)
        if code[:4] != b"\x7fELF":
            raise PlanError(f"damaged object code {section!r}: not a cubin")
        return code
