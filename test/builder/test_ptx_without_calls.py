"""Functions that the assembler would call, written out: the numbers that they give, and products that do not wait."""

# Operations are functions of any arrays.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from contractions import constant
from lowered_network import parse_module

from mlirt.builder.assemblers.nvjitlink import link
from mlirt.builder.machine_code.check import faults_of
from mlirt.builder.numba_cuda_compiler import ptx_text
from mlirt.builder.ptx_without_calls import without_calls
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.passes.pipeline import run_passes

Lanes = np.ndarray[Any, Any]
WIDE = np.longdouble
_BEGIN = "wgmma.mma_async "


def _rounded(type_: str, value: Any) -> Lanes:
    return value.astype({"f32": np.float32, "f64": np.float64}[type_])


def _nearly(value: Any, bits: int) -> Lanes:
    """A number of so many bits, as units for estimates give."""
    fraction, exponent = np.frexp(value)
    return np.ldexp(np.round(fraction * 2.0**bits) / 2.0**bits, exponent)


OPERATIONS: Mapping[str, Callable[..., Lanes]] = {
    "div.full.f32": lambda a, b: _rounded("f32", np.float64(a) / np.float64(b) * (1 + 2.0**-23)),
    "rcp.approx.f32": lambda a: _rounded("f32", _nearly(1 / np.float64(a), 23)),
    "sqrt.approx.f32": lambda a: _rounded("f32", np.sqrt(np.float64(a)) * (1 - 2.0**-24)),
    "mul.f32": lambda a, b: a * b,
    "neg.f32": lambda a: -a,
    "neg.f64": lambda a: -a,
    "fma.rn.f32": lambda a, b, c: _rounded("f32", np.float64(a) * np.float64(b) + np.float64(c)),
    "fma.rn.f64": lambda a, b, c: _rounded("f64", WIDE(a) * WIDE(b) + WIDE(c)),
    "testp.finite.f32": np.isfinite,
    "selp.f32": lambda a, b, p: np.where(p, a, b),
    "abs.s64": lambda a: np.where(a.view(np.int64) < 0, np.uint64(0) - a, a),
    "mov.b64": lambda a: a,
    "xor.b64": lambda a, b: a ^ b,
    "cvt.rn.f64.u64": lambda a: a.astype(np.float64),
    "cvt.rn.f64.s64": lambda a: a.view(np.int64).astype(np.float64),
    "rcp.approx.ftz.f64": lambda a: _nearly(1 / a, 20),
    "mul.rn.f64": lambda a, b: a * b,
    "cvt.rzi.u64.f64": lambda a: np.clip(np.trunc(a), 0, 2.0**64 - 2048).astype(np.uint64),
    "cvt.rmi.s64.f64": lambda a: np.floor(a).astype(np.int64).view(np.uint64),
    "mul.lo.s64": lambda a, b: a * b,
    "sub.s64": lambda a, b: a - b,
    "add.s64": lambda a, b: a + b,
    "neg.s64": lambda a: np.uint64(0) - a,
    "setp.lt.s64": lambda a, b: a.view(np.int64) < b.view(np.int64),
    "setp.ge.u64": lambda a, b: a >= b,
}


def _literal(text: str, count: int) -> Lanes:
    if text.startswith("0f"):
        return np.full(count, int(text[2:], 16), np.uint32).view(np.float32)
    if text.startswith("0d"):
        return np.full(count, int(text[2:], 16), np.uint64).view(np.float64)
    return np.full(count, int(text), np.uint64)


def computed(instruction: str, **registers: Lanes) -> Lanes:
    """What the text that stands for an instruction leaves in `%d`, lane by lane."""
    written = without_calls(_BEGIN + instruction).removeprefix(_BEGIN)
    assert written.startswith("{ ")
    assert written.endswith(" }")
    values = {f"%{name}": array for name, array in registers.items()}
    count = len(next(iter(registers.values())))
    with np.errstate(all="ignore"):
        for line in written[2:-2].split(";"):
            text = line.strip()
            if not text or text.startswith(".reg"):
                continue
            condition = re.match(r"@(\w+) ", text)
            name, _, rest = text[condition.end() if condition else 0 :].partition(" ")
            target, *operands = [one.strip() for one in rest.split(",")]
            made = OPERATIONS[name](*[values[one] if one in values else _literal(one, count) for one in operands])
            values[target] = np.where(values[condition[1]], made, values[target]) if condition else made
    return values["%d"]


def numbers(count: int = 200_000) -> tuple[Lanes, Lanes]:
    random = np.random.default_rng(1)
    above = random.standard_normal(count).astype(np.float32) * np.float32(2) ** random.integers(-40, 40, count)
    below = random.standard_normal(count).astype(np.float32) * np.float32(2) ** random.integers(-40, 40, count)
    return above.astype(np.float32), below.astype(np.float32)


