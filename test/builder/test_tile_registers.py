"""Code for AVX-512, made on any machine: loops over a sum keep the numbers of their register tile in registers."""

from __future__ import annotations

import re

import pytest
from onnx import helper
from onnx_models import model_of

from mlirt.builder.device_choice import asking
from mlirt.builder.host import cpu_target
from mlirt.builder.machine_texts import machine_text
from mlirt.dialects.context import RtContext
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases


def assembly(rows: int, depth: int, columns: int) -> str:
    """The machine code of a product of two factors that are computed."""
    node, context = helper.make_node("MatMul", ["x", "w"], ["y"]), RtContext()
    factors = {"x": ("float32", (12, rows, depth)), "w": ("float32", (12, depth, columns))}
    with asking(None, "x86-64-v4"):
        module = import_model(model_of([node], factors, ["y"]), context)
        run_phases(module, context, options=PipelineOptions("cpu", "fp32", TargetMachine.of(cpu_target())))
        return machine_text(module, "asm")


def sum_loops(text: str) -> list[list[str]]:
    """The innermost loops that multiply and add, each as its lines."""
    lines = text.split("\n")
    labels = {line[:-1]: number for number, line in enumerate(lines) if re.fullmatch(r"\.L\w+:", line)}
    jumps = [(labels.get(found[1], len(lines)), number) for number, line in enumerate(lines) if (found := _jump(line))]
    loops = [(start, end) for start, end in jumps if start < end]
    inner = [
        one for one in loops if not any(one != other and one[0] <= other[0] < other[1] <= one[1] for other in loops)
    ]
    bodies = [lines[start:end] for start, end in inner]
    return [body for body in bodies if sum("vfmadd" in line for line in body) > 8]


def _jump(line: str) -> re.Match[str] | None:
    return re.match(r"\tj\w+\t(\.L\w+)$", line)


@pytest.mark.parametrize(("rows", "depth", "columns"), [(197, 64, 197), (204, 64, 197), (53, 32, 70)])
def test_tiles_of_a_sum_stay_in_registers(rows: int, depth: int, columns: int) -> None:
    loops = sum_loops(assembly(rows, depth, columns))
    assert loops
    for body in loops:
        stored = [line for line in body if re.search(r"%zmm\d+, -?\d*\(%rsp\)", line)]
        assert not stored, f"{len(stored)} registers go through memory in a loop of {len(body)} lines"
