"""Rows that a team of threads holds in registers: whatever their length, number and type, each is read once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_kernels import check_on_threads
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64

from mlirt.dialects.kernel.buffers import is_shared
from mlirt.dialects.kernel.cluster import ClusterBarrierOp
from mlirt.dialects.kernel.core import FuncOp, LoadOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.kernel.simt import BarrierOp, ShuffleOp

DTYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "f64": np.float64}


def softmax(rows: int, length: int, element: str, *, log: bool = False) -> ModuleOp:
    type_ = f"tensor<{rows}x{length}x{element}>"
    text = f"""
    func.func @main(%x: {type_} {{trt.name = "x"}}) -> ({type_} {{trt.name = "y"}}) {{
      %y = fused.softmax %x {{axis = 1 : i64, log = {"true" if log else "false"}}} : ({type_}) -> {type_}
      func.return %y : {type_}
    }}"""
    x = np.random.default_rng(0).standard_normal((rows, length)).astype(DTYPES[element])
    return check_on_threads(text, {"x": x}, tolerance=2e-3 if element == "f16" else 1e-6)


def ops(module: ModuleOp, kind: type) -> list[Any]:
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    return [op for op in function.walk() if isinstance(op, kind)]


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize(
    ("rows", "length"), [(7, 512), (5, 1000), (3, 4096), (9, 197), (33, 8), (70, 24), (2, 10000), (4, 5), (1, 1024)]
)
def test_every_length(rows: int, length: int, element: str) -> None:
    module = softmax(rows, length, element)
    loads = ops(module, LoadFragmentOp)
    assert sum(len(load.offsets) for load in loads) <= 64
    assert all(is_shared(load.buffer) for load in ops(module, LoadOp))


def test_the_logarithm() -> None:
    softmax(6, 300, "f32", log=True)


@pytest.mark.parametrize(
    ("rows", "length", "shuffles", "barriers"),
    [(2000, 64, 8, 0), (100000, 16, 0, 0), (4, 4096, 20, 4), (20000, 5, 4, 0)],
)
def test_teams(rows: int, length: int, shuffles: int, barriers: int) -> None:
    """Two reductions: short rows are exchanged within a part of a warp, long ones between warps too."""
    module = softmax(rows, length, "f32")
    assert (len(ops(module, ShuffleOp)), len(ops(module, BarrierOp))) == (shuffles, barriers)


@pytest.mark.parametrize(("element", "close"), [("f16", True), ("f32", False), ("f64", False)])
def test_exponentials_are_as_close_as_results_are_rounded(element: str, close: bool) -> None:
    (function,) = [op for op in softmax(7, 64, element).ops if isinstance(op, FuncOp)]
    assert ("close_functions" in function.attributes) == close


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(("rows", "length", "blocks"), [(2, 70000, 2), (1, 140004, 4)])
def test_rows_in_the_registers_of_a_cluster(rows: int, length: int, blocks: int, element: str) -> None:
    """Rows that are too long for the threads of a block are read once all the same."""
    module = softmax(rows, length, element)
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    assert function.attributes["cluster"] == IntegerAttr(blocks, i64)
    assert function.attributes["architecture"] == StringAttr("sm_90a")
    assert sum(len(load.offsets) for load in ops(module, LoadFragmentOp)) <= 64
    assert len(ops(module, ClusterBarrierOp)) == 3  # two reductions, and the end


def test_rows_that_no_cluster_holds_are_shared_out_in_loops() -> None:
    module = softmax(2, 600000, "f32")
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    assert function.attributes["cluster"] == IntegerAttr(8, i64)
    assert ops(module, scf.ForOp)
    assert {len(load.offsets) for load in ops(module, LoadFragmentOp)} == {4}


@pytest.mark.parametrize(
    ("length", "element", "width"), [(70000, "f32", 4), (70000, "f16", 8), (70002, "f16", 2), (70001, "f16", 1)]
)
def test_members_of_a_team_take_neighbours_at_once(length: int, element: str, width: int) -> None:
    """In rows that their registers do not hold, as far as rows begin where wide accesses may."""
    module = softmax(70, length, element)
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    assert "cluster" not in function.attributes
    assert len(ops(module, scf.ForOp)) == 3
    assert {len(load.offsets) for load in ops(module, LoadFragmentOp)} == ({width} if width > 1 else set())


@pytest.mark.parametrize("rows", [70, 200])
def test_more_rows_than_clusters_have_a_block_each(rows: int) -> None:
    module = softmax(rows, 70000, "f32")
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    assert "cluster" not in function.attributes


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize(("rows", "length", "columns"), [(3, 33, 3001), (2, 64, 4100), (5, 4, 70)])
def test_rows_across_memory_have_a_thread_each(rows: int, length: int, columns: int, element: str) -> None:
    type_ = f"tensor<{rows}x{length}x{columns}x{element}>"
    text = f"""
    func.func @main(%x: {type_} {{trt.name = "x"}}) -> ({type_} {{trt.name = "y"}}) {{
      %y = fused.softmax %x {{axis = 1 : i64}} : ({type_}) -> {type_}
      func.return %y : {type_}
    }}"""
    x = np.random.default_rng(0).standard_normal((rows, length, columns)).astype(DTYPES[element])
    module = check_on_threads(text, {"x": x}, tolerance=2e-3 if element == "f16" else 1e-6)
    assert sum(len(load.offsets) for load in ops(module, LoadFragmentOp)) == length
    assert not ops(module, LoadOp)
    assert not ops(module, ShuffleOp)


def test_long_rows_across_memory_are_read_again() -> None:
    text = """
    func.func @main(%x: tensor<2x65x40xf32> {trt.name = "x"}) -> (tensor<2x65x40xf32> {trt.name = "y"}) {
      %y = fused.softmax %x {axis = 1 : i64} : (tensor<2x65x40xf32>) -> tensor<2x65x40xf32>
      func.return %y : tensor<2x65x40xf32>
    }"""
    x = np.random.default_rng(0).standard_normal((2, 65, 40)).astype(np.float32)
    assert ops(check_on_threads(text, {"x": x}, tolerance=1e-6), LoadOp)
