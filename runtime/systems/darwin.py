"""macOS: pages of 16 KiB, memory for code that a hardened process has to ask for, and a cache of instructions.

Nobody has run this: there was no such machine. Its functions and numbers are those of Apple's headers.
"""

from __future__ import annotations

from mlirt.runtime.systems.posix import EXECUTE, READ, WRITE, Mapping, PosixSystem

_JIT = 0x0800


class DarwinSystem(PosixSystem):
    """As the interface says."""

    loads_by_llvm = False
    anonymous = 0x1000

    def executable(self, code: bytes) -> Mapping:
        """By `mprotect`; where the process is hardened, in memory that is writable or executable for each thread."""
        try:
            mapping = super().executable(code)
        except OSError:
            mapping = self._hardened(code)
        self.libc.sys_icache_invalidate.argtypes = self.libc.munmap.argtypes
        self.libc.sys_icache_invalidate(mapping.address, len(code))
        return mapping

    def _hardened(self, code: bytes) -> Mapping:
        """With MAP_JIT, for which a signed program needs the entitlement `com.apple.security.cs.allow-jit`."""
        mapping = Mapping(self.libc, len(code), READ | WRITE | EXECUTE, self.anonymous | _JIT)
        protects = self.function("pthread_jit_write_protect_np") != 0
        if protects:
            self.libc.pthread_jit_write_protect_np(0)
        try:
            mapping.write(code)
        finally:
            if protects:
                self.libc.pthread_jit_write_protect_np(1)
        return mapping
