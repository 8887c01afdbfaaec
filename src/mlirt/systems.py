"""The operating systems that code is made for, by LLVM's names, and how machines with them are called.

Object code is ELF for all of them, which an environment that ends in `elf` tells LLVM: one loader and one linker do for
every system. Calling convention, reserved registers and stack probes are those of the system.
"""

from __future__ import annotations

LINUX, DARWIN, WINDOWS = SYSTEMS = ("linux", "darwin", "windows")
_TRIPLES = {
    LINUX: "{architecture}-unknown-linux-gnu",
    DARWIN: "{architecture}-apple-macosx11.0.0-elf",
    WINDOWS: "{architecture}-pc-windows-msvc-elf",
}
_SAME = {"macosx": DARWIN, "macos": DARWIN, "win32": WINDOWS}
_ARCHITECTURES = {"arm64": "aarch64", "amd64": "x86_64"}
_RESERVED = {DARWIN: ("reserve-x18",), WINDOWS: ("reserve-x18",)}


def triple_of(architecture: str, system: str) -> str:
    """LLVM's name of a machine for which ELF objects are made."""
    name = "arm64" if (architecture, system) == ("aarch64", DARWIN) else architecture
    return _TRIPLES[system].format(architecture=name)


def architecture_of(triple: str) -> str:
    """The first part of a triple, with the usual aliases unified."""
    name = triple.split("-")[0]
    return _ARCHITECTURES.get(name, name)


def system_of(triple: str) -> str:
    """The operating system of a triple without its version; empty where it does not say it."""
    parts = triple.split("-")
    name = parts[2].rstrip("0123456789.") if len(parts) > 2 else ""
    return _SAME.get(name, name)


def elf_triple(triple: str) -> str:
    """The triple of the same machine whose objects are ELF; itself where they are."""
    system = system_of(triple)
    return triple_of(architecture_of(triple), system) if system in (DARWIN, WINDOWS) else triple


def reserved_features(triple: str) -> tuple[str, ...]:
    """What LLVM is told so that code leaves alone the registers that belong to the system."""
    return _RESERVED.get(system_of(triple), ()) if architecture_of(triple) == "aarch64" else ()
