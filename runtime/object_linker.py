"""Links the object code of a plan into this process, and finds the address of each kernel.

Under Linux llvmlite alone does it; elsewhere runtime/code_image.py makes one block of code, which the system is given.

Compiled kernels refer to the compiler's error-reporting functions, which a plan's kernels never reach: those are bound
to stubs that do nothing, inside the linked group only. Everything else (libm, libc) must be there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mlirt.errors import PlanError
from mlirt.runtime.code_image import make_image
from mlirt.runtime.elf_sections import ElfObject, read_object
from mlirt.runtime.elf_symbols import ElfSymbols, read_symbols
from mlirt.runtime.error_path import is_error_path
from mlirt.runtime.host_cpu import host_architecture, host_triple
from mlirt.runtime.llvm_binding import llvm
from mlirt.runtime.systems import System, this_system
from mlirt.systems import system_of


@dataclass
class _Group:
    """Objects that are linked together: no name is defined twice in it."""

    objects: dict[str, ElfObject] = field(default_factory=dict[str, ElfObject])
    strong: set[str] = field(default_factory=set[str])
    defined: set[str] = field(default_factory=set[str])
    undefined: set[str] = field(default_factory=set[str])


class LinkedCode:
    """Machine code in memory; it stays there as long as this object lives."""

    def __init__(
        self,
        objects: Mapping[str, memoryview],
        needed: Sequence[tuple[str, str]],
        optional: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Link `objects` (section name to bytes) and look up each (section, symbol) of `needed`.

        Those that are `optional` have an address only where they are defined.
        """
        read = {name: read_object(data, name, host_architecture()) for name, data in objects.items()}
        tables = {name: read_symbols(elf) for name, elf in read.items()}
        for section, symbol in needed:
            if symbol not in tables[section].strong and symbol not in tables[section].weak:
                raise PlanError(
                    f"damaged object code {section!r}: it does not define {symbol[:80]!r}; if an earlier mlirt built "
                    "the plan, please rebuild it"
                )
        needed = [*needed, *[(section, symbol) for section, symbol in optional if symbol in tables[section].strong]]
        self._held: list[object] = []
        self.addresses: dict[tuple[str, str], int] = {}
        system = this_system()
        if system.loads_by_llvm:
            self._link_by_llvm(read, tables, needed)
        else:
            self._load(read, tables, needed, system)
        for (section, symbol), address in self.addresses.items():
            if not address:
                raise PlanError(f"damaged object code {section!r}: {symbol[:80]!r} has no address")

    def _link_by_llvm(
        self, read: Mapping[str, ElfObject], tables: Mapping[str, ElfSymbols], needed: Sequence[tuple[str, str]]
    ) -> None:
        for group in _grouped(read, tables):
            engine = _link(group)
            self._held.append(engine)
            for section, symbol in needed:
                if section in group.objects:
                    self.addresses[section, symbol] = engine.get_function_address(symbol)

    def _load(
        self,
        read: Mapping[str, ElfObject],
        tables: Mapping[str, ElfSymbols],
        needed: Sequence[tuple[str, str]],
        system: System,
    ) -> None:
        image = make_image(read, tables, host_architecture(), system_of(host_triple()))
        functions = {name: system.function(name) for name in image.imports}
        if missing := [name for name, address in functions.items() if not address]:
            raise PlanError(f"object code {next(iter(read))!r} needs functions that are not here: {missing[:5]}")
        try:
            memory = system.executable(image.bound(functions))
        except OSError as error:
            raise PlanError(f"the code of a plan cannot be loaded: {error.strerror or error}") from error
        self._held.append(memory)
        for section, symbol in needed:
            place = image.places.get((section, symbol))
            self.addresses[section, symbol] = 0 if place is None else memory.address + place


def _grouped(objects: Mapping[str, ElfObject], tables: Mapping[str, ElfSymbols]) -> list[_Group]:
    groups: list[_Group] = []
    for name, elf in objects.items():
        table = tables[name]
        group = next((group for group in groups if not group.strong & table.strong), None)
        if group is None:
            group = _Group()
            groups.append(group)
        group.objects[name] = elf
        group.strong |= table.strong
        group.defined |= table.strong | table.weak
        group.undefined |= table.undefined
    return groups


def _link(group: _Group) -> Any:
    binding = llvm()
    stubs: list[str] = []
    missing: list[str] = []
    for symbol in sorted(group.undefined - group.defined):
        if is_error_path(symbol):
            stubs.append(f'define i64 @"{symbol}"() {{ ret i64 0 }}')
        elif symbol != "_GLOBAL_OFFSET_TABLE_" and not _resolves(symbol):
            missing.append(symbol)
    if missing:
        raise PlanError(f"object code {next(iter(group.objects))!r} needs functions that are not here: {missing[:5]}")
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(jit=True)
    # In one range of memory: sections that lie where room is may be further from each other than 32 bits reach.
    engine = binding.create_mcjit_compiler(binding.parse_assembly("\n".join(stubs)), machine, use_lmm=True)
    for elf in group.objects.values():
        engine.add_object_file(binding.ObjectFileRef.from_data(elf.for_loading()))
    engine.finalize_object()
    return engine


def _resolves(symbol: str) -> bool:
    binding = llvm()
    if binding.address_of_symbol(symbol):
        return True
    _load_math_library()
    return bool(binding.address_of_symbol(symbol))


@cache
def _load_math_library() -> None:
    """Make libm's functions visible to the linker; Python itself may have been linked without them."""
    for name in ("libm.so.6", "libm.so"):
        try:
            llvm().load_library_permanently(name)
            return
        except RuntimeError:
            continue
