"""One ELF file of the functions of many cubins: nvdisasm takes a third of a second to start, whatever it is given."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQ")
_SYMBOLS, _STRINGS, _RELA, _REL = 2, 3, 4, 9
_EXECUTABLE = 4
_RESERVED = 0xFF00  # section numbers from here on have meanings of their own
_GLOBAL = 1  # the binding of a symbol, in the upper bits of its `info`
_ENTRY_SIZES = {_RELA: 24, _REL: 16}
_OWN = 4  # the empty section, the names of sections, those of symbols, and the symbols
_KEPT = (".text.", ".nv.constant", ".nv.info.")


@dataclass(frozen=True)
class Section:
    """A section of an ELF file."""

    name: str
    kind: int
    flags: int
    link: int
    info: int
    alignment: int
    entry_size: int
    data: bytes

    @property
    def is_code(self) -> bool:
        return bool(self.flags & _EXECUTABLE)


@dataclass(frozen=True)
class Symbol:
    """A symbol of an ELF file."""

    name: str
    info: int
    other: int
    section: int
    value: int
    size: int


def architecture_flags(cubin: bytes) -> int:
    """What the header says of the architecture: equal for cubins that can be merged."""
    return int(HEADER.unpack_from(cubin)[7])


def sections_of(cubin: bytes) -> list[Section]:
    """The sections of a cubin in the order of their numbers."""
    header = HEADER.unpack_from(cubin)
    table, size, count, names = header[6], header[11], header[12], header[13]
    rows = [SECTION.unpack_from(cubin, table + number * size) for number in range(count)]
    texts = cubin[rows[names][4] : rows[names][4] + rows[names][5]]
    return [
        Section(_text(texts, name), kind, flags, link, info, alignment, entry, cubin[offset : offset + length])
        for name, kind, flags, _, offset, length, link, info, alignment, entry in rows
    ]


def merged(cubins: Sequence[bytes], marks: Sequence[str]) -> bytes:
    """A cubin with the functions of all; a mark is put behind the names of those of one cubin.

    The cubins are for one architecture. What nvdisasm does not need for `-c` is left out.
    """
    parts = [_Part.of(cubin, mark) for cubin, mark in zip(cubins, marks, strict=True)]
    local, public = list[Symbol](), list[Symbol]()
    starts, count = list[dict[int, int]](), _OWN
    for part in parts:
        starts.append({number: count + place for place, number in enumerate(part.kept)})
        count += len(part.kept)
    places: list[dict[int, tuple[bool, int]]] = []
    for part, numbers in zip(parts, starts, strict=True):
        places.append({})
        for number, symbol in enumerate(part.symbols):
            if symbol.section in numbers or not 0 < symbol.section < _RESERVED:
                known = local if symbol.info >> 4 != _GLOBAL else public
                places[-1][number] = known is public, len(known)
                known.append(replace(symbol, section=numbers.get(symbol.section, symbol.section)))
    changed: list[Section] = []
    for part, numbers, found in zip(parts, starts, places, strict=True):
        order = {number: 1 + place + len(local) * is_public for number, (is_public, place) in found.items()}
        changed += [_renumbered(part.sections[number], part.table, numbers, order) for number in part.kept]
    symbols = [Symbol("", 0, 0, 0, 0, 0), *local, *public]
    return _file(cubins[0], symbols, 1 + len(local), changed)


@dataclass(frozen=True)
class _Part:
    """What is kept of a cubin: sections by number, symbols, and the number of their table."""

    sections: Sequence[Section]
    kept: Sequence[int]
    symbols: Sequence[Symbol]
    table: int

    @staticmethod
    def of(cubin: bytes, mark: str) -> _Part:
        sections = sections_of(cubin)
        table = next(number for number, one in enumerate(sections) if one.kind == _SYMBOLS)
        texts = sections[sections[table].link].data
        kept = [number for number, one in enumerate(sections) if one.name.startswith(_KEPT)]
        kept += [number for number, one in enumerate(sections) if one.kind in _ENTRY_SIZES and one.info in kept]
        named = [replace(one, name=one.name + mark) for one in sections]
        return _Part(named, kept, list(_marked(_symbols(sections[table].data, texts), mark)), table)


def _symbols(data: bytes, texts: bytes) -> Iterator[Symbol]:
    for name, info, other, section, value, size in _SYMBOL.iter_unpack(data):
        yield Symbol(_text(texts, name), info, other, section, value, size)


def _marked(symbols: Iterable[Symbol], mark: str) -> Iterator[Symbol]:
    for one in symbols:
        yield replace(one, name=one.name + mark) if one.name else one


def _renumbered(section: Section, table: int, sections: dict[int, int], symbols: dict[int, int]) -> Section:
    """A section with the new numbers of what it refers to."""
    link = 3 if section.link == table else sections.get(section.link, 0)
    info = sections.get(section.info, 0)
    if section.is_code:  # the symbol of the function, below the number of its registers
        registers, symbol = section.info >> 24, section.info & 0xFFFFFF
        return replace(section, link=link, info=registers << 24 | symbols.get(symbol, 0))
    if section.kind not in _ENTRY_SIZES:
        return replace(section, link=link, info=info)
    data, size = bytearray(section.data), _ENTRY_SIZES[section.kind]
    for at in range(0, len(data), size):
        offset, about = _RELOCATION.unpack_from(data, at)
        _RELOCATION.pack_into(data, at, offset, symbols.get(about >> 32, 0) << 32 | about & 0xFFFFFFFF)
    return replace(section, link=link, info=info, data=bytes(data))


def _file(model: bytes, symbols: Sequence[Symbol], first_public: int, sections: Sequence[Section]) -> bytes:
    """An ELF file with the header of another one."""
    names, texts = _Texts(), _Texts()
    rows = [_SYMBOL.pack(texts.place(one.name), one.info, one.other, *_rest(one)) for one in symbols]
    table = Section(".symtab", _SYMBOLS, 0, 2, first_public, 8, _SYMBOL.size, b"".join(rows))
    own = [
        Section("", 0, 0, 0, 0, 0, 0, b""),
        Section(".shstrtab", _STRINGS, 0, 0, 0, 1, 0, b""),
        Section(".strtab", _STRINGS, 0, 0, 0, 1, 0, bytes(texts.data)),
        table,
    ]
    every = [*own, *sections]
    labels = [names.place(one.name) for one in every]
    every[1] = replace(every[1], data=bytes(names.data))
    content, rows = bytearray(HEADER.size), list[bytes]()
    for label, one in zip(labels, every, strict=True):
        content += bytes(-len(content) % max(one.alignment, 1))
        about = one.link, one.info, one.alignment, one.entry_size
        rows.append(SECTION.pack(label, one.kind, one.flags, 0, len(content), len(one.data), *about))
        content += one.data
    content += bytes(-len(content) % 8)
    head = list(HEADER.unpack_from(model))
    head[5:7] = 0, len(content)  # no program headers
    head[9:14] = 0, 0, SECTION.size, len(every), 1
    HEADER.pack_into(content, 0, *head)
    return bytes(content) + b"".join(rows)


def _rest(symbol: Symbol) -> tuple[int, int, int]:
    return symbol.section, symbol.value, symbol.size


class _Texts:
    """A section of texts that end with a zero."""

    def __init__(self) -> None:
        self.data = bytearray(1)

    def place(self, text: str) -> int:
        """Where a text lies."""
        if not text:
            return 0
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at


def _text(texts: bytes, at: int) -> str:
    return texts[at : texts.index(0, at)].decode()
