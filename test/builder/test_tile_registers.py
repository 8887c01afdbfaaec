"""Code for AVX-512, made on any machine: loops over a sum keep their register tile, and addresses, in registers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from onnx import ModelProto, helper
from onnx_models import model_of, numbers

from mlirt.builder.device_choice import asking
from mlirt.builder.host import cpu_target
from mlirt.builder.machine_texts import machine_text
from mlirt.dialects.context import RtContext
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases


def product(rows: int, depth: int, columns: int) -> ModelProto:
    """Of two factors that are computed."""
    factors = {"x": ("float32", (12, rows, depth)), "w": ("float32", (12, depth, columns))}
    return model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], factors, ["y"])


def convolution(channels: int, groups: int, dilation: int) -> ModelProto:
    weights = {"w": numbers(channels, channels // groups, 3, 3)}
    places: dict[str, Any] = {"dilations": [dilation] * 2, "pads": [dilation] * 4}
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=groups, **places)
    return model_of([node], {"x": ("float32", (1, channels, 28, 28))}, ["y"], weights)


def assembly(network: ModelProto) -> str:
    """The machine code of the kernels of a network."""
    context = RtContext()
    with asking(None, "x86-64-v4"):
        module = import_model(network, context)
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
def test_tiles_of_a_product_stay_in_registers(rows: int, depth: int, columns: int) -> None:
    _assert_nothing_passes_memory(product(rows, depth, columns))


@pytest.mark.parametrize(("channels", "groups", "dilation"), [(192, 8, 1), (192, 4, 1), (64, 1, 2), (96, 12, 2)])
def test_addresses_of_a_convolution_stay_in_registers(channels: int, groups: int, dilation: int) -> None:
    _assert_nothing_passes_memory(convolution(channels, groups, dilation))


def _assert_nothing_passes_memory(network: ModelProto) -> None:
    loops = sum_loops(assembly(network))
    assert loops
    for body in loops:
        products = sum("vfmadd" in line for line in body)
        stored = [line for line in body if re.search(r"%zmm\d+, -?\d*\(%rsp\)", line)]
        loaded = [line for line in body if re.search(r"\tmovq\t-?\d*\(%rsp\), %r", line)]
        assert not stored, f"{len(stored)} vectors go through memory in a loop of {products} products"
        assert len(loaded) <= products // 4, f"{len(loaded)} addresses are loaded in a loop of {products} products"
