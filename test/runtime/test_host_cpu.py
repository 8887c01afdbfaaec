"""Code for another processor or system is refused; that for the matrix unit asks the system first."""

from __future__ import annotations

import sys

import pytest

from mlirt.errors import PlanError
from mlirt.runtime import host_cpu
from mlirt.runtime.host_cpu import allow_matrix_unit, host_features, refuse_foreign_code


def test_a_system_without_it_refuses_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    allow_matrix_unit(["avx512f", "avx512vnni"])
    with pytest.raises(PlanError, match="matrix unit"):
        allow_matrix_unit(["avx512f", "amx-int8"])


@pytest.mark.skipif("amx-int8" not in host_features(), reason="this processor has no matrix unit")
def test_a_system_with_it_allows_it_again_and_again() -> None:
    allow_matrix_unit(["amx-int8"])
    allow_matrix_unit(["+amx-int8"])


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "amd64-pc-linux-musl", "x86_64", ""])
def test_code_for_this_kind_of_machine_is_taken(triple: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "host_triple", lambda: "x86_64-unknown-linux-gnu")
    refuse_foreign_code(triple, [])


@pytest.mark.parametrize(
    ("triple", "reason"),
    [
        ("x86_64-apple-darwin23.1.0", "operating system darwin, this is linux"),
        ("x86_64-apple-macosx14.0.0", "operating system darwin, this is linux"),
        ("x86_64-pc-windows-msvc", "operating system windows, this is linux"),
        ("aarch64-unknown-linux-gnu", "aarch64 processors, this is x86_64"),
    ],
)
def test_code_for_another_one_is_refused(triple: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_cpu, "host_triple", lambda: "x86_64-unknown-linux-gnu")
    with pytest.raises(PlanError, match=reason):
        refuse_foreign_code(triple, [])


@pytest.mark.parametrize(
    ("having", "reason"),
    [
        (
            {"neon", "sve", "sve128"},
            r"lacks: sve256 \(registers of SVE with 256 bits; this machine has 128 bits\); reb",
        ),
        ({"neon", "sve", "sve512"}, r"sve256 \(registers of SVE with 256 bits; this machine has 512 bits\)"),
        ({"neon"}, r"sve, sve256 \(registers of SVE with 256 bits; this machine has no SVE\)"),
        ({"neon", "sve", "sve256"}, ""),
    ],
)
def test_registers_of_another_width_are_refused(having: set[str], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for SVE of 256 bits computes something else where registers are wider, not just more."""
    monkeypatch.setattr(host_cpu, "host_triple", lambda: "aarch64-unknown-linux-gnu")
    monkeypatch.setattr(host_cpu, "host_features", lambda: frozenset(having))
    if not reason:
        refuse_foreign_code("aarch64-unknown-linux-gnu", ["neon", "sve", "sve256"])
        return
    with pytest.raises(PlanError, match=reason):
        refuse_foreign_code("aarch64-unknown-linux-gnu", ["neon", "sve", "sve256"])
