"""Writes distances into instructions, for the relocations of ELF objects whose code may lie anywhere."""

from __future__ import annotations

import struct

_INT32 = struct.Struct("<i")
_WORD = struct.Struct("<I")
_PAGE = 1 << 12
_LOAD, _ADDRESS_OF = 0x8B, 0x8D
_SCALES = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
"""Kinds of Arm's relocations that write the lower 12 bits of an address, in units of so many bits."""


def moved(code: bytearray, architecture: str, kind: int, place: int, target: int, addend: int) -> bool:
    """Let what stands at a place reach a target in the same block of code; False for kinds that need its address."""
    write = {"x86_64": _x86, "aarch64": _arm}[architecture]
    return write(code, kind, place, target + addend)


def _x86(code: bytearray, kind: int, place: int, to: int) -> bool:
    if kind == 24:
        struct.pack_into("<q", code, place, to - place)
        return True
    if kind in (9, 41, 42):  # by a table of addresses, which is not needed for what is near
        if not _without_table(code, place):
            return False
    elif kind not in (2, 4):
        return False
    _INT32.pack_into(code, place, to - place)
    return True


def _without_table(code: bytearray, place: int) -> bool:
    """Let an instruction that loads an address from a table, or calls by one, have the address itself."""
    if place < 2:
        return False
    if code[place - 2] == _LOAD:
        code[place - 2] = _ADDRESS_OF
        return True
    if bytes(code[place - 2 : place]) == b"\xff\x15":  # call *table(%rip)
        code[place - 2 : place] = b"\x67\xe8"  # addr32 call
        return True
    return False


def _arm(code: bytearray, kind: int, place: int, to: int) -> bool:
    if kind in (260, 261):
        struct.pack_into("<q" if kind == 260 else "<i", code, place, to - place)
        return True
    (word,) = _WORD.unpack_from(code, place)
    if kind in (275, 311):  # adrp
        pages = to // _PAGE - place // _PAGE
        word = word & ~0x60FFFFE0 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    elif kind == 312:  # ldr from a table of addresses: add, for what is near
        word = 0x91000000 | (to % _PAGE) << 10 | word & 0x3FF
    elif kind in _SCALES:
        scale = _SCALES[kind]
        if to % (1 << scale):
            return False
        word = word & ~0x003FFC00 | (to % _PAGE >> scale) << 10
    elif kind in (282, 283):  # b, bl
        word = word & ~0x03FFFFFF | (to - place >> 2) & 0x03FFFFFF
    elif kind == 280:  # b.cond, cbz
        word = word & ~0x00FFFFE0 | (to - place >> 2 & 0x7FFFF) << 5
    elif kind == 279:  # tbz
        word = word & ~0x0007FFE0 | (to - place >> 2 & 0x3FFF) << 5
    else:
        return False
    _WORD.pack_into(code, place, word)
    return True
