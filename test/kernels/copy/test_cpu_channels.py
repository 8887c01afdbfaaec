"""Channels gathered from blocks into blocks, compiled, against what the op means."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from compiled_ops import check_compiled
from cpu_kernel_runs import MAX_WIDTH, widths
from fused_network import Network, random_array, t
from xdsl.dialects.builtin import AnyDenseElement, BytesAttr, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import SSAValue

from mlirt.dialects.blocked_layout import blocked
from mlirt.dialects.fused.gather import GatherOp
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.trt.constant import ConstantOp

RNG = np.random.default_rng(6)
Shape = tuple[int, int, int, int]
SHUFFLES: dict[str, tuple[Shape, list[int]]] = {
    "four groups of 34": ((1, 136, 5, 7), [c % 4 * 34 + c // 4 for c in range(136)]),
    "two groups of 16": ((2, 32, 4, 4), [c % 2 * 16 + c // 2 for c in range(32)]),
    "a few of many": ((1, 50, 3, 9), [49, 0, 17, 16, 15]),
    "many images": ((3, 20, 1, 1), list(reversed(range(20)))),
    "a channel twice, counted from the end": ((1, 18, 6, 5), [-1, 3, 3, -18]),
    "more pixels than one task has": ((1, 6, 30, 41), [5, 3, 1, 4, 2, 0]),
}


def _constant(array: np.ndarray[Any, np.dtype[np.int64]]) -> ConstantOp:
    """A constant whose elements stand in the IR, however many they are."""
    type_ = t("int64", array.size)
    value = DenseIntOrFPElementsAttr(cast("TensorType[AnyDenseElement]", type_), BytesAttr(array.tobytes()))
    return ConstantOp.build(properties={"value": value}, result_types=[type_])


def gathered(
    shape: Shape,
    channels: list[int],
    *,
    names: tuple[int | str, ...] | None = None,
    halo: tuple[int, int] = (0, 0),
    bits: int = MAX_WIDTH,
    element: str = "float32",
) -> set[str]:
    lanes, dims = bits // 32, list(names or shape)
    plain, result = t(element, *dims), t(element, dims[0], len(channels), *dims[2:])

    def build(network: Network) -> list[SSAValue]:
        blocks = network.add(ReformatOp(network.inputs[0], blocked(plain, lanes)))
        indices = network.add(_constant(np.array(channels, np.int64)))
        found = network.add(GatherOp(blocks, indices, blocked(result, lanes, halo), axis=1))
        return (
            [network.add(ReformatOp(found, result))] if any(halo) else [found, network.add(ReformatOp(found, result))]
        )

    return check_compiled([plain], build, [random_array(RNG, element, shape)], bits)


@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffles(name: str) -> None:
    assert "gather_channels" in gathered(*SHUFFLES[name])


@pytest.mark.parametrize("bits", [bits for bits in widths() if bits != MAX_WIDTH])
def test_narrow_vectors(bits: int) -> None:
    assert "gather_channels" in gathered(*SHUFFLES["a few of many"], bits=bits)


def test_results_with_a_halo() -> None:
    for shape, channels in SHUFFLES.values():
        assert "gather_channels" in gathered(shape, channels, halo=(1, 2))


def test_sizes_of_the_run() -> None:
    names = ("n", 136, "h", "w")
    assert "gather_channels" in gathered(*SHUFFLES["four groups of 34"], names=names)
    assert "gather_channels" in gathered(*SHUFFLES["four groups of 34"], names=names, halo=(1, 1))


@pytest.mark.parametrize("element", ["int8", "uint8", "int32"])
def test_other_elements(element: str) -> None:
    assert "gather_channels" in gathered(*SHUFFLES["four groups of 34"], element=element)
