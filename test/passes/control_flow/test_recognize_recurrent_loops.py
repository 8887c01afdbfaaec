"""Cells that loops spell out become recurrent layers, whichever way they are written, and nothing else does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_control_flow import check_on_cpu
from spelled_out_cells import WAYS, Array, Ops, Spelling, Write, by_scan, module_of, write_cell
from xdsl.dialects.builtin import ModuleOp

import mlirt
from mlirt.builder.build import build
from mlirt.builder.reference_engine import ReferenceEngine
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.trt.rnn import RnnOp
from mlirt.errors import InvalidInputError
from mlirt.passes.pipeline import run_passes

BEFORE = (
    "name-dimensions,infer-nesting,convert-loops-to-scf,convert-conditionals-to-scf,unify-dimensions,canonicalize,"
    "fold-constants,propagate-shapes,fold-known-branches,simplify-carried-values,hoist-loop-invariants"
)
RECOGNIZED = "recognize-recurrent-loops,hoist-input-products,forward-collected-slices,simplify-carried-values,dce"


def layers_in(module: ModuleOp) -> list[RnnOp]:
    return [op for op in module.walk() if isinstance(op, RnnOp)]


def has_loops(module: ModuleOp) -> bool:
    return any(op.name.startswith("scf.") and op.regions for op in module.walk())


def recognized(way: str, spelling: Spelling, **written: Any) -> ModuleOp:
    """The network behind the passes, whose results are those of the loop."""
    module, ctx, feeds = module_of(way, spelling, **written)
    run_passes(module, ctx, BEFORE)
    counts = [spelling.steps] if way != "counted layers" else [spelling.steps, 0, 1]
    rounds: list[dict[str, Array]] = [feeds | ({"n": np.array(n, np.int32)} if "n" in feeds else {}) for n in counts]
    expected = [interpret(module, ctx, one) for one in rounds]
    run_passes(module, ctx, f"{RECOGNIZED},remove-dead-loops,dce")
    for one, wanted in zip(rounds, expected, strict=True):
        for name, array in interpret(module, ctx, one).items():
            assert array.shape == wanted[name].shape
            np.testing.assert_allclose(array, wanted[name], rtol=1e-4, atol=1e-5)
    return module


SPELLINGS = st.builds(
    Spelling,
    cell=st.sampled_from(["simple", "gru", "lstm"]),
    joined_gates=st.booleans(),
    joined_input=st.booleans(),
    bias=st.booleans(),
    order=st.permutations(range(4)).map(tuple),
    function=st.sampled_from(["tanh", "relu", "sigmoid", "softsign"]),
    reset_after=st.booleans(),
    mixture=st.sampled_from([0, 1, 2]),
    projected=st.booleans(),
    reverse=st.booleans(),
    steps=st.sampled_from([1, 2, 9]),
    batch=st.sampled_from([1, 2]),
    width=st.sampled_from([1, 3]),
    hidden=st.sampled_from([2, 4]),
    seed=st.integers(0, 1000),
)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=12, deadline=None)
@given(spelling=SPELLINGS)
def test_every_spelling(way: str, spelling: Spelling) -> None:
    """tensorrt-features.md#7.19: one layer is left, and no loop."""
    module = recognized(way, spelling)
    (layer,) = layers_in(module)
    assert str(layer.cell.data) == spelling.cell
    assert bool(layer.reverse.value.data) == spelling.reverse
    assert not has_loops(module)


