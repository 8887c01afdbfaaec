"""Writes an engine as a C library: `NAME.h`, `libNAME.so`, `NAME.o`, a header for C++ and an example in C.

The object code is the plan's own, so that results have the same bits; weights are a section of the library. What the
host does (formulas of lengths, places of buffers, the order of launches) is in the plan's tables, and `sources/` has
the program in C that reads them. Where a system's linker takes no ELF objects they are one block of code.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mlirt.atomic_file import write_file
from mlirt.errors import InvalidInputError, PlanError, UnsupportedError
from mlirt.runtime.c_library.c_text import literal
from mlirt.runtime.c_library.system_files import SYSTEM_FILES, image_source, named, weights_source
from mlirt.runtime.c_library.tables import Tables, features_without_test, first_value
from mlirt.runtime.c_library.toolchain import compiler, run
from mlirt.runtime.code_image import make_image
from mlirt.runtime.elf_sections import read_object
from mlirt.runtime.elf_symbols import read_symbols
from mlirt.runtime.engine import Engine
from mlirt.runtime.engine_interface import EngineLike
from mlirt.runtime.error_path import is_error_path
from mlirt.runtime.manifest import Manifest, MapArgument
from mlirt.runtime.plan_file import Plan, read_plan
from mlirt.runtime.state_pairs import initial_arrays
from mlirt.runtime.worker_pool import BORDERED, SYMBOLS
from mlirt.systems import architecture_of, system_of

_SOURCES = Path(__file__).parent / "sources"
_HEADERS, _EXAMPLE = ("net.h", "net.hpp"), "example.c"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_OWN_NAMES = re.compile(r"\b(net|NET)(?=_|\.h)|-lnet\b")
_MAX_WEIGHTS = 1900 << 20
"""Code and weights of one library lie within 2 GiB, which its instructions reach."""
_ALIGNMENT = 64
"""Of weights at least, in bytes."""
_OPTIONS = ("-std=gnu11", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra")


def export_c(engine: EngineLike | Plan | Path | str, folder: str | os.PathLike[str], name: str = "net") -> Path:
    """Write the library `name` of an engine for processors, or of a plan file, into a folder; its path is returned.

    Functions of the library begin with the name. Raises `UnsupportedError` where the plan is not for x86-64 processors
    (or, under macOS, Arm's), or has plugins, or no C compiler for its system is found; `InvalidInputError` for a name
    or a folder that makes no sense.
    """
    plan = _plan_of(engine)
    if not _NAME.fullmatch(name):
        raise InvalidInputError(f"{name!r} is no name for a C library; expected small letters, digits and _")
    _refuse(plan.manifest)
    target = Path(folder)
    with tempfile.TemporaryDirectory(prefix="mlirt-c-") as scratch:
        built = _Build(plan, name, Path(scratch))
        files = built.files()
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(f"cannot make the folder {target}: {error.strerror}") from error
        for file in files:
            with file.open("rb") as stream:
                write_file(target / file.name, iter(lambda: stream.read(1 << 22), b""), "the C library")
        (target / built.library.name).chmod(0o755)
    return target / built.library.name


def _plan_of(engine: EngineLike | Plan | Path | str) -> Plan:
    if isinstance(engine, str | Path):
        return read_plan(engine)
    if isinstance(engine, Plan | Engine):
        return engine if isinstance(engine, Plan) else engine.plan
    raise UnsupportedError("a C library is made of an engine with a plan; build with target='cpu'")


def _refuse(manifest: Manifest) -> None:
    """Raise UnsupportedError where the plan has what C libraries lack."""
    triple = manifest.target.triple
    files = SYSTEM_FILES.get(system_of(triple))
    fault = ""
    if manifest.target.kind != "cpu":
        fault = "the plan is for a GPU: C libraries are for processors so far; build with --target=cpu"
    elif files is None or architecture_of(triple) not in files.architectures:
        fault = f"the plan is for {triple}: C libraries are for x86-64 processors, and Arm's under macOS, so far"
    elif manifest.hosted:
        names = sorted({manifest.kernels[manifest.launches[i].kernel].symbol for i in manifest.hosted})
        fault = f"the plugins {', '.join(names)[:200]} are functions of Python, which a C library cannot call"
    elif any(isinstance(one, MapArgument) for launch in manifest.launches for one in launch.args):
        fault = "the plan is damaged: only kernels of CUDA devices take maps of tensors"
    elif unknown := list(features_without_test(manifest)):
        fault = f"no test for the processor features {', '.join(unknown)} is known"
    if fault:
        raise UnsupportedError(fault)


class _Build:
    """The files of one library, made in a scratch folder."""

    def __init__(self, plan: Plan, name: str, folder: Path) -> None:
        self._plan, self._name, self._folder = plan, name, folder
        triple = plan.manifest.target.triple
        self._architecture, self._system = architecture_of(triple), system_of(triple)
        self._system_files = SYSTEM_FILES[self._system]
        self.library = folder / self._system_files.library.format(name=name)

    def files(self) -> list[Path]:
        """What goes to the user."""
        command = compiler(self._architecture, self._system)
        places = self._write_weights()
        joins = self._system_files.links_objects
        tables = Tables(self._plan.manifest, places, self._name, has_own_symbols=joins).source()
        (self._folder / "tables.c").write_text(tables, "ascii")
        for source in sorted(_SOURCES.glob("*.[ch]*")):
            text = self._renamed(source.read_text("utf-8"))
            (self._folder / source.name.replace("net.", f"{self._name}.")).write_text(text, "utf-8")
        objects = self._write_objects() if joins else self._write_image()
        sources = [one.name for one in _SOURCES.glob("*.c") if one.name != _EXAMPLE]
        sources = [*sorted(sources), "tables.c", "stubs.c" if joins else "image.S", "weights.S"]
        run([*command, *_OPTIONS, *self._system_files.options, "-c", *sources], self._folder)
        objects = [*(Path(one).with_suffix(".o").name for one in sources), *objects]
        self._link(command, objects)
        static = self._join(command, objects) if joins else []
        headers = [self._folder / one.replace("net.", f"{self._name}.") for one in _HEADERS]
        beside = [self._folder / one for one in named(self._system_files.beside, self._name)]
        return [self.library, *beside, *static, *headers, self._folder / _EXAMPLE]

    def _write_weights(self) -> Mapping[str, int]:
        """Write the weights, as they are in memory, and the source that takes them; where each begins, by its key."""
        aligns, places, end = dict[str, int](), dict[str, int](), 0
        for buffer in self._plan.manifest.buffers:
            if buffer.kind == "weight" and buffer.weight is not None and buffer.view_of is None:
                aligns[buffer.weight] = max(aligns.get(buffer.weight, _ALIGNMENT), buffer.align)
        arrays = dict(self._plan.weights)
        for name, value in initial_arrays(self._plan.manifest, self._plan.sections).items():
            arrays[first_value(name)] = value
            aligns[first_value(name)] = _ALIGNMENT
        with (self._folder / "weights.bin").open("wb") as stream:
            for key, align in aligns.items():
                places[key] = -(-end // align) * align
                stream.write(bytes(places[key] - end))
                array = np.ascontiguousarray(arrays[key])
                stream.write(array.reshape(-1).view(np.uint8).data)
                end = places[key] + array.nbytes
                if end > _MAX_WEIGHTS:
                    raise UnsupportedError(
                        f"the weights have more than {_MAX_WEIGHTS >> 20} MiB, as a C library may have"
                    )
        source = weights_source(self._system_files, self._name, max(aligns.values(), default=1))
        (self._folder / "weights.S").write_text(source, "ascii")
        return places

    def _write_image(self) -> list[str]:
        """The object code of the plan as one block, and the assembly that takes it, with C's names for its kernels."""
        manifest = self._plan.manifest
        arch, main = manifest.target.arch, manifest.main or ""
        homes = [(kernel.objects[arch], kernel.symbol) for kernel in manifest.kernels]
        needed = sorted({main, *(section for section, _ in homes)})
        objects = {
            name: read_object(memoryview(self._plan.sections[name]), name, self._architecture) for name in needed
        }
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
        (self._folder / "image.bin").write_bytes(image.code)
        (self._folder / "image.S").write_text(image_source(self._system_files, image, symbols), "ascii")
        return []

    def _write_objects(self) -> list[str]:
        """The object code of the plan, and in `stubs.c` functions for what it refers to and never calls."""
        manifest = self._plan.manifest
        arch = manifest.target.arch
        needed: dict[str, set[str]] = {manifest.main or "": {*SYMBOLS, BORDERED}}
        for kernel in manifest.kernels:
            needed.setdefault(kernel.objects[arch], set()).add(kernel.symbol)
        files: list[str] = []
        defined, strong, undefined = set[str](), set[str](), set[str]()
        for number, section in enumerate(sorted(needed)):
            code = memoryview(self._plan.sections[section])
            symbols = read_symbols(read_object(code, section, "x86_64"))
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
            (self._folder / files[-1]).write_bytes(code)
        stubs = [name for name in sorted(undefined - defined) if is_error_path(name)]
        lines = [f"long stub_{i}(void) __asm__({literal(name)});" for i, name in enumerate(stubs)]
        lines += [f"long stub_{i}(void) {{ return 0; }}" for i in range(len(stubs))]
        (self._folder / "stubs.c").write_text("\n".join([*lines, "typedef int no_empty_file;", ""]), "ascii")
        return files

    def _renamed(self, text: str) -> str:
        """Source with the library's own name."""
        own = self._name
        return _OWN_NAMES.sub(lambda found: found[0].replace("net", own).replace("NET", own.upper()), text)

    def _link(self, command: list[str], objects: list[str]) -> None:
        (self._folder / "exports").write_text(f"{{ global: {self._name}_*; local: *; }};\n", "ascii")
        linking = named(self._system_files.linking, self._name)
        run([*command, *linking, *objects, *self._system_files.libraries], self._folder)

    def _join(self, command: list[str], objects: list[str]) -> list[Path]:
        """One object for programs that are linked without shared libraries; none where there is no objcopy."""
        if shutil.which("objcopy") is None:
            return []
        joined = f"{self._name}.o"
        run([*command, "-r", "-nostdlib", "-o", "joined.o", *objects], self._folder)
        run(["objcopy", "--wildcard", f"--keep-global-symbol={self._name}_*", "joined.o", joined], self._folder)
        return [self._folder / joined]