def test_numbers_are_at_most_one_unit_off() -> None:
    above, below = numbers()
    value = np.abs(above)
    cases = [
        (computed("div.rn.f32 %d, %a, %b;", a=above, b=below), above / below),
        (computed("rcp.rn.f32 %d, %b;", b=below), np.float32(1) / below),
        (computed("sqrt.rn.f32 %d, %a;", a=value), np.sqrt(value)),
    ]
    for found, expected in cases:
        assert np.abs(found.view(np.int32) - expected.view(np.int32)).max() <= 1
        assert (found == expected).mean() > 0.999


def test_special_numbers() -> None:
    every = np.array([0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, 3e38, 1e-30], np.float32)
    above, below = (one.ravel() for one in np.meshgrid(every, every))
    with np.errstate(all="ignore"):
        expected, roots = above / below, np.sqrt(every)
    found = computed("div.rn.f32 %d, %a, %b;", a=above, b=below)
    np.testing.assert_allclose(found, expected, rtol=2e-7)
    np.testing.assert_allclose(computed("sqrt.rn.f32 %d, %a;", a=every), roots, rtol=2e-7)


@pytest.mark.parametrize("bits", [8, 31, 33, 52, 62])
def test_integers(bits: int) -> None:
    random = np.random.default_rng(bits)
    above, below = random.integers(0, 1 << bits, 50_000), random.integers(1, 1 << max(4, bits - 20), 50_000)
    above[:64] = below[:64] * 7  # whole quotients, and those one below
    above[64:128] = below[64:128] * 7 - 1
    a, b = above.astype(np.uint64), below.astype(np.uint64)
    assert np.array_equal(computed("div.u64 %d, %a, %b;", a=a, b=b), a // b)
    assert np.array_equal(computed("rem.u64 %d, %a, %b;", a=a, b=b), a % b)
    signs = random.choice([-1, 1], (2, len(above)))
    left, right = above * signs[0], below * signs[1]
    quotient = (np.abs(left) // np.abs(right)) * signs[0] * signs[1]
    views = {"a": left.view(np.uint64), "b": right.view(np.uint64)}
    assert np.array_equal(computed("div.s64 %d, %a, %b;", **views).view(np.int64), quotient)
    assert np.array_equal(computed("rem.s64 %d, %a, %b;", **views).view(np.int64), left - quotient * right)


def test_other_kernels_keep_their_functions() -> None:
    text = "div.rn.f32 %f1, %f2, %f3;"
    assert without_calls(text) == text


_KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) {{
// wgmma.mma_async
.reg .b64 %rd<5>; .reg .f32 %f<4>;
ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1;
ld.global.u64 %rd3, [%rd1]; ld.global.u64 %rd4, [%rd1+8]; ld.global.f32 %f2, [%rd1+16]; ld.global.f32 %f3, [%rd1+20];
{body}
st.global.u64 [%rd1], %rd2; st.global.f32 [%rd1+16], %f1;
ret;
}}
"""


@pytest.mark.parametrize(
    "instruction",
    [
        *("div.rn.f32 %f1, %f2, %f3;", "div.rn.f32 %f1, 0f3F800000, %f3;", "rcp.rn.f32 %f1, %f2;"),
        *("sqrt.rn.f32 %f1, %f2;", "div.u64 %rd2, %rd3, %rd4;", "rem.u64 %rd2, %rd3, 12;"),
        *("div.s64 %rd2, %rd3, %rd4;", "rem.s64 %rd2, %rd3, %rd4;"),
    ],
)
def test_the_assembler_takes_it(instruction: str) -> None:
    text = without_calls(_KERNEL.format(body=instruction))
    assert instruction not in text
    assert link(text, "sm_90a", "k").code


def test_a_product_with_quotients_does_not_wait_for_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = constant(np.ones((768, 384), np.float16), "f16")
    module, context = parse_module(f"""
    func.func @main(%x: tensor<1568x768xf16>) -> tensor<1568x384xf32> {{
      %w = {weights} : tensor<768x384xf16>
      %y = fused.matmul %x, %w {{fused.tactic = "cuda_wgmma:64x96s9"}} :
        (tensor<1568x768xf16>, tensor<768x384xf16>) -> tensor<1568x384xf32> {{
      ^bb0(%acc: f32):
        %one = arith.constant 1.0 : f32
        %e = math.exp %acc : f32
        %s = arith.addf %e, %one : f32
        %r = math.sqrt %s : f32
        %q = arith.divf %acc, %r : f32
        fused.yield %q : f32
      }}
      func.return %y : tensor<1568x384xf32>
    }}""")
    run_passes(module, context, "convert-fused-to-kernel{target=cuda},map-parallel-to-threads")
    ((_, source),) = sources_of(module).items()
    assert faults_of(link(ptx_text(source, "sm_90a"), "sm_90a", "right").code) == []
    monkeypatch.setattr("mlirt.builder.numba_cuda_compiler.without_calls", lambda text: text)
    (fault,) = faults_of(link(ptx_text(source, "sm_90a"), "sm_90a", "waits").code)
    assert "each product ends before the next one starts" in fault
