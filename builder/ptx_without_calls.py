"""PTX whose functions the assembler has to call, written out: for kernels of warpgroups, which must not call any.

Where a kernel calls a function, ptxas lets each product of a warpgroup end before the next one begins ("serialized due
to the presence of Extern calls"), and nothing goes on beside it. Correctly rounded quotients, reciprocals and roots of
float32 numbers, and quotients of 64-bit integers, have such functions for their rare cases.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_PRODUCTS = "wgmma.mma_async"
_NUMBER = r"(%?\w+)"
_QUOTIENT = re.compile(rf"\bdiv\.rn\.f32\s+{_NUMBER}, {_NUMBER}, {_NUMBER};")
_RECIPROCAL = re.compile(rf"\brcp\.rn\.f32\s+{_NUMBER}, {_NUMBER};")
_ROOT = re.compile(rf"\bsqrt\.rn\.f32\s+{_NUMBER}, {_NUMBER};")
_INTEGERS = re.compile(rf"\b(div|rem)\.([su])64\s+{_NUMBER}, {_NUMBER}, {_NUMBER};")


def without_calls(text: str) -> str:
    """The PTX of a kernel in which nothing is called, if it multiplies by warpgroups; else as it is.

    Quotients and roots of float32 numbers are at most one unit in the last place off.
    """
    if _PRODUCTS in text:
        for pattern, written in _INSTEAD:
            text = pattern.sub(written, text)
    return text


def _quotient(result: str, above: str, below: str) -> str:
    """An estimate, which what it leaves corrects; what it leaves is no number where the estimate is right anyway."""
    return _scope(
        ".reg .f32 whole, minus, left, inverse, better;",
        ".reg .pred is_number;",
        f"div.full.f32 whole, {above}, {below};",
        f"rcp.approx.f32 inverse, {below};",
        "neg.f32 minus, whole;",
        f"fma.rn.f32 left, minus, {below}, {above};",
        "fma.rn.f32 better, left, inverse, whole;",
        "testp.finite.f32 is_number, better;",
        f"selp.f32 {result}, better, whole, is_number;",
    )


def _root(match: re.Match[str]) -> str:
    result, value = match.groups()
    return _scope(
        ".reg .f32 whole, minus, left, inverse, better;",
        ".reg .pred is_number;",
        f"sqrt.approx.f32 whole, {value};",
        "rcp.approx.f32 inverse, whole;",
        "mul.f32 inverse, inverse, 0f3F000000;",
        "neg.f32 minus, whole;",
        f"fma.rn.f32 left, minus, whole, {value};",
        "fma.rn.f32 better, left, inverse, whole;",
        "testp.finite.f32 is_number, better;",
        f"selp.f32 {result}, better, whole, is_number;",
    )


def _integers(match: re.Match[str]) -> str:
    """Two estimates in double precision, of the whole and of what the first one leaves; then it is one off at most."""
    kind, signed, result, above, below = match.groups()
    absolute = "abs.s64" if signed == "s" else "mov.b64"
    lines = [
        ".reg .b64 a, b, q, r, p, sign;",
        ".reg .f64 x, y, i, e;",
        ".reg .pred is_off;",
        f"{absolute} a, {above};",
        f"{absolute} b, {below};",
        "cvt.rn.f64.u64 x, a;",
        "cvt.rn.f64.u64 y, b;",
        "rcp.approx.ftz.f64 i, y;",
        "neg.f64 y, y;",
        *("fma.rn.f64 e, y, i, 0d3FF0000000000000;", "fma.rn.f64 i, e, i, i;") * 2,
        "mul.rn.f64 x, x, i;",
        "cvt.rzi.u64.f64 q, x;",
        "mul.lo.s64 p, q, b;",
        "sub.s64 r, a, p;",
        "cvt.rn.f64.s64 x, r;",
        "mul.rn.f64 x, x, i;",
        "cvt.rmi.s64.f64 p, x;",
        "add.s64 q, q, p;",
        "mul.lo.s64 p, p, b;",
        "sub.s64 r, r, p;",
        "setp.lt.s64 is_off, r, 0;",
        "@is_off add.s64 r, r, b;",
        "@is_off sub.s64 q, q, 1;",
        "setp.ge.u64 is_off, r, b;",
        "@is_off sub.s64 r, r, b;",
        "@is_off add.s64 q, q, 1;",
    ]
    if signed == "s":
        # A remainder has the sign of the dividend.
        lines += [f"xor.b64 sign, {above}, {below};"] if kind == "div" else [f"mov.b64 sign, {above};"]
        of = "q" if kind == "div" else "r"
        lines += ["setp.lt.s64 is_off, sign, 0;", f"@is_off neg.s64 {of}, {of};"]
    return _scope(*lines, f"mov.b64 {result}, {'q' if kind == 'div' else 'r'};")


def _scope(*lines: str) -> str:
    return "{ " + " ".join(lines) + " }"


_INSTEAD: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (_QUOTIENT, lambda match: _quotient(*match.groups())),
    (_RECIPROCAL, lambda match: _quotient(match[1], "0f3F800000", match[2])),
    (_ROOT, _root),
    (_INTEGERS, _integers),
)
