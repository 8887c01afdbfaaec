"""Cubins that are read together have the same instructions, and the same faults, as each of them alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from mlirt.builder.assemblers.nvjitlink import link
from mlirt.builder.machine_code import disassembler
from mlirt.builder.machine_code.check import faults_of, faults_of_all
from mlirt.builder.machine_code.disassembler import disassemble
from mlirt.builder.machine_code.listing import parse_listing
from mlirt.errors import CompileError

_HEAD = ".version 8.0\n.target {target}\n.address_size 64\n"
_ENTRY = ".visible .entry k(.param .u64 p) {\n.reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %q<2>;\n"
_LOAD = "ld.param.u64 %rd0, [p]; cvta.to.global.u64 %rd1, %rd0; mov.u32 %r0, %tid.x;\n"
_STORE = "st.global.f32 [%rd1], %f0; ret; }\n"
_CASES = "".join(
    f"{name}: ld.global.f32 %f0, [%rd1+{4 * place + 4}]; bar.sync {place}; bra.uni E;\n"
    for place, name in enumerate("ABCD")
)
BODIES = {
    "call": f"ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+4]; div.rn.f32 %f0, %f1, %f2;\n{_STORE}",
    "table": f"mov.f32 %f0, 0f00000000; T: .branchtargets A, B, C, D; brx.idx %r0, T;\n{_CASES}E: {_STORE}",
    "loop": "A: add.u32 %r0, %r0, 7; setp.lt.u32 %q1, %r0, 100; bar.sync 0; @%q1 bra A; cvt.rn.f32.u32 %f0, %r0;\n"
    + _STORE,
    "copy": ".shared .align 16 .b8 s[2048]; mov.u32 %r1, s; shl.b32 %r2, %r0, 4; add.u32 %r1, %r1, %r2;\n"
    "cp.async.ca.shared.global [%r1], [%rd1], 16; cp.async.commit_group; ld.shared.f32 %f0, [%r1]; "
    f"cp.async.wait_group 0;\n{_STORE}",
}


def cubins(target: str) -> list[bytes]:
    """A cubin with each of the bodies; the kernels have the same name."""
    return [link(_HEAD.format(target=target) + _ENTRY + _LOAD + body, target, "k").code for body in BODIES.values()]


def instructions(text: str) -> list[tuple[str, str]]:
    """All instructions with their functions; the names of labels are replaced by where they stand."""
    listing = parse_listing(text)

    def place(label: re.Match[str]) -> str:
        return str(listing.labels.get(label[0], label[0]))

    return [(one.function, " ".join(re.sub(r"\.L_\w+", place, str(one)).split())) for one in listing.instructions]


def test_instructions_are_the_same() -> None:
    every = [*cubins("sm_80"), *cubins("sm_90a")]
    alone = [instructions(disassemble([cubin])[0]) for cubin in every]
    assert [instructions(text) for text in disassemble(every)] == alone
    found = {text.split()[0].partition(".")[0] for listing in alone for _, text in listing}
    assert {"CALL", "RET", "BRX", "LDGSTS", "BRA"} <= found


def test_faults_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CACHE", "off")
    every = cubins("sm_90a")
    together = faults_of_all([*every, every[0]])
    assert [bool(faults) for faults in together] == [False, False, False, True, False]
    assert together[:4] == [faults_of(cubin) for cubin in every]
    assert "no copy that was started has been waited for" in together[3][0]
    assert together[3][0].startswith("k: ")


def test_those_that_cannot_be_merged_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    every = cubins("sm_80")[:2]
    alone = [disassemble([cubin])[0] for cubin in every]

    def refused(*_: object) -> bytes:
        raise CompileError("no")

    monkeypatch.setattr(disassembler, "merged", refused)
    assert disassemble(every) == alone

    def first(cubins: Sequence[bytes], _: object) -> bytes:
        return cubins[0]

    monkeypatch.setattr(disassembler, "merged", first)
    assert disassemble(every) == alone


def test_a_cubin_that_is_none() -> None:
    with pytest.raises(CompileError, match="nvdisasm refuses a cubin"):
        disassemble([cubins("sm_80")[0][:64] + bytes(4000)])
