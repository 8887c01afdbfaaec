"""What the runtime asks of an operating system, behind one interface: one module for each system, and none of them
imports what the others lack.
"""

from functools import cache

from mlirt.runtime.host_cpu import host_triple
from mlirt.runtime.systems.interface import ExecutableMemory, System
from mlirt.systems import DARWIN, WINDOWS, system_of


@cache
def this_system() -> System:
    """That of this process."""
    name = system_of(host_triple())
    if name == WINDOWS:
        from mlirt.runtime.systems.windows import WindowsSystem

        return WindowsSystem()
    if name == DARWIN:
        from mlirt.runtime.systems.darwin import DarwinSystem

        return DarwinSystem()
    from mlirt.runtime.systems.linux import LinuxSystem

    return LinuxSystem()


__all__ = ["ExecutableMemory", "System", "this_system"]
