"""The machine code of a plan as text, for both targets; what is not installed is said instead."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import pytest
from onnx import helper
from onnx_models import model_of

import mlirt
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import Plan
from mlirt.tools.report.machine_code import machine_code
from mlirt.tools.rt_report import main


def plan_for(target: str, cpu: str | None = None, system: str | None = None) -> Plan:
    node = helper.make_node("Exp", ["x"], ["y"])
    engine = mlirt.compile(model_of([node], {"x": ("float32", [3, 100])}, ["y"], {}), target, cpu=cpu, system=system)
    assert isinstance(engine, Engine)
    return engine.plan


LINES = {"cpu": r"[0-9a-f]{4,}  [a-z]\w*( +\S.*)?", "cuda": r"[0-9a-f]{4,}  .+|\.L_\w+:"}
RETURNS = {"cpu": r"  ret", "cuda": "EXIT"}


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_each_kernel_is_listed(target: str) -> None:
    plan = plan_for(target)
    found = machine_code(plan, 100_000)
    assert not found.missing
    assert set(found.texts) == {kernel.name for kernel in plan.manifest.kernels}
    for text in found.texts.values():
        lines = text.splitlines()
        assert len(lines) > 10
        assert all(re.fullmatch(LINES[target], one) for one in lines), lines
        assert re.search(RETURNS[target], text)


def test_macos_calls_its_processors_by_another_name() -> None:
    plan = plan_for("cpu", "apple-m1", "darwin")
    assert plan.manifest.target.triple.startswith("arm64-apple-")
    (text,) = machine_code(plan, 100_000).texts.values()
    assert re.search("  fmla ", text)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_part_says_how_much_is_left(target: str) -> None:
    plan = plan_for(target)
    whole = machine_code(plan, 100_000).texts
    for name, text in machine_code(plan, 7).texts.items():
        lines = text.splitlines()
        assert lines[:7] == whole[name].splitlines()[:7]
        assert lines[7:] == [f".. and {len(whole[name].splitlines()) - 7:,} more"]


def test_without_a_disassembler_the_page_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan_file = tmp_path / "exp.plan"
    node = helper.make_node("Exp", ["x"], ["y"])
    mlirt.compile(model_of([node], {"x": ("float32", [3, 100])}, ["y"], {}), "cpu").save(plan_file)
    found = builtins.__import__

    def without_capstone(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "capstone":
            raise ImportError(name)
        return found(name, *args, **kwargs)

    page = tmp_path / "page.html"
    assert main([str(plan_file), "-o", str(page)]) == 0
    assert "<h4>machine code</h4>" in page.read_text(encoding="utf-8")
    monkeypatch.setattr(builtins, "__import__", without_capstone)
    assert main([str(plan_file), "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "pip install capstone" in text
    assert "<h4>machine code</h4>" not in text
