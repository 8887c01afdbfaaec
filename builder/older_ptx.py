"""PTX that was made for sm_80 as PTX for sm_75, which lacks some of its instructions: each becomes those that it has.

Products of halves are two of half the depth, those of bytes four; asynchronous copies are loads and stores; conversions
to bfloat16 are arithmetic of integers; the larger of two is no number where one of them is none by a comparison.
Registers of results are written last, as they may be those of operands.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_REGISTERS = r"\{([^}]*)\}"
_HALVES = re.compile(rf"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.f16\.f16\.f32 {', '.join([_REGISTERS] * 4)};")
_BYTES = re.compile(rf"mma\.sync\.aligned\.m16n8k32\.row\.col\.s32\.([su]8)\.s8\.s32 {', '.join([_REGISTERS] * 4)};")
_COPY = re.compile(r"cp\.async\.c[ag]\.shared\.global \[([^]]*)\], \[([^]]*)\], (\d+)(?:, ([^;]*))?;")
_GROUPS = re.compile(r"cp\.async\.(?:commit_group|wait_group \d+);")
_HALF_PAIR = re.compile(r"cvt\.rn\.f16x2\.f32 ([^,]+), ([^,]+), ([^;]+);")
_BFLOAT_PAIR = re.compile(r"cvt\.rn\.bf16x2\.f32 ([^,]+), ([^,]+), ([^;]+);")
_BFLOAT = re.compile(r"cvt\.rn\.bf16\.f32 ([^,]+), ([^;]+);")
_NUMBER = r"(%?\w+)"
_EXTREME = re.compile(rf"(min|max)\.NaN\.f(32|16)\s+{_NUMBER}, {_NUMBER}, {_NUMBER};")
_WORD = 4  # bytes


def for_turing(text: str) -> str:
    """The PTX of a kernel for sm_80 as such for sm_75; instructions for which there are no others stay as they are."""
    text = re.sub(r"^\.target .*$", ".target sm_75", text, flags=re.MULTILINE)
    for pattern, written in _INSTEAD:
        text = pattern.sub(written, text)
    return text


def _halves(match: re.Match[str]) -> str:
    d, a, b, c = _lists(match.groups())
    shape = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
    return _scope(
        ".reg .f32 t<4>;",
        f"{shape} {{t0,t1,t2,t3}}, {{{a[0]},{a[1]}}}, {{{b[0]}}}, {{{','.join(c)}}};",
        f"{shape} {{{','.join(d)}}}, {{{a[2]},{a[3]}}}, {{{b[1]}}}, {{t0,t1,t2,t3}};",
    )


def _bytes(match: re.Match[str]) -> str:
    d, a, b, c = _lists(match.groups()[1:])
    shape = f"mma.sync.aligned.m8n8k16.row.col.s32.{match[1]}.s8.s32"
    products = [
        f"{shape} {{t{at},t{at + 1}}}, {{{a[row + 2 * deep]}}}, {{{b[deep]}}}, {{{first},{second}}};"
        for row in range(2)
        for at in (2 * row,)
        for deep, (first, second) in enumerate([(c[at], c[at + 1]), (f"t{at}", f"t{at + 1}")])
    ]
    return _scope(".reg .b32 t<4>;", *products, *(f"mov.b32 {one}, t{number};" for number, one in enumerate(d)))


def _copy(match: re.Match[str]) -> str:
    target, source, width, valid = match[1], match[2], int(match[3]), match[4]
    words = width // _WORD
    names = [f"w{number}" for number in range(words)]
    vector = "" if words == 1 else f".v{words}"
    whole = names[0] if words == 1 else f"{{{','.join(names)}}}"
    load, store = f"ld.global{vector}.b32 {whole}, [{source}];", f"st.shared{vector}.b32 [{target}], {whole};"
    declared = f".reg .b32 {','.join(names)};"
    if valid is None:
        return _scope(declared, load, store)
    parts = [line for number in range(words) for line in _part(number, source, valid)]
    return _scope(
        declared,
        ".reg .b32 part;",
        ".reg .pred p;",
        f"setp.ge.s32 p, {valid}, {width};",
        "@p bra WHOLE;",
        *(f"mov.b32 {name}, 0;" for name in names),
        f"setp.le.s32 p, {valid}, 0;",
        "@p bra STORE;",
        *parts,
        "bra STORE;",
        f"WHOLE: {load}",
        f"STORE: {store}",
    )


def _part(number: int, source: str, valid: str) -> list[str]:
    """One word of a copy of which so many bytes are valid."""
    first = number * _WORD
    lines = [f"setp.ge.s32 p, {valid}, {first + _WORD};", f"@p ld.global.b32 w{number}, [{source}+{first}];"]
    for byte in range(_WORD - 1):
        lines += [
            f"setp.gt.s32 p, {valid}, {first + byte};",
            f"setp.lt.and.s32 p, {valid}, {first + _WORD}, p;",
            f"@p ld.global.u8 part, [{source}+{first + byte}];",
            f"@p shl.b32 part, part, {8 * byte};",
            f"@p or.b32 w{number}, w{number}, part;",
        ]
    return lines


def _extreme(match: re.Match[str]) -> str:
    """No number where either is none; sm_75 has that of neither width, and of halves none at all."""
    name, width, result, *operands = match.groups()
    move = "mov.f32" if width == "32" else "cvt.f32.f16"
    return _scope(
        ".reg .f32 a, b, c;",
        ".reg .pred p;",
        *(f"{move} {register}, {one};" for register, one in zip("ab", operands, strict=True)),
        f"{name}.f32 c, a, b;",
        "setp.nan.f32 p, a, b;",
        "selp.f32 c, 0f7FFFFFFF, c, p;",
        f"mov.f32 {result}, c;" if width == "32" else f"cvt.rn.f16.f32 {result}, c;",
    )


def _half_pair(match: re.Match[str]) -> str:
    upper = f"cvt.rn.f16.f32 upper, {match[2]};"
    return _scope(".reg .b16 lower, upper;", upper, f"cvt.rn.f16.f32 lower, {match[3]};", _joined(match[1]))


def _bfloat_pair(match: re.Match[str]) -> str:
    halves = [*_to_bfloat("upper", match[2]), *_to_bfloat("lower", match[3])]
    return _scope(".reg .b16 lower, upper;", *_ROUNDING, *halves, _joined(match[1]))


def _bfloat(match: re.Match[str]) -> str:
    return _scope(*_ROUNDING, *_to_bfloat(match[1], match[2]))


_ROUNDING = (".reg .b32 bits, odd;", ".reg .pred p;")


def _to_bfloat(result: str, number: str) -> list[str]:
    """Round to the nearest bfloat16, ties to even; what is no number is 0x7fff, as the instruction makes it."""
    return [
        f"mov.b32 bits, {number};",
        "bfe.u32 odd, bits, 16, 1;",
        "add.u32 bits, bits, odd;",
        "add.u32 bits, bits, 0x7fff;",
        "shr.u32 bits, bits, 16;",
        f"setp.nan.f32 p, {number}, {number};",
        "selp.b32 bits, 0x7fff, bits, p;",
        f"cvt.u16.u32 {result}, bits;",
    ]


def _joined(result: str) -> str:
    return f"mov.b32 {result}, {{lower, upper}};"


def _nothing(match: re.Match[str]) -> str:
    """Copies are done when they were started."""
    return ""


def _scope(*lines: str) -> str:
    """Instructions whose registers and labels nobody else sees."""
    return "{ " + "\n\t".join(lines) + " }"


def _lists(groups: tuple[str, ...]) -> list[list[str]]:
    return [[one.strip() for one in group.split(",")] for group in groups]


_INSTEAD: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (_HALVES, _halves),
    (_BYTES, _bytes),
    (_COPY, _copy),
    (_GROUPS, _nothing),
    (_EXTREME, _extreme),
    (_HALF_PAIR, _half_pair),
    (_BFLOAT_PAIR, _bfloat_pair),
    (_BFLOAT, _bfloat),
)


__all__ = ["for_turing"]
