"""What sm_75 lacks of PTX for sm_80, in instructions that it has: the same results, lane by lane."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from mlirt.builder.assemblers.nvjitlink import link
from mlirt.builder.older_ptx import for_turing
from mlirt.errors import CompileError

Registers = dict[str, Any]
_MMA = re.compile(r"mma\.sync\.aligned\.m(\d+)n8k(\d+)\.\S+ " + ", ".join([r"\{([^}]*)\}"] * 4) + ";")
HALVES = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
    "{%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};"
)
BYTES = (
    "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
    "{%r7,%r8,%r9,%r10}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%r7,%r8,%r9,%r10};"
)
KERNEL = """.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {{
.reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .b16 %h<9>; .reg .pred %p<3>;
.shared .align 16 .b8 tile[64];
ld.param.u64 %rd1, [p];
cvta.to.global.u64 %rd1, %rd1;
mov.u32 %r1, tile; ld.global.u32 %r2, [%rd1]; ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+4];
cvt.rn.f16.f32 %h1, %f1; cvt.rn.f16.f32 %h2, %f2;
{body}
st.global.u32 [%rd1], %r3; st.global.f32 [%rd1], %f3; st.global.u16 [%rd1], %h3; ld.shared.u32 %r4, [tile];
st.global.u32 [%rd1+8], %r4;
ret;
}}
"""


def product(match: re.Match[str], registers: Registers, width: int) -> None:
    """One product by a warp on registers `name -> [lane, ..]`, elements laid out as the PTX manual says."""
    rows, depth = int(match[1]), int(match[2])
    results, left, right, accumulators = ([one.strip() for one in group.split(",")] for group in match.groups()[2:])
    group, thread = np.arange(32) // 4, np.arange(32) % 4
    a, b = np.zeros((rows, depth)), np.zeros((depth, 8))
    for number, name in enumerate(left):  # rows of eight first, then further along the depth
        row = group + 8 * (number % (rows // 8))
        for e in range(width):
            a[row, thread * width + e + 4 * width * (number // (rows // 8))] = registers[name][:, e]
    for number, name in enumerate(right):
        for e in range(width):
            b[thread * width + e + 4 * width * number, group] = registers[name][:, e]
    made = a @ b
    new = {
        name: registers[accumulators[number]] + made[group + 8 * (number // 2), 2 * thread + number % 2]
        for number, name in enumerate(results)
    }
    registers.update(new)


def run(text: str, registers: Registers, width: int) -> Registers:
    """All products of a text, and its moves between registers."""
    found = dict(registers)
    for line in text.splitlines():
        if (match := _MMA.search(line)) is not None:
            product(match, found, width)
        for to, source in re.findall(r"mov\.b32 (\S+), (\S+);", line):
            found[to] = found[source]
    return found


@pytest.mark.parametrize(("text", "width", "count"), [(HALVES, 2, 2), (BYTES, 4, 4)])
def test_products_are_of_half_the_depth(text: str, width: int, count: int) -> None:
    rng = np.random.default_rng(0)
    given: Registers = {f"%r{n}": rng.integers(-9, 9, (32, width)).astype(np.float64) for n in range(1, 7)}
    given |= {name: rng.integers(-9, 9, 32).astype(np.float64) for name in (*[f"%f{n}" for n in range(1, 5)], "%r7")}
    given |= {f"%r{n}": rng.integers(-9, 9, 32).astype(np.float64) for n in range(8, 11)}
    older = for_turing(text)
    assert len(_MMA.findall(older)) == count
    assert "m16n8k16" not in older
    assert "k32" not in older
    wanted, found = run(text, given, width), run(older, given, width)
    for name in given:
        np.testing.assert_array_equal(found[name], wanted[name])


BODIES = {
    "copy": "cp.async.cg.shared.global [%r1+0], [%rd1+16], 16;\ncp.async.commit_group;\ncp.async.wait_group 0;",
    "copy of a part": "cp.async.ca.shared.global [%r1+16], [%rd1+0], 8, %r2;\ncp.async.commit_group;",
    "copies side by side": "cp.async.ca.shared.global [%r1], [%rd1], 4, %r2;\n"
    "cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;",
    "maximum": "max.NaN.f32 %f3, %f1, 0f3F800000;",
    "minimum of halves": "min.NaN.f16 %h3, %h1, %h2;",
    "a pair of halves": "cvt.rn.f16x2.f32 %r3, %f1, %f2;",
    "a pair of bfloat16": "cvt.rn.bf16x2.f32 %r3, %f1, %f2;",
    "bfloat16": "cvt.rn.bf16.f32 %h3, %f1;",
}


@pytest.mark.parametrize("name", BODIES)
def test_the_assembler_takes_them(name: str) -> None:
    text = KERNEL.format(body=BODIES[name])
    with pytest.raises(CompileError, match=r"requires \.target sm_80"):
        link(text.replace(".target sm_80", ".target sm_75"), "sm_75", "k")
    assert link(for_turing(text), "sm_75", "k").registers > 0


def test_a_copy_reads_no_more_than_what_is_valid() -> None:
    """Each load of a part has a predicate: a word where it is valid as a whole, else byte by byte."""
    text = for_turing("cp.async.cg.shared.global [%r1+0], [%rd1+0], 16, %r2;")
    loads = [line.strip() for line in text.splitlines() if "ld.global" in line]
    assert loads[-1].startswith("WHOLE: ld.global.v4.b32")
    assert all(line.startswith("@p ld.global") for line in loads[:-1])
    assert len(loads) == 1 + 4 * (1 + 3)
