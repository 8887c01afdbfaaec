"""Elements of any type that are only moved to where they lie across their source, compiled, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from cpu_kernel_runs import MAX_WIDTH, widths
from fused_network import Add, Network, access, context, network_of, random_array, region, t
from xdsl.dialects.arith import MulfOp, TruncFOp
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.tile_loads import TileLoadTransposedOp
from mlirt.dialects.tensor_types import dims, element_of, tensor
from mlirt.passes.pipeline import run_passes

RNG = np.random.default_rng(7)
TYPES = ("bool", "int8", "uint8", "float16", "int32", "float32", "int64", "float64")


def _transposed(module: ModuleOp, *inputs: np.ndarray, bits: int = MAX_WIDTH) -> int:
    """How many squares the kernels of a network have; their results are what the network means."""
    ctx, feeds = context(), {f"input{number}": one for number, one in enumerate(inputs)}
    want = interpret(module, ctx, dict(feeds))
    passes = f"convert-fused-to-kernel{{vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}"
    run_passes(module, ctx, passes)
    for workers in (1, 3):
        got = CompiledPlan(module, ctx, bits).run(feeds, workers)
        for key, array in want.items():
            assert got[key].tobytes() == array.tobytes()
    return sum(isinstance(op, TileLoadTransposedOp) for op in module.walk())


def _in_order(of: TensorType[Attribute], order: tuple[int, ...]) -> TensorType[Attribute]:
    return tensor(element_of(of), dims(of), order=order)


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("element", TYPES)
def test_a_transpose_of_each_type(element: str, bits: int) -> None:
    source, target = t(element, 3, 37, 21), t(element, 3, 21, 37)

    def build(network: Network) -> list[SSAValue]:
        body = identity_region(element_of(source))
        return [network.add(PointwiseOp(network.inputs, [access("d0", "d2", "d1")], [target], body))]

    assert _transposed(network_of([source], build), random_array(RNG, element, (3, 37, 21)), bits=bits)


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("element", ["float16", "bfloat16"])
def test_numbers_are_rounded_on_their_way(element: str, bits: int) -> None:
    source, factors, target = t("float32", 3, 37, 21), t("float32", 37), t(element, 3, 21, 37)

    def build(network: Network) -> list[SSAValue]:
        def product(add: Add, values: list[SSAValue]) -> list[SSAValue]:
            return [add(TruncFOp(add(MulfOp(values[0], values[1])), element_of(target)))]

        body = region(["float32"] * 2, product)
        reads = [access("d0", "d2", "d1"), access("d2")]
        return [network.add(PointwiseOp(network.inputs, reads, [target], body))]

    x = random_array(RNG, "float32", (3, 37, 21))
    x[0, :, :3] = np.nan, np.inf, 1e-8
    assert _transposed(network_of([source, factors], build), x, random_array(RNG, "float32", (37,)), bits=bits)


@pytest.mark.parametrize("element", ["uint8", "int32", "float32", "int64"])
def test_copies_between_orders_of_dimensions(element: str) -> None:
    plain = t(element, 2, 19, 5, 11)
    last = _in_order(plain, (0, 2, 3, 1))

    def build(network: Network) -> list[SSAValue]:
        there = network.add(ReformatOp(network.inputs[0], last))
        return [network.add(ReformatOp(there, plain))]

    assert _transposed(network_of([plain], build), random_array(RNG, element, (2, 19, 5, 11)))


def test_one_square_goes_to_each_part_of_a_concatenation() -> None:
    """A tensor that is joined with itself is read once."""
    plain = t("float32", 2, 19, 55)

    def build(network: Network) -> list[SSAValue]:
        last = network.add(ReformatOp(network.inputs[0], _in_order(plain, (0, 2, 1))))
        return [network.add(ConcatOp([last, last], 1, t("float32", 2, 38, 55)))]

    assert _transposed(network_of([plain], build), random_array(RNG, "float32", (2, 19, 55)))


def test_not_a_number_keeps_its_bits() -> None:
    source, target = t("float32", 16, 24), t("float32", 24, 16)
    x = RNG.integers(0, 2**32, (16, 24), np.uint32)
    x[3:9] |= 0x7F800001  # payloads, signalling ones too

    def build(network: Network) -> list[SSAValue]:
        body = identity_region(element_of(source))
        return [network.add(PointwiseOp(network.inputs, [access("d1", "d0")], [target], body))]

    assert _transposed(network_of([source], build), x.view(np.float32))
