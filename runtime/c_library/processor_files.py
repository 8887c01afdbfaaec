"""A C library for processors: the plan's object code, linked as it is or as one block of code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mlirt.errors import PlanError, UnsupportedError
from mlirt.runtime.c_library.c_text import literal
from mlirt.runtime.c_library.library_files import LibraryFiles
from mlirt.runtime.c_library.system_files import image_source, system_files
from mlirt.runtime.c_library.tables import Tables, features_without_test
from mlirt.runtime.c_library.toolchain import compiler
from mlirt.runtime.code_image import make_image
from mlirt.runtime.elf_sections import read_object
from mlirt.runtime.elf_symbols import read_symbols
from mlirt.runtime.error_path import is_error_path
from mlirt.runtime.manifest import Manifest, MapArgument
from mlirt.runtime.plan_file import Plan
from mlirt.runtime.worker_pool import BORDERED, SYMBOLS
from mlirt.systems import architecture_of, system_of


def refuse_processor(manifest: Manifest) -> None:
    """Raise UnsupportedError where the plan has what C libraries lack."""
    triple = manifest.target.triple
    fault = ""
    if system_files(system_of(triple), architecture_of(triple)) is None:
        fault = f"the plan is for {triple}: C libraries are for x86-64 processors, and Arm's but for Windows, so far"
    elif manifest.hosted:
        names = sorted({manifest.kernels[manifest.launches[i].kernel].symbol for i in manifest.hosted})
        fault = f"the plugins {', '.join(names)[:200]} are functions of Python, which a C library cannot call"
    elif any(isinstance(one, MapArgument) for launch in manifest.launches for one in launch.args):
        fault = "the plan is damaged: only kernels of CUDA devices take maps of tensors"
    elif unknown := list(features_without_test(manifest)):
        fault = f"no test for the processor features {', '.join(unknown)} is known"
    if fault:
        raise UnsupportedError(fault)


class ProcessorFiles(LibraryFiles):
    """Kernels are functions of the library."""

    target = "cpu"
    alignment = 64

    def __init__(self, plan: Plan, name: str, folder: Path) -> None:
        triple = plan.manifest.target.triple
        self._architecture, self._system = architecture_of(triple), system_of(triple)
        files = system_files(self._system, self._architecture)
        assert files is not None
        super().__init__(plan, name, folder, files)

    def command(self) -> list[str]:
        """One for the plan's architecture and system."""
        return compiler(self._architecture, self._system)

    def tables(self, weight_places: Mapping[str, int]) -> str:
        """With the kernels by their addresses."""
        has_own = self.system_files.links_objects
        return Tables(self.plan.manifest, weight_places, self.name, has_own_symbols=has_own).source()

    def write_code(self) -> tuple[list[str], list[str]]:
        """The objects with stubs, or the image."""
        if self.system_files.links_objects:
            return ["stubs.c"], self._write_objects()
        self._write_image()
        return ["image.S"], []

    def _write_image(self) -> None:
        """The object code of the plan as one block, and the assembly that takes it, with C's names for its kernels."""
        manifest = self.plan.manifest
        arch, main = manifest.target.arch, manifest.main or ""
        homes = [(kernel.objects[arch], kernel.symbol) for kernel in manifest.kernels]
        needed = sorted({main, *(section for section, _ in homes)})
        objects = {name: read_object(memoryview(self.plan.sections[name]), name, self._architecture) for name in needed}
        tables = {name: read_symbols(elf) for name, elf in objects.items()}
        image = make_image(objects, tables, self._architecture, self._system)
        wanted = {f"kernel_{i}": home for i, home in enumerate(homes)}
        wanted |= {symbol: (main, symbol) for symbol in (*SYMBOLS, BORDERED)}
        for section, symbol in wanted.values():
            if (section, symbol) not in image.places:
                raise PlanError(
                    f"damaged object code {section!r}: it does not define {symbol[:80]!r}; rebuild the plan"
                )
        symbols = {name: image.places[home] for name, home in wanted.items()}
        (self.folder / "image.bin").write_bytes(image.code)
        (self.folder / "image.S").write_text(image_source(self.system_files, image, symbols), "ascii")

    def _write_objects(self) -> list[str]:
        """The object code of the plan, and in `stubs.c` functions for what it refers to and never calls."""
        manifest = self.plan.manifest
        arch = manifest.target.arch
        needed: dict[str, set[str]] = {manifest.main or "": {*SYMBOLS, BORDERED}}
        for kernel in manifest.kernels:
            needed.setdefault(kernel.objects[arch], set()).add(kernel.symbol)
        files: list[str] = []
        defined, strong, undefined = set[str](), set[str](), set[str]()
        for number, section in enumerate(sorted(needed)):
            code = memoryview(self.plan.sections[section])
            symbols = read_symbols(read_object(code, section, self._architecture))
            if clash := sorted(strong & symbols.strong):
                raise UnsupportedError(f"two objects of the plan define {clash[0][:80]!r}; rebuild it")
            for symbol in sorted(needed[section] - symbols.strong - symbols.weak):
                raise PlanError(
                    f"damaged object code {section!r}: it does not define {symbol[:80]!r}; rebuild the plan"
                )
            strong |= symbols.strong
            defined |= symbols.strong | symbols.weak
            undefined |= symbols.undefined
            files.append(f"plan_{number}.o")
            (self.folder / files[-1]).write_bytes(code)
        stubs = [name for name in sorted(undefined - defined) if is_error_path(name)]
        lines = [f"long stub_{i}(void) __asm__({literal(name)});" for i, name in enumerate(stubs)]
        lines += [f"long stub_{i}(void) {{ return 0; }}" for i in range(len(stubs))]
        (self.folder / "stubs.c").write_text("\n".join([*lines, "typedef int no_empty_file;", ""]), "ascii")
        return files