def test_what_reads_the_state_keeps_the_loop() -> None:
    """A larger state than that of the cell is carried on."""

    def write(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
        (new,) = write_cell(s, ops, x, h)
        return [ops.binary("max", new, h)]

    assert not layers_in(recognized("loop", Spelling("gru"), write=write))


def test_what_else_an_iteration_does_stays_in_the_loop() -> None:
    def write(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
        """A cell, and the largest of its outputs so far in the place of another state."""
        (new,) = write_cell(Spelling("gru"), ops, x, h)
        return [new, ops.binary("max", new, c)]

    module = recognized("scan", Spelling("lstm"), write=write)
    assert layers_in(module)
    assert has_loops(module)
    assert not any(op.name == "trt.matrix_multiply" for op in module.walk())


@pytest.mark.parametrize("cell", ["simple", "gru", "lstm"])
def test_on_the_cpu(cell: str) -> None:
    spelling = Spelling(cell, hidden=20, width=5, steps=7, reverse=True)
    check_on_cpu(by_scan(spelling), spelling.feeds())
    engine = mlirt.compile(by_scan(spelling), "cpu")
    assert isinstance(engine, mlirt.Engine)
    assert engine.decisions == ()


def _square(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
    (new,) = write_cell(s, ops, x, h)
    return [ops.binary("prod", new, new)]


def _residual(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
    (new,) = write_cell(s, ops, x, h)
    return [ops.binary("sum", new, h)]


def _scaled(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
    (new,) = write_cell(s, ops, x, h)
    return [ops.binary("prod", new, ops.weight(np.full((1, 1), 0.5, np.float32)))]


def _product_of_input_and_state(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
    matrices = [ops.weight(s.array(3, s.width, s.hidden)), ops.weight(s.array(4, s.hidden, s.hidden))]
    both = ops.binary("prod", ops.matmul(x, matrices[0]), ops.matmul(h, matrices[1]))
    return [ops.activation("tanh", both)]


def _no_input(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
    return [ops.activation("tanh", ops.matmul(h, ops.weight(s.array(4, s.hidden, s.hidden))))]


def _two_activations(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
    (new,) = write_cell(s, ops, x, h)
    return [ops.activation("sigmoid", new)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "write", [_square, _residual, _scaled, _product_of_input_and_state, _no_input, _two_activations]
)
def test_what_is_nearly_a_cell(way: str, write: Write) -> None:
    module = recognized(way, Spelling("simple"), write=write)
    assert not layers_in(module)


def _other_gates(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
    """An LSTM whose output gate is no sigmoid."""
    new, memory = write_cell(s, ops, x, h, c)
    gate = ops.activation("relu", ops.matmul(h, ops.weight(s.array(4, s.hidden, s.hidden))))
    return [ops.binary("prod", gate, ops.activation("tanh", memory)), ops.binary("sum", memory, new)]


def _shown_memory(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
    """An LSTM whose cell state is what the loop collects."""
    new, memory = write_cell(s, ops, x, h, c)
    return [memory, new]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("write", [_other_gates, _shown_memory])
def test_what_is_nearly_an_lstm(way: str, write: Write) -> None:
    assert not layers_in(recognized(way, Spelling("lstm"), write=write))


def test_layers_on_top_of_each_other_in_one_loop() -> None:
    """The outputs of one cell are the input of the next one; here both states have the size of the input."""

    def write(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
        first, second = Spelling("gru", width=4, seed=1), Spelling("simple", width=4, seed=2)
        (lower,) = write_cell(first, ops, x, c)
        (upper,) = write_cell(second, ops, lower, h)
        return [upper, lower]

    for way in WAYS:
        module = recognized(way, Spelling("lstm", width=4), write=write)
        assert sorted(str(layer.cell.data) for layer in layers_in(module)) == ["gru", "simple"]
        assert not has_loops(module)


def test_a_bias_for_each_sequence_behind_the_reset_gate() -> None:
    """A layer has one for all sequences."""

    def write(s: Spelling, ops: Ops, x: Any, h: Any, c: Any) -> Sequence[Any]:
        def total(number: int) -> Any:
            products = [
                ops.matmul(value, ops.weight(s.array(number + k, rows, s.hidden)))
                for k, (value, rows) in enumerate([(x, s.width), (h, s.hidden)])
            ]
            return products[0], ops.binary("sum", products[1], ops.weight(s.array(9, rows_of_bias, s.hidden)))

        z, r = (ops.activation("sigmoid", ops.binary("sum", *total(number))) for number in (10, 20))
        ours, theirs = total(30)
        n = ops.activation("tanh", ops.binary("sum", ours, ops.binary("prod", r, theirs)))
        return [ops.binary("sum", n, ops.binary("prod", z, ops.binary("sub", h, n)))]

    for rows_of_bias, count in ((1, 1), (2, 0)):
        assert len(layers_in(recognized("scan", Spelling("gru"), write=write))) == count


def test_numbers_of_iterations_that_only_the_run_tells() -> None:
    spelling = Spelling("lstm", reverse=True)
    module, ctx, feeds = module_of("counted layers", spelling)
    engines = [ReferenceEngine(module.clone(), ctx), build(module, ctx, "cpu")]
    for count in (5, 0, 2):
        expected, found = (engine.run(feeds | {"n": np.array(count, np.int32)}) for engine in engines)
        for name, array in found.items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-4, atol=1e-5)
    with pytest.raises(InvalidInputError, match="goes on past the end of its iterator"):
        engines[1].run(feeds | {"n": np.array(6, np.int32)})
