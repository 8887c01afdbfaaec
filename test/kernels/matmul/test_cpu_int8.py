"""Int8 products on register tiles, compiled: bit by bit what the op means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from cpu_kernel_runs import widths
from fused_network import Network, access, context, network_of, t
from quantized_convolution import requantization
from xdsl.ir import Operation, SSAValue

from mlirt.builder.host import cpu_target
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.amx import AmxDotAddOp
from mlirt.dialects.kernel.tile_products import TileDotAddOp
from mlirt.dialects.target import AMX
from mlirt.dialects.tensor_types import element_type
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.pipeline import check_ir, run_passes


@dataclass(frozen=True)
class Case:
    """`batch` x rows x depth uint8 times a constant of signed ones; results are sums or quantised again."""

    rows: int
    columns: int
    depth: int
    batch: int = 1
    transpose: bool = False
    is_symbolic: bool = False
    quantises: bool = True


CASES = {
    "square": Case(64, 64, 64),
    "one row": Case(1, 200, 512),
    "one row, left over": Case(1, 37, 70, quantises=False),
    "few rows": Case(3, 130, 33, transpose=True),
    "accumulators": Case(14, 64, 67, batch=2, quantises=False),
    "two left over": Case(29, 100, 18),
    "symbolic": Case(21, 96, 48, batch=3, is_symbolic=True),
    "symbolic, left over": Case(5, 48, 13, is_symbolic=True, transpose=True),
}


_NARROW = ("accumulators", "few rows", "symbolic, left over")
# Products of 64 bytes at a time, with rows and columns left over.
ON_MATRIX_UNIT = {
    "square": Case(64, 64, 64),
    "rows left over": Case(45, 96, 128, batch=2),
    "columns left over": Case(14, 37, 64, quantises=False),
    "transposed": Case(29, 100, 192, transpose=True),
    "symbolic": Case(21, 96, 64, batch=3, is_symbolic=True),
    "symbolic, one row": Case(1, 48, 128, is_symbolic=True, quantises=False),
}


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("name", CASES)
def test_a_product_gives_what_it_means(name: str, bits: int) -> None:
    if bits != max(widths()) and name not in _NARROW:
        pytest.skip("tried at the widest vectors")
    _check(CASES[name], bits, TileDotAddOp)


@pytest.mark.parametrize("name", ON_MATRIX_UNIT)
def test_the_matrix_unit_gives_the_same(name: str) -> None:
    _check(ON_MATRIX_UNIT[name], 512, AmxDotAddOp, "amx-int8,amx-tile")


@pytest.mark.parametrize("case", [Case(4, 64, 64), Case(64, 64, 60)])
def test_few_rows_and_odd_depths_stay_with_vectors(case: Case) -> None:
    _check(case, 512, TileDotAddOp, "amx-int8,amx-tile")


def _check(case: Case, bits: int, step: type[Operation], features: str = "") -> None:
    ctx = context()
    rng = np.random.default_rng(case.columns + case.depth)
    shape = (case.columns, case.depth) if case.transpose else (case.depth, case.columns)
    weights = rng.integers(-128, 128, (1, *shape)).astype(np.int8)
    bias = rng.integers(-5000, 5000, case.columns).astype(np.int32)
    scale = (rng.uniform(0.5, 1.5, case.columns) / (70 * case.depth**0.5)).astype(np.float32)

    def build(network: Network) -> list[SSAValue]:
        rhs, *extras = (network.add(ConstantOp.from_array(one, ctx.weights, "w")) for one in (weights, bias, scale))
        output = "uint8" if case.quantises else "int32"
        elements = [element_type("int32"), element_type("float32")]
        epilogue = requantization(elements, output) if case.quantises else identity_region(element_type("int32"))
        picked = extras if case.quantises else []
        batch, rows = ("n", "m") if case.is_symbolic else (case.batch, case.rows)
        result = t(output, batch, rows, case.columns)
        accesses = [access("d2")] * len(picked)
        op = MatmulOp(network.inputs[0], rhs, result, epilogue, picked, accesses, transpose_rhs=case.transpose)
        return [network.add(op)]

    batch, rows = ("n", "m") if case.is_symbolic else (case.batch, case.rows)
    module = network_of([t("uint8", batch, rows, case.depth)], build)
    inputs = {"input0": rng.integers(0, 256, (case.batch, case.rows, case.depth)).astype(np.uint8)}
    (want,) = interpret(module, ctx, inputs).values()
    run_passes(module, ctx, f"convert-fused-to-kernel{{vector_bits={bits}{features and f' features={features}'}}}")
    check_ir(module)
    found = [op for op in module.walk() if isinstance(op, TileDotAddOp | AmxDotAddOp)]
    assert any(isinstance(op, step) for op in found)
    assert step is AmxDotAddOp or not any(isinstance(op, AmxDotAddOp) for op in found)
    if max(widths()) < bits or (step is AmxDotAddOp and not cpu_target().special >= AMX):
        pytest.skip("this processor cannot run the kernel")
    plan = CompiledPlan(module, ctx, bits, has_special=True)
    for workers in (1, 2, 7):
        (got,) = plan.run(inputs, workers).values()
        assert len(np.unique(got)) > 20
        np.testing.assert_array_equal(got, want)
