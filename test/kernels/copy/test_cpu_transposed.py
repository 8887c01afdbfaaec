"""Floats and halves into blocks of channels and back, transposed in registers, compiled, against their meaning."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_ops import check_compiled
from cpu_kernel_runs import MAX_WIDTH, widths
from fused_network import Network, random_array, t
from xdsl.ir import SSAValue

from mlirt.dialects.blocked_layout import blocked
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.tensor_types import element_of, numpy_dtype

RNG = np.random.default_rng(5)
TRANSPOSED = {"reformat_transposed"}


def there_and_back(
    shape: tuple[int, ...],
    *,
    names: tuple[int | str, ...] | None = None,
    halo: tuple[int, int] = (0, 0),
    bits: int = MAX_WIDTH,
    element: str = "float32",
) -> set[str]:
    plain = t(element, *(names or shape))

    def build(network: Network) -> list[SSAValue]:
        blocks = network.add(ReformatOp(network.inputs[0], blocked(plain, bits // 32, halo)))
        return [network.add(ReformatOp(blocks, plain))]

    x = random_array(RNG, "float32", shape).astype(numpy_dtype(element_of(plain)))
    return check_compiled([plain], build, [x], bits)


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("shape", [(2, 32, 7, 7), (1, 20, 5, 9), (1, 3, 1, 40), (1, 16, 16, 16)])
def test_sizes(shape: tuple[int, ...], bits: int) -> None:
    assert there_and_back(shape, bits=bits) == TRANSPOSED


@pytest.mark.parametrize("bits", widths())
@pytest.mark.parametrize("element", ["float16", "bfloat16"])
def test_halves(element: str, bits: int) -> None:
    assert there_and_back((2, 37, 7, 9), bits=bits, element=element, halo=(1, 1)) == TRANSPOSED


@pytest.mark.parametrize("channels", [16, 35])
def test_halos(channels: int) -> None:
    assert there_and_back((2, channels, 9, 21), halo=(1, 2)) == TRANSPOSED


def test_sizes_of_the_run() -> None:
    assert there_and_back((2, 33, 9, 21), names=("n", 33, "h", "w")) == TRANSPOSED
    assert there_and_back((3, 32, 40, 50), names=("n", 32, "h", "w")) == TRANSPOSED


def test_lanes_without_a_channel_are_zero() -> None:
    plain = t("float32", 2, 21, 6, 11)

    def build(network: Network) -> list[SSAValue]:
        return [network.add(ReformatOp(network.inputs[0], blocked(plain, MAX_WIDTH // 32)))]

    assert check_compiled([plain], build, [random_array(RNG, "float32", (2, 21, 6, 11))]) == TRANSPOSED


def test_other_elements_are_left_to_other_tactics() -> None:
    assert there_and_back((1, 32, 5, 5), element="float64") == {"reformat"}
