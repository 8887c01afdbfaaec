"""Products on register tiles, compiled: random shapes, strides and epilogues against the meaning of the op."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from cpu_kernel_runs import widths
from fused_network import Network as FusedNetwork
from fused_network import network_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32, i64
from xdsl.ir import Region, SSAValue

from mlirt.builder.machine_texts import machine_text
from mlirt.dialects.context import RtContext
from mlirt.dialects.device_files import cpu_device
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import IndexOp, YieldOp, scalar_region
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.tile_products import TileMultiplyAddOp
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.tensor_types import tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.kernels.matmul.cpu.tile_choice import tile_cycles
from mlirt.passes.pipeline import check_ir, run_passes


@dataclass(frozen=True)
class Case:
    """A product of one size. `lhs_batch` and `rhs_batch` broadcast; `extras` are letters, see `_EXTRAS`."""

    rows: int
    columns: int
    depth: int
    lhs_batch: tuple[int, ...] = ()
    rhs_batch: tuple[int, ...] = ()
    transpose_lhs: bool = False
    transpose_rhs: bool = False
    constant: bool = True
    symbolic: bool = False
    extras: str = ""

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        lhs, rhs = (self.rows, self.depth), (self.depth, self.columns)
        batch = np.broadcast_shapes(self.lhs_batch, self.rhs_batch)
        return (
            (*self.lhs_batch, *(lhs[::-1] if self.transpose_lhs else lhs)),
            (*self.rhs_batch, *(rhs[::-1] if self.transpose_rhs else rhs)),
            (*batch, self.rows, self.columns),
        )


# Operands of the epilogue: a bias for each column, one for each row, a residual, a transposed residual, a number, every
# third element of a vector.
_EXTRAS = "brst13"


def _extra(name: str, shape: Sequence[Dim]) -> tuple[AccessAttr, tuple[Dim, ...]]:
    """How an operand of the epilogue is read, and its shape."""
    places = [sym(f"d{axis}") for axis in range(len(shape))]
    m, n, rows, columns = places[-2], places[-1], shape[-2], shape[-1]
    table: dict[str, tuple[Sequence[Dim], tuple[Dim, ...]]] = {
        "b": ([n], (columns,)),
        "r": ([m], (rows,)),
        "s": (places, tuple(shape)),
        "t": ([n, m], (columns, rows)),
        "1": ([0], (1,)),
        "3": ([n * 3], (columns * 3 - 2,)),
    }
    access, own = table[name]
    return AccessAttr.of(access), own


def _epilogue(case: Case, rank: int) -> Region:
    """The sum of everything, with `i` also of all indices, but nothing below zero."""
    region = scalar_region([f32] * (1 + sum(name in _EXTRAS for name in case.extras)))
    block = region.block
    total: SSAValue = block.args[0]
    for value in block.args[1:]:
        total = _added(block.add_op, arith.AddfOp(total, value))
    for axis in range(rank) if "i" in case.extras else ():
        index = _added(block.add_op, IndexOp(axis))
        whole = _added(block.add_op, arith.IndexCastOp(index, i64))
        number = _added(block.add_op, arith.SIToFPOp(whole, f32))
        total = _added(block.add_op, arith.AddfOp(total, number))
    if case.extras:
        zero = _added(block.add_op, arith.ConstantOp(FloatAttr(0.0, f32)))
        total = _added(block.add_op, arith.MaximumfOp(total, zero))
    block.add_op(YieldOp(operands=[[total]]))
    return region


def _added(add: Any, op: Any) -> SSAValue:
    add(op)
    return op.results[0]


def _named(shape: Sequence[int], names: str) -> list[Dim]:
    """A shape with a symbol for every dimension that has a name and is not 1."""
    batch = len(shape) - len(names)
    own = [f"b{axis - batch}" for axis in range(batch)] + list(names)
    return [size if size == 1 else sym(name) for name, size in zip(own, shape, strict=True)]


class Network:
    """The module of a case, and inputs for it."""

    def __init__(self, case: Case) -> None:
        self.ctx = RtContext()
        register_dialects(self.ctx)
        rng = np.random.default_rng(case.rows * 31 + case.columns * 7 + case.depth)
        shapes = case.shapes()
        dims: list[Sequence[Dim]] = list(shapes)
        if case.symbolic:
            names = ["km" if case.transpose_lhs else "mk", "nk" if case.transpose_rhs else "kn", "mn"]
            dims = [_named(shape, name) for shape, name in zip(shapes, names, strict=True)]
        picked = [_extra(name, dims[2]) for name in case.extras if name in _EXTRAS]
        numbers = [_extra(name, shapes[2])[1] for name in case.extras if name in _EXTRAS]
        operands = [(dims[0], shapes[0]), *zip((own for _, own in picked), numbers, strict=True)]
        if not case.constant:
            operands.insert(1, (dims[1], shapes[1]))
        arrays = [rng.standard_normal([int(str(n)) for n in shape]).astype(np.float32) for _, shape in operands]
        weights = rng.standard_normal(shapes[1]).astype(np.float32)

        def build(network: FusedNetwork) -> Sequence[SSAValue]:
            lhs, *rest = network.inputs
            if case.constant:
                rest.insert(0, network.add(ConstantOp.from_array(weights, self.ctx.weights, "w")))
            op = MatmulOp(
                lhs,
                rest[0],
                tensor(f32, dims[2]),
                _epilogue(case, len(dims[2])),
                rest[1:],
                [access for access, _ in picked],
                case.transpose_lhs,
                case.transpose_rhs,
            )
            return [network.add(op)]

        self.module: ModuleOp = network_of([tensor(f32, own) for own, _ in operands], build)
        self.inputs = {f"input{position}": array for position, array in enumerate(arrays)}
        self.module.verify()

    def check(self, vector_bits: int) -> None:
        """Compare with the reference, run by one worker, two, and more than there is work for."""
        (expected,) = interpret(self.module, self.ctx, self.inputs).values()
        lowered = self.module.clone()
        run_passes(lowered, self.ctx, f"convert-fused-to-kernel{{target=cpu vector_bits={vector_bits}}}")
        check_ir(lowered)
        assert any(isinstance(op, TileMultiplyAddOp) for op in lowered.walk())
        plan = CompiledPlan(lowered, self.ctx, vector_bits)
        for workers in (1, 2, 7):
            (found,) = plan.run(self.inputs, workers).values()
            np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


_TYPICAL = [
    Case(128, 64, 48, extras="b"),
    Case(1, 200, 70, extras="bi"),
    Case(3, 130, 33, transpose_rhs=True, extras="s"),
    Case(14, 64, 64, lhs_batch=(2,), rhs_batch=(1,), extras="bs"),
    Case(50, 70, 33, (2, 3), (2, 3), transpose_rhs=True, constant=False),
    Case(50, 64, 33, (2, 3), (2, 1), constant=False, extras="3"),
    Case(30, 100, 17, constant=False, extras="tr1"),
    Case(29, 37, 41, (2,), (2,), transpose_lhs=True, transpose_rhs=True, constant=False, symbolic=True, extras="i"),
    Case(5, 48, 16, (3,), (1,), symbolic=True, extras="b"),
]


@pytest.mark.parametrize("case", _TYPICAL, ids=str)
@pytest.mark.parametrize("bits", widths())
def test_typical_products(case: Case, bits: int) -> None:
    if case.symbolic and case.constant:
        case = replace(case, symbolic=False)
    Network(case).check(bits)


@pytest.mark.parametrize("device", ["cpu-avx512", "cpu-avx2", "cpu-128"])
def test_tiles_leave_registers_for_the_factors(device: str) -> None:
    cpu = cpu_device(device)
    for rows in (4, 5, 6, 7, 8, 12, 14, 16, 100, sym("n")):
        for columns in (16, 64, 200, 512, 1024, sym("m")):
            shape = next(iter(tile_cycles(rows, columns, cpu, 1)))
            assert shape.rows * shape.vectors + shape.vectors + 2 <= cpu.registers


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads the assembly of x86-64")
@pytest.mark.parametrize("rows", [4, 5, 6, 8, 14])
@pytest.mark.parametrize("bits", widths())
def test_accumulators_stay_in_registers(rows: int, bits: int) -> None:
    """No step of the sum goes through the stack."""
    network = Network(Case(rows, 512, 64))
    tail = f"convert-fused-to-kernel{{target=cpu vector_bits={bits}}},map-parallel-to-workers{{vector_bits={bits}}}"
    run_passes(network.module, network.ctx, tail)
    parts = re.split(r"^\S+:.*$", machine_text(network.module, "asm"), flags=re.MULTILINE)
    steps = [part for part in parts if part.count("vfmadd") >= 16]
    assert steps or bits == 128
    assert not [line for part in steps for line in part.splitlines() if "(%rsp)" in line and "mm" in line]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    sides = [tuple(1 if draw(st.booleans()) else size for size in batch) for _ in range(2)]
    constant = draw(st.booleans())
    return Case(
        draw(st.integers(1, 40)),
        draw(st.integers(2, 150)),
        draw(st.integers(1, 40)),
        sides[0],
        sides[1],
        draw(st.booleans()),
        draw(st.booleans()),
        constant,
        not constant and draw(st.booleans()),
        "".join(draw(st.lists(st.sampled_from("brst13i"), max_size=2, unique=True))),
    )


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), bits=st.sampled_from(widths()))
def test_products_of_any_shape(case: Case, bits: int) -> None:
    Network(case).check(bits)
