"""Where tensors lie: strides, halos, views that share memory, inputs of concatenations that are written in place."""

from __future__ import annotations

import numpy as np
from fused_network import Build, Network, access, context, network_of, t
from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, SSAValue

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.plan.ops import BufferOp, WeightOp
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_types import tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.kernels.lib.builder.placement import Placements


def _placed(inputs: list[Attribute], build: Build) -> tuple[Placements, list[SSAValue], Block]:
    """Placements of a network, and the first result of each of its ops."""
    module = network_of(inputs, build)
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    block = function.body.block
    values: list[SSAValue] = [op.results[0] for op in block.ops if op.results]
    return Placements(context(), block), values, block


def _copy(network: Network, value: SSAValue, result: Attribute | None = None) -> SSAValue:
    return network.add(PointwiseOp([value], [access("d0", "d1")], [result or value.type], identity_region(f32)))


def test_a_result_gets_a_buffer_of_its_own_and_keeps_it() -> None:
    places, (value,), _ = _placed([t("float32", "n", 3)], lambda network: [_copy(network, network.inputs[0])])
    place = places[value]
    assert isinstance(place.buffer.owner, BufferOp)
    assert str(place.buffer.owner.bytes.value()) == "12*n"
    assert place.strides == (3, 1)
    assert places[value] is place


def test_the_first_element_lies_behind_the_halo() -> None:
    blocked = tensor(f32, [1, 1, 3, 2, 4], channels=4, halo=(1, 2))

    def build(network: Network) -> list[SSAValue]:
        indices = access("d0", "d1", "d2", "d3", "d4")
        return [network.add(PointwiseOp(network.inputs, [indices], [blocked], identity_region(f32)))]

    places, (value,), _ = _placed([t("float32", 1, 1, 3, 2, 4)], build)
    place = places[value]
    assert place.strides == (120, 120, 24, 4, 1)
    assert place.offset == 4 * (1 * 24 + 2 * 4)
    assert isinstance(place.buffer.owner, BufferOp)
    assert place.buffer.owner.halo is not None
    assert not places.is_dense(value)


def test_a_view_of_a_dense_value_shares_its_memory() -> None:
    def build(network: Network) -> list[SSAValue]:
        copy = _copy(network, network.inputs[0])
        return [network.add(ViewOp(copy, t("float32", "3*n")))]

    places, (copy, view), _ = _placed([t("float32", "n", 3)], build)
    assert places[view].buffer is places[copy].buffer
    assert places[view].strides == (1,)


def _joined(network: Network) -> list[SSAValue]:
    x, y = network.inputs
    left, right, shared = _copy(network, x), _copy(network, y), _copy(network, y)
    op = ConcatOp([left, right, shared, x], 1, t("float32", "n", "2*c + 8"))
    op.in_place = [True, False, True, True]
    return [network.add(op), shared]


def test_what_is_marked_is_written_in_place_with_other_readers_too() -> None:
    inputs: list[Attribute] = [t("float32", "n", "c"), t("float32", "n", 4)]
    places, (left, right, shared, joined), _ = _placed(inputs, _joined)
    assert [places.is_in_place(value) for value in (left, right, shared)] == [True, False, True]
    assert places[left].buffer is places[joined].buffer
    assert places[left].strides == (parse("2*c + 8"), 1)
    op = joined.owner
    assert isinstance(op, ConcatOp)
    assert [str(places.part(op, position).offset) for position in range(4)] == ["0", "4*c", "4*c + 16", "4*c + 32"]
    assert not places.is_dense(left)


def test_equal_constants_are_one_weight() -> None:
    array = np.arange(6, dtype=np.float32)

    def build(network: Network) -> list[SSAValue]:
        made = [ConstantOp.from_array(array, WeightStore(), "c") for _ in range(2)]
        return [network.add(op) for op in made]

    places, (first, second), block = _placed([], build)
    assert places[first].buffer is places[second].buffer
    assert len([op for op in block.ops if isinstance(op, WeightOp)]) == 1
