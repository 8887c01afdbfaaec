"""Images of int8 in blocks of four or eight channels: what the interpreter and compiled kernels make of them."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from cpu_kernel_runs import widths
from fused_network import Network, context, network_of, t
from xdsl.ir import SSAValue

from mlirt.dialects.blocked_layout import blocked
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import run_passes


@pytest.mark.parametrize("element", ["uint8", "int8"])
@pytest.mark.parametrize(
    ("channels", "block"), [(1, 4), (3, 4), (4, 4), (6, 4), (8, 4), (1, 8), (5, 8), (8, 8), (13, 8), (24, 8)]
)
def test_channels_become_words_and_channels_again(channels: int, block: int, element: str) -> None:
    ctx, plain = context(), t(element, "n", channels, 5, 37)

    def build(network: Network) -> list[SSAValue]:
        words = network.add(ReformatOp(network.inputs[0], blocked(plain, block, (1, 2), 9)))
        return [network.add(ReformatOp(words, plain))]

    module = network_of([plain], build)
    limits = np.iinfo(element)
    array = np.random.default_rng(channels).integers(limits.min, limits.max, (2, channels, 5, 37), element)
    inputs = {"input0": array}
    (want,) = interpret(module, ctx, inputs).values()
    bits = max(widths())
    run_passes(
        module, ctx, f"convert-fused-to-kernel{{vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}"
    )
    shifts = [op for op in module.walk() if op.name == "arith.shli"]
    assert len(shifts) == min(channels, block) - 1
    assert sum(op.name == "arith.trunci" for op in module.walk()) == min(channels, block)
    (got,) = CompiledPlan(module, ctx, bits).run(inputs).values()
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize("width", [1, 7, 8, 9, 15, 16, 17, 20, 31])
@pytest.mark.parametrize("is_one_row", [False, True])
@pytest.mark.parametrize("block", [4, 8])
def test_rows_of_any_length(block: int, is_one_row: bool, width: int) -> None:
    """What is left of a row is one more vector at its end, or taken in parts; images without borders are one row."""
    ctx, plain = context(), t("uint8", 2, 11, 3, width)

    def build(network: Network) -> list[SSAValue]:
        kind = blocked(plain, block) if is_one_row else blocked(plain, block, (1, 2), width + 5)
        return [network.add(ReformatOp(network.add(ReformatOp(network.inputs[0], kind)), plain))]

    module = network_of([plain], build)
    array = np.random.default_rng(width).integers(0, 256, (2, 11, 3, width), np.uint8)
    for bits in widths():
        copied = module.clone()
        run_passes(
            copied, ctx, f"convert-fused-to-kernel{{vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}"
        )
        (got,) = CompiledPlan(copied, ctx, bits).run({"input0": array}).values()
        np.testing.assert_array_equal(got, array)
