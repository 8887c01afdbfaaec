"""The border between tensors and memory: names, sharing of kernels, what is returned, and tensors without elements."""

from __future__ import annotations

import re

import numpy as np
import pytest
from fused_network import Add, Network, access, check, context, network_of, random_array, region, t
from lowered_network import lower
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp, StringAttr, f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.locations import name_of
from mlirt.dialects.plan.ops import LaunchOp, OutputOp
from mlirt.dialects.tensor_types import rank, tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.errors import CompileError, InvalidInputError
from mlirt.passes.pipeline import run_passes


def _scaled(network: Network, value: SSAValue, factor: float, layer: str = "") -> SSAValue:
    """`value * factor`, the factor in the scalar body."""

    def multiply(add: Add, values: list[SSAValue]) -> list[SSAValue]:
        return [add(arith.MulfOp(values[0], add(arith.ConstantOp(FloatAttr(factor, f32)))))]

    indices = access(*(f"d{k}" for k in range(rank(value.type))))
    return network.add(PointwiseOp([value], [indices], [value.type], region(["float32"], multiply)), layer)


def _launches(module: ModuleOp) -> list[LaunchOp]:
    return [op for op in module.walk() if isinstance(op, LaunchOp)]


def _kernels(module: ModuleOp) -> list[str]:
    return [op.sym_name.data for op in module.walk() if isinstance(op, FuncOp)]


def test_launches_bear_the_names_of_their_layers() -> None:
    module = network_of([t("float32", 3)], lambda network: [_scaled(network, network.inputs[0], 3.0, "conv1/scale")])
    assert [name_of(op) for op in _launches(lower(module, context()))] == ["conv1/scale"]


def test_kernels_for_the_cpu_are_shared_by_all_shapes_and_factors() -> None:
    def build(network: Network) -> list[SSAValue]:
        return [_scaled(network, value, 3.0 + k) for k, value in enumerate(network.inputs)]

    inputs = [t("float32", 3, 4), t("float32", "n"), t("float32", 5, 5, 5)]
    assert len(_kernels(lower(network_of(inputs, build), context()))) == 1
    assert len(_kernels(lower(network_of(inputs, build), context(), "cuda"))) == 3


def test_a_size_that_happens_to_be_equal_is_no_part_of_a_kernel() -> None:
    def build(network: Network) -> list[SSAValue]:
        indices = [access("d1", "d0")]
        results = [t("float32", 9, 9), t("float32", 10, 9)]
        return [
            network.add(PointwiseOp([value], indices, [result], identity_region(f32)))
            for value, result in zip(network.inputs, results, strict=True)
        ]

    # Steps of up to 4 elements would be part of a CPU's code, which loads their lanes by whole vectors.
    module = lower(network_of([t("float32", 9, 9), t("float32", 9, 10)], build), context())
    assert len(_kernels(module)) == 1


def _returns_everything(network: Network) -> list[SSAValue]:
    """An input, a value twice, a constant twice, a view; one input is not used."""
    constant = ConstantOp.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), WeightStore(), "c")
    network.add(constant)
    value = _scaled(network, network.inputs[0], 3.0)
    view = network.add(ViewOp(value, t("float32", "4*n")))
    return [network.inputs[0], value, value, constant.output, view, constant.output]


def test_anything_may_be_returned() -> None:
    arrays = [random_array(np.random.default_rng(0), "float32", shape) for shape in ((3, 4), (7,))]
    check([t("float32", "n", 4), t("float32", 7)], _returns_everything, arrays)


def test_a_returned_tensor_with_a_halo_is_copied() -> None:
    blocked = tensor(f32, [1, 1, 3, 2, 4], channels=4, halo=(1, 1))

    def build(network: Network) -> list[SSAValue]:
        indices = access("d0", "d1", "d2", "d3", "d4")
        return [network.add(PointwiseOp(network.inputs, [indices], [blocked], identity_region(f32)))]

    x = random_array(np.random.default_rng(1), "float32", (1, 1, 3, 2, 4))
    check([t("float32", 1, 1, 3, 2, 4)], build, [x])


@pytest.mark.parametrize("size", [0, 1])
def test_tensors_without_elements_and_without_dimensions(size: int) -> None:
    x = random_array(np.random.default_rng(2), "float32", (size, 3))
    for length in (size, "n"):
        check([t("float32", length, 3)], lambda network: [_scaled(network, network.inputs[0], 3.0)], [x])
    check([t("float32")], lambda network: [_scaled(network, network.inputs[0], 3.0)], [np.full((), 2, np.float32)])


def test_nothing_is_launched_for_no_elements() -> None:
    module = network_of([t("float32", 0, 3)], lambda network: [_scaled(network, network.inputs[0], 3.0)])
    lowered = lower(module, context())
    assert not _launches(lowered)
    assert len([op for op in lowered.walk() if isinstance(op, OutputOp)]) == 1


def test_an_unknown_target_is_refused() -> None:
    module = network_of([t("float32", 3)], lambda network: [_scaled(network, network.inputs[0], 3.0)])
    with pytest.raises(InvalidInputError, match="there is no target 'tpu'"):
        run_passes(module, context(), "convert-fused-to-kernel{target=tpu}")


def test_the_text_of_kernels_is_the_same_in_every_run() -> None:
    arrays = [t("float32", "n", 4), t("float32", 7)]
    names = [_kernels(lower(network_of(arrays, _returns_everything), context())) for _ in range(2)]
    assert names[0] == names[1]


def test_an_op_may_name_its_tactic() -> None:
    module = network_of([t("float32", 3)], lambda network: [_scaled(network, network.inputs[0], 3.0, "conv1/scale")])
    (op,) = [op for op in module.walk() if isinstance(op, PointwiseOp)]
    op.attributes["fused.tactic"] = StringAttr("generic")
    assert _launches(lower(module.clone(), context(), tactic="g"))
    op.attributes["fused.tactic"] = StringAttr("no_such")
    what = "could not find any implementation: the tactic 'no_such' does not lower fused.pointwise to cpu"
    with pytest.raises(CompileError, match=re.escape(f"layer conv1/scale: {what}")):
        lower(module, context(), tactic="g")
