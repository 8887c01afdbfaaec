"""What a C library is made of for each operating system: names of files, flags of tools, and sources in assembly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mlirt.runtime.code_image import BLOCK_ALIGNMENT, DETOUR_BYTES, CodeImage
from mlirt.systems import DARWIN, LINUX, WINDOWS

_NEAR, _ANY = 1900 << 20, 1 << 46


@dataclass(frozen=True)
class SystemFiles:
    """`library`, `beside`: names of files, with the library's own name in them."""

    library: str
    beside: tuple[str, ...]
    """What else the linker writes that users need."""
    prefix: str
    """Of C's names in assembly."""
    weights: str
    """The section of weights."""
    max_weights: int
    """Bytes of them: where they do not lie behind all else, instructions reach 2 GiB, code and weights together."""
    code: str
    options: tuple[str, ...]
    """Of the C compiler."""
    linking: tuple[str, ...]
    libraries: tuple[str, ...]
    architectures: tuple[str, ...]
    links_objects: bool
    """Whether the linker takes the plan's own ELF objects; else they are linked to one block before."""

    hides: str
    """What lets the library alone see a symbol of assembly; empty where no symbol is seen that is not exported."""

    def hidden(self, symbol: str) -> str:
        """The line for a symbol of C."""
        return self.hides and f"{self.hides} {self.prefix}{symbol}"


SYSTEM_FILES: dict[str, SystemFiles] = {
    LINUX: SystemFiles(
        library="lib{name}.so",
        beside=(),
        prefix="",
        weights='.section .lrodata.weights, "al", @progbits',
        max_weights=_ANY,
        code=".text",
        options=("-fPIC",),
        linking=(
            *("-shared", "-o", "lib{name}.so", "-Wl,-soname,lib{name}.so", "-Wl,--version-script=exports"),
            *("-Wl,--no-undefined", "-Wl,-z,noexecstack", "-Wl,-z,relro,-z,now"),
        ),
        libraries=("-lm", "-lpthread"),
        architectures=("x86_64",),
        links_objects=True,
        hides=".hidden",
    ),
    DARWIN: SystemFiles(
        library="lib{name}.dylib",
        beside=(),
        prefix="_",
        weights=".section __TEXT,__const",
        max_weights=_NEAR,
        code=".section __TEXT,__text,regular,pure_instructions",
        options=("-fPIC",),
        linking=("-dynamiclib", "-o", "lib{name}.dylib", "-Wl,-install_name,@rpath/lib{name}.dylib"),
        libraries=(),
        architectures=("x86_64", "aarch64"),
        links_objects=False,
        hides=".private_extern",
    ),
    # The library of threads that the compiler's own code for thread-local data needs is in the library.
    WINDOWS: SystemFiles(
        library="{name}.dll",
        beside=("lib{name}.dll.a",),
        prefix="",
        weights='.section .rdata$weights, "dr"',
        max_weights=_NEAR,
        code=".text",
        options=("-D__USE_MINGW_ANSI_STDIO=1",),
        linking=("-shared", "-static", "-o", "{name}.dll", "-Wl,--out-implib,lib{name}.dll.a"),
        libraries=(),
        architectures=("x86_64",),
        links_objects=False,
        hides="",
    ),
}

_WEIGHTS_ELSEWHERE = '.section .rodata.weights, "a", %progbits'
"""Of processors whose linkers have no section for what lies far away."""
_ARM_FILES = replace(SYSTEM_FILES[LINUX], weights=_WEIGHTS_ELSEWHERE, max_weights=_NEAR, architectures=("aarch64",))


def system_files(system: str, architecture: str) -> SystemFiles | None:
    """Those of a library for processors; None where there are none."""
    files = SYSTEM_FILES.get(system)
    files = _ARM_FILES if (system, architecture) == (LINUX, "aarch64") else files
    return files if files is not None and architecture in files.architectures else None


CUDA_FILES = replace(SYSTEM_FILES[LINUX], libraries=("-ldl", "-lpthread"), architectures=())
"""Of a library for CUDA devices, whose host may be any processor under Linux: this is for x86-64."""
CUDA_FILES_ELSEWHERE = replace(CUDA_FILES, weights=_WEIGHTS_ELSEWHERE, max_weights=_NEAR)
"""For other processors."""


def weights_source(files: SystemFiles, name: str, align: int) -> str:
    """Assembly that takes the file `weights.bin`."""
    label = f"{files.prefix}{name}_weights"
    lines = [
        files.weights,
        f".balign {align}",
        f".globl {label}",
        files.hidden(f"{name}_weights"),
        f"{label}:",
        '.incbin "weights.bin"',
        ".byte 0",
    ]
    if files.links_objects:
        lines.append('.section .note.GNU-stack, "", @progbits')
    return "\n".join([*filter(None, lines), ""])


def image_source(files: SystemFiles, image: CodeImage, symbols: Mapping[str, int]) -> str:
    """Assembly that takes the file `image.bin` up to the detours of functions, which become jumps, and names places
    in it.
    """
    jump = {"x86_64": "jmp", "aarch64": "b"}[image.architecture]
    aligned = BLOCK_ALIGNMENT if image.architecture == "aarch64" else 64
    end = min(image.imports.values(), default=len(image.code))
    lines = [files.code, f".balign {aligned}", "plan_image:", f'.incbin "image.bin", 0, {end}']
    for symbol in sorted(image.imports, key=lambda one: image.imports[one]):
        lines += [f"{jump} {files.prefix}{symbol}", f".balign {DETOUR_BYTES}"]
    for symbol, place in sorted(symbols.items()):
        label = f"{files.prefix}{symbol}"
        lines += [f".globl {label}", files.hidden(symbol), f".set {label}, plan_image + {place}"]
    return "\n".join([*filter(None, lines), ""])


def named(texts: Sequence[str], name: str) -> list[str]:
    """Texts with the library's own name."""
    return [text.format(name=name) for text in texts]
