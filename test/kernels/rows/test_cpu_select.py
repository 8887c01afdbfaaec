"""Many extreme elements of long rows, compiled for the CPU, against the meaning of the op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from cpu_kernel_runs import MAX_WIDTH
from fused_network import Array, Network, context, network_of, random_array, t
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirt.dialects.fused.topk import ExtremeKind, TopkOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.core import FuncOp
from mlirt.passes.pipeline import check_ir, run_passes

ELEMENTS = ("float32", "float16", "float64", "int8", "uint8", "int32", "int64", "uint32", "uint64")


def network(
    element: str,
    sizes: Sequence[int | str],
    count: int | str,
    axis: int = 1,
    kind: ExtremeKind = ExtremeKind.MAX,
    *,
    is_sorted: bool = True,
) -> ModuleOp:
    found = [count if k == axis else size for k, size in enumerate(sizes)]

    def build(net: Network) -> list[SSAValue]:
        op = TopkOp(kind, net.inputs[0], axis, t(element, *found), t("int64", *found), is_sorted)
        net.add(op)
        return list(op.results)

    return network_of([t(element, *sizes)], build)


def compiled(module: ModuleOp, vector_bits: int = MAX_WIDTH) -> tuple[CompiledPlan, set[str]]:
    """The kernels, and the families that they are of."""
    ctx = context()
    run_passes(module, ctx, f"convert-fused-to-kernel,map-parallel-to-workers{{vector_bits={vector_bits}}}")
    check_ir(module)
    families = {op.sym_name.data.rsplit("_", 1)[0] for op in module.walk() if isinstance(op, FuncOp)}
    return CompiledPlan(module, ctx), families


def rows(element: str, *sizes: int) -> Array:
    """Many equal numbers, and the ends of the range."""
    x = np.round(random_array(np.random.default_rng(2), element, sizes)).astype(element)
    ends = [np.nan, -np.inf, np.inf, np.nan, -0.0, 0.0]
    if x.dtype.kind != "f":
        limits = np.iinfo(x.dtype)
        ends = [limits.max, limits.min, limits.max, limits.min]
    x[0, : len(ends)] = np.array(ends, x.dtype)
    return x


def check(module: ModuleOp, x: Array) -> None:
    want = list(interpret(module, context(), {"input0": x}).values())
    plan, families = compiled(module)
    assert families == {"select"}
    for workers in (1, 3):
        for got, expected in zip(plan.run({"input0": x}, workers).values(), want, strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kind", list(ExtremeKind))
@pytest.mark.parametrize("element", ELEMENTS)
def test_every_element_type(kind: ExtremeKind, element: str) -> None:
    check(network(element, (3, 200), 30, kind=kind), rows(element, 3, 200))


@pytest.mark.parametrize("count", [16, 17, 31, 32, 129, 299, 300])
def test_as_many_as_are_wanted(count: int) -> None:
    check(network("float32", (2, 300), count), rows("float32", 2, 300))


@pytest.mark.parametrize("length", [16, 40, 1000])
def test_sizes_of_the_run(length: int) -> None:
    check(network("float32", ("r", "n"), 16), rows("float32", 2, length))
    check(network("float32", ("r", "n"), "n"), rows("float32", 2, length))


def test_along_another_axis() -> None:
    x = np.round(random_array(np.random.default_rng(3), "float32", (150, 4)))
    check(network("float32", (150, 4), 40, axis=0), x)


def test_what_is_not_sorted_has_the_same_elements() -> None:
    x = random_array(np.random.default_rng(3), "float32", (2, 500))
    plan, families = compiled(network("float32", (2, 500), 50, is_sorted=False))
    assert families == {"select"}
    values, places = plan.run({"input0": x}).values()
    np.testing.assert_array_equal(np.sort(values)[:, ::-1], -np.sort(-x)[:, :50])
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)


@pytest.mark.parametrize(("length", "count"), [(200, 5), (100, 50)])
def test_few_elements_and_short_rows_are_left_to_other_tactics(length: int, count: int) -> None:
    assert compiled(network("float32", (2, length), count))[1] == {"topk"}


@pytest.mark.parametrize("vector_bits", [128, 256, 512])
def test_any_width_of_vectors(vector_bits: int) -> None:
    """A group of elements that is skipped together has several vectors where these are narrow."""
    plan, families = compiled(network("float32", ("m", "n"), 20), vector_bits)
    assert families == {"select"}
    for length in (20, 64, 130, 300):
        x = np.random.default_rng(length).permutation(6 * length).reshape(6, length).astype(np.float32)
        want = -np.sort(-x, 1)[:, :20]
        values, places = plan.run({"input0": x}).values()
        np.testing.assert_array_equal(values, want)
        np.testing.assert_array_equal(np.take_along_axis(x, places, 1), want)
