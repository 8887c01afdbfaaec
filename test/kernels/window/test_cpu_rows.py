"""Pooling of rows, compiled for the CPU, against the meaning of the op: windows, pads, types, sizes of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from compiled_ops import check_compiled
from cpu_kernel_runs import MAX_WIDTH, widths
from fused_network import Network, access, random_array, summing, t
from xdsl.ir import SSAValue

from mlirt.dialects.fused.fused_op import identity_region
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.tensor_types import element_type

RNG = np.random.default_rng(6)
MAX, ADD, AVERAGE = WindowKind.MAX, WindowKind.ADD, WindowKind.AVERAGE
# Sums of many elements are rounded in another order.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Case:
    """A window over the last axes of an input; `names` where only the run knows sizes."""

    shape: tuple[int, ...]
    window: tuple[int, ...]
    stride: tuple[int, ...]
    pre: tuple[int, ...]
    post: tuple[int, ...]
    dilation: tuple[int, ...] = ()
    names: tuple[int | str, ...] = ()
    results: tuple[int | str, ...] = ()
    includes: bool = False
    element: str = "float32"

    def check(self, kind: WindowKind, bits: int = MAX_WIDTH) -> set[str]:
        spatial, dilation = len(self.window), self.dilation or (1,) * len(self.window)
        lengths = [
            (size + pre + post - (taps - 1) * step - 1) // stride + 1
            for size, pre, post, taps, step, stride in zip(
                self.shape[-spatial:], self.pre, self.post, self.window, dilation, self.stride, strict=True
            )
        ]
        kept: Sequence[int | str] = (self.names or self.shape)[:-spatial]

        def build(network: Network) -> list[SSAValue]:
            op = WindowOp(
                kind,
                network.inputs[0],
                t(self.element, *kept, *(self.results or lengths)),
                identity_region(element_type(self.element)),
                window=self.window,
                stride=self.stride,
                dilation=dilation,
                pre_padding=self.pre,
                post_padding=self.post,
                axis=len(self.shape) - spatial,
                count_include_padding=self.includes,
            )
            return [network.add(op)]

        x = random_array(RNG, self.element, self.shape)
        if x.dtype.kind == "f" and kind is MAX:
            x.reshape(-1)[3] = np.nan
        return check_compiled([t(self.element, *(self.names or self.shape))], build, [x], bits, TOLERANCE)


CASES = {
    "2x2 by 2": Case((3, 2, 14, 14), (2, 2), (2, 2), (0, 0), (0, 0)),
    "overlapping": Case((2, 3, 19, 45), (3, 3), (1, 1), (1, 1), (1, 1)),
    "by 3, uneven pads": Case((1, 2, 20, 100), (3, 5), (2, 3), (1, 2), (0, 4)),
    "dilated": Case((1, 2, 20, 60), (3, 3), (1, 2), (2, 3), (2, 3), dilation=(2, 3)),
    "many taps": Case((1, 2, 21, 33), (13, 13), (1, 1), (6, 6), (6, 6)),
    "11x11 by 11": Case((2, 3, 40, 67), (11, 11), (11, 11), (1, 2), (0, 3)),
    "few results of many elements": Case((1, 2, 60, 61), (28, 28), (28, 29), (0, 1), (0, 0)),
    "signal": Case((5, 300), (4,), (4,), (2,), (1,)),
    "volume": Case((2, 7, 9, 23), (2, 3, 2), (2, 1, 2), (0, 1, 0), (1, 1, 1)),
    "windows beyond the input": Case((2, 6, 30), (2, 2), (1, 1), (3, 3), (3, 3)),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, MAX) for name in CASES),
        *((name, AVERAGE) for name in ("overlapping", "dilated", "volume", "windows beyond the input", "11x11 by 11")),
        ("many taps", ADD),
    ],
)
def test_windows(name: str, kind: WindowKind) -> None:
    assert CASES[name].check(kind) == {"window_rows"}


@pytest.mark.parametrize("bits", widths())
def test_narrower_vectors(bits: int) -> None:
    assert CASES["by 3, uneven pads"].check(MAX, bits) == {"window_rows"}


@pytest.mark.parametrize(
    ("element", "kind"),
    [*((element, MAX) for element in ("float16", "float64", "int32", "int8", "uint8")), ("int32", AVERAGE)],
)
def test_element_types(element: str, kind: WindowKind) -> None:
    case = Case((2, 9, 40), (3, 3), (2, 2), (1, 1), (1, 1), element=element)
    assert case.check(kind) == {"window_rows"}


def test_padding_that_counts() -> None:
    inside = Case((2, 9, 41), (3, 3), (2, 2), (1, 1), (1, 1), includes=True)
    beyond = Case((2, 9, 40), (3, 3), (2, 2), (1, 1), (1, 1), includes=True, results=(6, 22))
    assert inside.check(AVERAGE) == beyond.check(AVERAGE) == {"window_rows"}


def test_rows_of_several_parts() -> None:
    assert Case((2, 9000), (3,), (2,), (1,), (1,)).check(MAX) == {"window_rows"}


def test_sizes_of_the_run() -> None:
    names, results = ("n", 3, "h", "w"), ("h", "(w - 1)//2 + 1")
    for width in (1, 5, 64, 5001):
        case = Case((2, 3, 4, width), (3, 3), (1, 2), (1, 1), (1, 1), names=names, results=results)
        for kind in (MAX, AVERAGE):
            assert case.check(kind) == {"window_rows"}


def test_a_run_without_results() -> None:
    case = Case((5, 1), (2,), (2,), (0,), (0,), names=(5, "w"), results=("(w - 2)//2 + 1",))
    assert case.check(MAX) == {"window_rows"}


def test_extras_of_the_epilogue() -> None:
    def build(network: Network) -> list[SSAValue]:
        x, bias, more = network.inputs
        op = WindowOp(
            MAX,
            x,
            t("float32", 2, 5, 20),
            summing(3),
            window=(2, 2),
            stride=(2, 2),
            dilation=(1, 1),
            pre_padding=(0, 0),
            post_padding=(0, 0),
            axis=1,
            extras=[bias, more],
            access=[access("d0"), access("d0", "d1", "d2")],
        )
        return [network.add(op)]

    shapes = [(2, 10, 40), (2,), (2, 5, 20)]
    inputs = [random_array(RNG, "float32", shape) for shape in shapes]
    assert check_compiled([t("float32", *shape) for shape in shapes], build, inputs) == {"window_rows"}


def test_rows_of_few_results_are_left_to_other_tactics() -> None:
    assert Case((2, 7, 7), (7, 7), (1, 1), (0, 0), (0, 0)).check(MAX) == {"window"}
