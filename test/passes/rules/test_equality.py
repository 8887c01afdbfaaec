"""The e-graph by itself: classes, congruence, and the choice of the cheapest layers in an order that can run."""

from __future__ import annotations

import numpy as np
from converted_layer import NetworkBuilder
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp
from mlirt.dialects.trt.unary import UnaryKind, UnaryOp
from mlirt.passes.rules.equality.costs import Costs, MachineRates
from mlirt.passes.rules.equality.egraph import EGraph
from mlirt.passes.rules.equality.extraction import Extraction

_RATES = MachineRates(launch=10, moved=1, operations=1e6, products=1e6)


def _ops(net: NetworkBuilder) -> list[Operation]:
    return list(net.block.ops)


def _unary(net: NetworkBuilder, value: SSAValue, kind: UnaryKind) -> SSAValue:
    return net.layer(UnaryOp, [value], kind=kind)[0]


def test_equal_layers_are_one_node() -> None:
    net = NetworkBuilder()
    x = net.input(np.zeros(4, np.float32))
    one, other = _unary(net, x, UnaryKind.EXP), _unary(net, x, UnaryKind.EXP)
    graph = EGraph(_ops(net))
    assert graph.find(one) == graph.find(other)
    made = UnaryOp.build_inferred([x], {"kind": "exp"})
    assert graph.add(made) is one.owner
    assert not list(graph.scratch.ops)


def test_what_reads_equal_values_becomes_equal() -> None:
    net = NetworkBuilder()
    x = net.input(np.zeros(4, np.float32))
    a, b = _unary(net, x, UnaryKind.EXP), _unary(net, x, UnaryKind.ABS)
    c, d = _unary(net, a, UnaryKind.SIN), _unary(net, b, UnaryKind.SIN)
    graph = EGraph(_ops(net))
    assert graph.find(c) != graph.find(d)
    assert graph.merge(b, a)
    graph.rebuild()
    assert graph.find(c) == graph.find(d)
    assert not graph.merge(c, d)


def test_the_first_of_equal_values_stands_for_them() -> None:
    net = NetworkBuilder()
    x = net.input(np.zeros(4, np.float32))
    a, b = _unary(net, x, UnaryKind.EXP), _unary(net, x, UnaryKind.ABS)
    graph = EGraph(_ops(net))
    graph.merge(b, a)
    assert list(graph.values_of(b)) == [a, b]


def _extraction(net: NetworkBuilder, graph: EGraph, outputs: list[SSAValue]) -> Extraction:
    places = {op: float(place) for place, op in enumerate(net.block.ops)}
    return Extraction(graph, Costs(_RATES, {}, graph.scratch), outputs, places)


def test_a_value_that_comes_later_does_not_stand_for_an_earlier_one() -> None:
    """The cheap layer stands behind the dear one, whose reader may be anywhere in between."""
    net = NetworkBuilder()
    x = net.input(np.zeros(4, np.float32))
    dear = net.layer(ReduceOp, [_unary(net, x, UnaryKind.EXP)], kind=ReduceKind.SUM, axes=[0])[0]
    cheap = net.layer(ReduceOp, [x], kind=ReduceKind.SUM, axes=[0])[0]
    graph = EGraph([op for op in net.block.ops if op is not cheap.owner])
    graph.merge(dear, cheap)
    assert _extraction(net, graph, [dear]).best() is None


def test_no_value_is_computed_from_itself() -> None:
    net = NetworkBuilder()
    x = net.input(np.zeros(4, np.float32))
    a = _unary(net, x, UnaryKind.EXP)
    b = net.layer(ActivationOp, [a], kind=ActivationKind.RELU)[0]
    graph = EGraph(_ops(net))
    graph.merge(a, b)
    graph.rebuild()
    found = _extraction(net, graph, [b]).best()
    assert found is not None
    assert list(found.ops) == [a.owner]


def test_what_is_read_twice_counts_once() -> None:
    net = NetworkBuilder()
    x, y = (net.input(np.zeros((64, 64), np.float32)) for _ in range(2))
    product = net.layer(MatrixMultiplyOp, [x, y])[0]
    outputs = [_unary(net, product, kind) for kind in (UnaryKind.EXP, UnaryKind.SIN)]
    ops = _ops(net)
    slow_products = MachineRates(launch=1, moved=1e6, operations=1e6, products=1)
    costs = Costs(slow_products, {}, EGraph(ops).scratch)
    alone = [costs.of([ops[0], op], {}, [value]) for op, value in zip(ops[1:], outputs, strict=True)]
    assert max(alone) < costs.of(ops, {}, outputs) < sum(alone)


def test_a_normalization_is_one_launch() -> None:
    """Rows that are reduced, and what is made of them and their sums, are read and written once."""
    net = NetworkBuilder()
    x = net.input(np.zeros((8, 16), np.float32))
    mean = net.layer(ReduceOp, [x], kind=ReduceKind.AVG, axes=[1])[0]
    centered = net.layer(ElementwiseOp, [x, mean], kind=ElementwiseKind.SUB)[0]
    squares = net.layer(ElementwiseOp, [centered, centered], kind=ElementwiseKind.PROD)[0]
    variance = net.layer(ReduceOp, [squares], kind=ReduceKind.AVG, axes=[1])[0]
    y = net.layer(ElementwiseOp, [centered, variance], kind=ElementwiseKind.PROD)[0]
    graph = EGraph(_ops(net))
    cost = Costs(_RATES, {}, graph.scratch).of(_ops(net), {}, [y])
    assert 10 + 2 * 8 * 16 * 4 <= cost < 11 + 2 * 8 * 16 * 4
