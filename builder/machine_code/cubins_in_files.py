"""The cubins in a file of any kind, and whether a cubin has asynchronous operations at all."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MAGIC = b"\x7fELF\x02\x01"
_CUDA = 190  # the machine of an ELF file
_HEADER = struct.Struct("<HHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_EXECUTABLE = 4
_INSTRUCTION = 16  # bytes
_OPCODE = 0x1FF  # bits; those above say where operands come from
# wgmma of all types; LDGSTS; copies and sums by the device; tcgen05.mma. One that is not meant costs time, no more.
_ASYNCHRONOUS = frozenset({*range(0x1F0, 0x1F8), 0x1AE, *range(0x1B4, 0x1BC), 0x1EA})


def cubins_in(data: bytes) -> Iterator[bytes]:
    """Every ELF file for NVIDIA GPUs in some bytes, such as a plan file or a cubin itself."""
    at = data.find(_MAGIC)
    while at >= 0:
        if len(data) >= at + 64:
            _, machine, _, _, programs, sections, *sizes = _HEADER.unpack_from(data, at + 16)
            program_size, program_count, section_size, section_count, _ = sizes[2:]
            if machine == _CUDA:
                end = max(sections + section_size * section_count, programs + program_size * program_count)
                yield data[at : at + end]
        at = data.find(_MAGIC, at + 1)


def is_asynchronous(cubin: bytes) -> bool:
    """Whether there is an instruction that starts something which goes on behind it."""
    return any(
        int.from_bytes(code[at : at + 2], "little") & _OPCODE in _ASYNCHRONOUS
        for code in _code(cubin)
        for at in range(0, len(code) - 1, _INSTRUCTION)
    )


def _code(cubin: bytes) -> Iterator[bytes]:
    """The sections that are executed."""
    _, _, _, _, _, table, _, _, _, _, size, count, _ = _HEADER.unpack_from(cubin, 16)
    for number in range(count):
        _, _, flags, _, offset, length, *_ = _SECTION.unpack_from(cubin, table + number * size)
        if flags & _EXECUTABLE:
            yield cubin[offset : offset + length]
