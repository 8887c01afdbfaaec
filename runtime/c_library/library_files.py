"""The files of a C library: the program in C and the weights, which all targets share, compiled and linked."""

from __future__ import annotations

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from mlirt.errors import UnsupportedError
from mlirt.runtime.c_library.system_files import SystemFiles, named, weights_source
from mlirt.runtime.c_library.tables import first_value
from mlirt.runtime.c_library.toolchain import run
from mlirt.runtime.plan_file import Plan
from mlirt.runtime.state_pairs import initial_arrays

_SOURCES = Path(__file__).parent / "sources"
_HEADERS, _EXAMPLE = ("net.h", "net.hpp"), "example.c"
_OWN_NAMES = re.compile(r"\b(net|NET)(?=_|\.h)|-lnet\b")
_OF_TARGETS = re.compile(r"#if NET_FOR_CUDA\n(.*?)(?:#else\n(.*?))?#endif\n", re.DOTALL)
_OPTIONS = ("-std=gnu11", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra")


class LibraryFiles(ABC):
    """The files of one library, made in a scratch folder."""

    target: str
    """The folder of the sources that are not those of all targets."""
    alignment: int
    """Of weights at least, in bytes."""

    def __init__(self, plan: Plan, name: str, folder: Path, system_files: SystemFiles) -> None:
        self.plan, self.name, self.folder = plan, name, folder
        self.system_files = system_files
        self.library = folder / system_files.library.format(name=name)

    @abstractmethod
    def command(self) -> list[str]:
        """The C compiler."""

    @abstractmethod
    def tables(self, weight_places: Mapping[str, int]) -> str:
        """The source of the plan's tables."""

    @abstractmethod
    def write_code(self) -> tuple[list[str], list[str]]:
        """Write the plan's code: the sources that take it, and objects to be linked."""

    def files(self) -> list[Path]:
        """What goes to the user."""
        command = self.command()
        (self.folder / "tables.c").write_text(self.tables(self._write_weights()), "ascii")
        sources: list[str] = []
        for source in self._sources():
            text = self._of_target(source.read_text("utf-8"))
            (self.folder / source.name.replace("net.", f"{self.name}.")).write_text(text, "utf-8")
            sources += [source.name] if source.suffix == ".c" and source.name != _EXAMPLE else []
        own, objects = self.write_code()
        sources += ["tables.c", *own, "weights.S"]
        run([*command, *_OPTIONS, *self.system_files.options, "-c", *sources], self.folder)
        objects = [*(Path(one).with_suffix(".o").name for one in sources), *objects]
        self._link(command, objects)
        static = self._join(command, objects) if self.system_files.links_objects else []
        headers = [self.folder / one.replace("net.", f"{self.name}.") for one in _HEADERS]
        beside = [self.folder / one for one in named(self.system_files.beside, self.name)]
        return [self.library, *beside, *static, *headers, self.folder / _EXAMPLE]

    def _sources(self) -> Iterator[Path]:
        for folder in (_SOURCES, _SOURCES / self.target):
            yield from sorted(folder.glob("*.[ch]*"))

    def _of_target(self, text: str) -> str:
        """Source for the target, with the library's own name."""
        own, part = self.name, 1 if self.target == "cuda" else 2
        text = _OF_TARGETS.sub(lambda found: found[part] or "", text)
        return _OWN_NAMES.sub(lambda found: found[0].replace("net", own).replace("NET", own.upper()), text)

    def _write_weights(self) -> Mapping[str, int]:
        """Write the weights, as they are in memory, and the source that takes them; where each begins, by its key."""
        aligns, places, end = dict[str, int](), dict[str, int](), 0
        for buffer in self.plan.manifest.buffers:
            if buffer.kind == "weight" and buffer.weight is not None and buffer.view_of is None:
                aligns[buffer.weight] = max(aligns.get(buffer.weight, self.alignment), buffer.align)
        arrays = dict(self.plan.weights)
        for name, value in initial_arrays(self.plan.manifest, self.plan.sections).items():
            arrays[first_value(name)] = value
            aligns[first_value(name)] = self.alignment
        with (self.folder / "weights.bin").open("wb") as stream:
            for key, align in aligns.items():
                places[key] = -(-end // align) * align
                stream.write(bytes(places[key] - end))
                array = np.ascontiguousarray(arrays[key])
                stream.write(array.reshape(-1).view(np.uint8).data)
                end = places[key] + array.nbytes
                if end > self.system_files.max_weights:
                    most = self.system_files.max_weights >> 20
                    raise UnsupportedError(f"the weights have more than {most} MiB, as a C library may have")
        self.weight_bytes = end
        source = weights_source(self.system_files, self.name, max(aligns.values(), default=1))
        (self.folder / "weights.S").write_text(source, "ascii")
        return places

    def _link(self, command: Sequence[str], objects: Sequence[str]) -> None:
        (self.folder / "exports").write_text(f"{{ global: {self.name}_*; local: *; }};\n", "ascii")
        linking = named(self.system_files.linking, self.name)
        run([*command, *linking, *objects, *self.system_files.libraries], self.folder)

    def _join(self, command: Sequence[str], objects: Sequence[str]) -> list[Path]:
        """One object for programs that are linked without shared libraries; none where there is no objcopy."""
        objcopy = run([*command, "-print-prog-name=objcopy"], self.folder).strip()
        if shutil.which(objcopy) is None:
            return []
        joined = f"{self.name}.o"
        run([*command, "-r", "-nostdlib", "-o", "joined.o", *objects], self.folder)
        run([objcopy, "--wildcard", f"--keep-global-symbol={self.name}_*", "joined.o", joined], self.folder)
        return [self.folder / joined]
