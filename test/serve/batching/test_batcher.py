"""The batcher joins what waits, answers each request with its own rows, and refuses what it cannot answer."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import mlirt
from mlirt.errors import DeadlineError, InvalidInputError, OverloadError, UnavailableError
from mlirt.runtime.engine import Engine
from mlirt.runtime.engine_interface import TensorDescription
from mlirt.runtime.profile_ranges import ShapeRange
from mlirt.serve.batching.batcher import Batcher
from mlirt.serve.batching.engine_batcher import engine_batcher
from mlirt.serve.batching.limits import Limits
from mlirt.serve.batching.request import Answer
from mlirt.serve.batching.signature import Signature, signature_from_record

Array = np.ndarray[Any, np.dtype[Any]]
DOUBLED = Signature(
    "doubled", (TensorDescription("x", "float32", ("n", 3)),), (TensorDescription("y", "float32", ("n", 3)),)
)


class Gate:
    """Doubles its input, once it is open; keeps the batches that came."""

    def __init__(self) -> None:
        self.open, self.entered = threading.Event(), threading.Event()
        self.batches: list[Array] = []

    def __call__(self, feeds: Mapping[str, Array], timeout: float | None) -> dict[str, Array]:
        self.batches.append(feeds["x"].copy())
        self.entered.set()
        assert self.open.wait(10)
        if (feeds["x"] == 13).any():
            raise InvalidInputError("13 is refused by the network")
        return {"y": feeds["x"] * 2}


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


def rows(value: float, count: int = 1) -> dict[str, Array]:
    return {"x": np.full((count, 3), value, np.float32)}


def held(gate: Gate, limits: Limits) -> Batcher:
    """A batcher whose only run is kept from ending."""
    batcher = Batcher(gate, DOUBLED, limits, batch=True)
    batcher.submit(rows(0))
    assert gate.entered.wait(10)
    return batcher


def test_what_waits_runs_together_and_gets_its_own_rows(gate: Gate) -> None:
    with held(gate, Limits(max_batch=8)) as batcher:
        answers = [batcher.submit(rows(value, 1 + value % 2)) for value in range(1, 6)]
        gate.open.set()
        for value, answer in enumerate(answers, 1):
            assert np.array_equal(answer.result(10)["y"], np.full((1 + value % 2, 3), 2 * value))
    assert [len(batch) for batch in gate.batches] == [1, 8]
    assert answers[0].batch_rows == 8
    assert answers[0].waited > 0


def test_a_run_that_joins_arrays_gets_them_apart(gate: Gate) -> None:
    seen: list[Any] = []

    def run(feeds: Mapping[str, Array], timeout: float | None) -> dict[str, Array]:
        seen.append(feeds["x"])
        return gate({"x": np.asarray(feeds["x"])}, timeout)

    with Batcher(run, DOUBLED, Limits(max_batch=8), batch=True, memory=None) as batcher:
        first = rows(0)
        batcher.submit(first)
        assert gate.entered.wait(10)
        feeds = [rows(1), rows(2, 2)]
        answers = [batcher.submit(one) for one in feeds]
        gate.open.set()
        found = [answer.result(10)["y"] for answer in answers]
    assert [one.tolist() for one in found] == [(2 * one["x"]).tolist() for one in feeds]
    assert isinstance(seen[1], mlirt.JoinedArrays)
    assert all(part.base is one["x"] or part is one["x"] for part, one in zip(seen[1].parts, feeds, strict=True))
    assert len(seen[1]) == 3


def test_batches_have_no_more_rows_than_allowed(gate: Gate) -> None:
    with held(gate, Limits(max_batch=4)) as batcher:
        answers = [batcher.submit(rows(1, 3)) for _ in range(3)]
        gate.open.set()
        assert [answer.result(10)["y"].shape for answer in answers] == [(3, 3)] * 3
    assert [len(batch) for batch in gate.batches] == [1, 3, 3, 3]


@pytest.mark.parametrize(("count", "rows_of_batch"), [(1, 2), (2, 2), (3, 5), (5, 5), (6, 6)])
def test_batches_are_padded_to_the_sizes_that_there_are(gate: Gate, count: int, rows_of_batch: int) -> None:
    gate.open.set()
    with Batcher(gate, DOUBLED, Limits(max_batch=8, batch_sizes=(2, 5)), batch=True) as batcher:
        answer = batcher.submit(rows(4, count))
        np.testing.assert_array_equal(answer.result()["y"], np.full((count, 3), 8, np.float32))
    assert [len(batch) for batch in gate.batches] == [rows_of_batch]


def test_sizes_of_batches_are_possible_ones() -> None:
    with pytest.raises(InvalidInputError, match=r"batch_sizes has 9; expected numbers from 1 to max_batch, which is 8"):
        Limits(max_batch=8, batch_sizes=(1, 9))


def test_answers_of_a_batch_are_told_together(gate: Gate) -> None:
    told: list[list[tuple[object, object]]] = []

    def answered(answers: Sequence[Answer]) -> None:
        told.append([(answer.tag, answer.exception() or answer.result()["y"][0, 0]) for answer in answers])

    with Batcher(gate, DOUBLED, Limits(max_batch=8), batch=True, answered=answered) as batcher:
        batcher.submit(rows(0))
        assert gate.entered.wait(10)
        batcher.submit_all([rows(1), rows(2)], tags=["a", "b"])
        gate.open.set()
    assert told == [[(None, 0)], [("a", 2), ("b", 4)]]
    with Batcher(gate, DOUBLED, Limits(max_batch=8), batch=True, answered=answered) as batcher:
        batcher.submit_all([rows(13), rows(3)], tags=["refused", "right"])
    outcomes = [one for batch in told[2:] for one in batch]
    assert [tag for tag, _ in outcomes] == ["refused", "right"]
    assert isinstance(outcomes[0][1], InvalidInputError)
    assert outcomes[1][1] == 6


def test_requests_of_different_shapes_are_not_joined(gate: Gate) -> None:
    wide = Signature(
        "wide", (TensorDescription("x", "float32", ("n", "w")),), (TensorDescription("y", "float32", ("n", "w")),)
    )
    with Batcher(gate, wide, batch=True) as batcher:
        batcher.submit({"x": np.zeros((1, 1), np.float32)})
        assert gate.entered.wait(10)
        shapes = [(1, 3), (1, 5), (2, 3)]
        answers = [batcher.submit({"x": np.ones(shape, np.float32)}) for shape in shapes]
        gate.open.set()
        assert [answer.result(10)["y"].shape for answer in answers] == shapes
    assert [batch.shape for batch in gate.batches] == [(1, 1), (3, 3), (1, 5)]


def test_a_full_queue_refuses_at_once(gate: Gate) -> None:
    with held(gate, Limits(max_queue=2)) as batcher:
        kept = [batcher.submit(rows(1)) for _ in range(2)]
        begun = time.monotonic()
        with pytest.raises(OverloadError, match="2 requests with 24 bytes wait; expected fewer than 2"):
            batcher.submit(rows(1))
        assert time.monotonic() - begun < 0.5
        gate.open.set()
        assert all((answer.result(10)["y"] == 2).all() for answer in kept)
    assert batcher.use.requests == {"ok": 3, "refused": 1}


def test_no_more_are_admitted_than_may_wait_and_run(gate: Gate) -> None:
    with held(gate, Limits(max_queue=2, max_batch=1)) as batcher, ExitStack() as admitted:
        for _ in range(3):
            admitted.enter_context(batcher.admitted())
        with pytest.raises(OverloadError, match="3 requests are being answered; expected fewer than 3"):
            admitted.enter_context(batcher.admitted())
        admitted.close()
        admitted.enter_context(batcher.admitted())
        gate.open.set()
    assert batcher.use.requests["refused"] == 1


def test_brief_runs_are_the_event_loop_s_own() -> None:
    """After a row of brief runs a coroutine's batch is run by its own thread, with what was submitted beside it."""
    threads: list[int] = []
    batches: list[int] = []
    seconds = 0.0

    def run(feeds: Mapping[str, Array], timeout: float | None) -> dict[str, Array]:
        threads.append(threading.get_ident())
        batches.append(len(feeds["x"]))
        time.sleep(seconds)
        return {"y": feeds["x"] * 2}

    async def ask(batcher: Batcher, count: int) -> None:
        found = await asyncio.gather(*(batcher.run_async(rows(one)) for one in range(count)))
        assert all((answer["y"] == 2 * one).all() for one, answer in enumerate(found))

    with Batcher(run, DOUBLED, Limits(max_batch=8), batch=True, may_run_in_loop=True) as batcher:
        asyncio.run(ask(batcher, 1))
        assert threads[-1] != threading.get_ident()
        while threads[-1] != threading.get_ident():
            asyncio.run(ask(batcher, 1))
        assert len(threads) > 32
        batches.clear()
        asyncio.run(ask(batcher, 20))
        assert sum(batches) == 20
        assert max(batches) == 8
        seconds = 0.003
        asyncio.run(ask(batcher, 1))
        asyncio.run(ask(batcher, 1))
        assert threads[-1] != threading.get_ident()


def test_runs_that_may_have_to_wait_are_never_the_event_loop_s() -> None:
    """As those of replicas, of which one that has ended is started anew while a request waits for it."""
    threads: set[int] = set()

    def run(feeds: Mapping[str, Array], timeout: float | None) -> dict[str, Array]:
        threads.add(threading.get_ident())
        return {"y": feeds["x"] * 2}

    async def ask(batcher: Batcher) -> None:
        for one in range(80):
            assert (await batcher.run_async(rows(one)))["y"][0, 0] == 2 * one

    with Batcher(run, DOUBLED, Limits(max_batch=8), batch=True) as batcher:
        asyncio.run(ask(batcher))
    assert threading.get_ident() not in threads


def test_a_queue_is_full_of_bytes_too(gate: Gate) -> None:
    with held(gate, Limits(max_batch=1 << 20, max_queue_mb=1)) as batcher:
        batcher.submit(rows(1, 60_000))
        with pytest.raises(OverloadError, match="1 requests with 720000 bytes wait"):
            batcher.submit(rows(1, 60_000))
        gate.open.set()


def test_who_is_late_is_not_run(gate: Gate) -> None:
    with held(gate, Limits()) as batcher:
        late, patient = batcher.submit(rows(1), timeout=0.02), batcher.submit(rows(2), timeout=60)
        time.sleep(0.03)
        gate.open.set()
        with pytest.raises(DeadlineError, match=r"timeout of 0.02 s has passed while it waited"):
            late.result(10)
        assert (patient.result(10)["y"] == 4).all()
    assert [len(batch) for batch in gate.batches] == [1, 1]


def test_a_cancelled_request_is_left_out(gate: Gate) -> None:
    with held(gate, Limits()) as batcher:
        answers = [batcher.submit(rows(value)) for value in (1, 2)]
        assert answers[0].cancel()
        gate.open.set()
        assert (answers[1].result(10)["y"] == 4).all()
    assert gate.batches[1].tolist() == [[2, 2, 2]]


def test_one_that_fails_does_not_spoil_the_others(gate: Gate) -> None:
    with held(gate, Limits()) as batcher:
        answers = {value: batcher.submit(rows(value)) for value in (12, 13, 14)}
        gate.open.set()
        assert (answers[12].result(10)["y"] == 24).all()
        assert (answers[14].result(10)["y"] == 28).all()
        with pytest.raises(InvalidInputError, match="13 is refused"):
            answers[13].result(10)
    assert [len(batch) for batch in gate.batches] == [1, 3, 1, 1, 1]


def test_a_delay_fills_a_batch_and_a_full_one_does_not_wait(gate: Gate) -> None:
    gate.open.set()
    with Batcher(gate, DOUBLED, Limits(max_batch=2, delay_ms=5_000), batch=True) as batcher:
        begun = time.monotonic()
        answers = [batcher.submit(rows(1)) for _ in range(2)]
        assert all((answer.result(10)["y"] == 2).all() for answer in answers)
        assert time.monotonic() - begun < 4
    assert [len(batch) for batch in gate.batches] == [2]


def test_a_closed_batcher_answers_what_waits_and_takes_no_more(gate: Gate) -> None:
    batcher = held(gate, Limits())
    answer = batcher.submit(rows(1))
    closing = threading.Thread(target=batcher.close)
    closing.start()
    gate.open.set()
    closing.join(10)
    assert (answer.result(0)["y"] == 2).all()
    with pytest.raises(UnavailableError, match="takes no more requests"):
        batcher.submit(rows(1))


def test_closing_without_draining_says_so_to_who_waits(gate: Gate) -> None:
    batcher = held(gate, Limits())
    answer = batcher.submit(rows(1))
    closing = threading.Thread(target=lambda: batcher.close(drain=False))
    closing.start()
    with pytest.raises(UnavailableError, match="was not run"):
        answer.result(10)
    gate.open.set()
    closing.join(10)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "input 'x' is missing; expected x"),
        ({"x": np.zeros((1, 3), np.float32), "z": np.zeros(1)}, "there is no input 'z'; expected x"),
        ({"x": np.zeros((1, 3))}, "input 'x' is float64; expected float32"),
        ({"x": np.zeros(3, np.float32)}, r"input 'x' has shape \[3\]; expected 2 dimensions: \[n, 3\]"),
        ({"x": np.zeros((1, 4), np.float32)}, r"axis 1 of input 'x' is 4; expected 3: \[n, 3\]"),
        ({"x": np.zeros((9, 3), np.float32)}, r"axis 0 of input 'x' is 9; expected 1 to 8 \(n\)"),
        ({"x": np.zeros((0, 3), np.float32)}, r"axis 0 of input 'x' is 0; expected 1 to 8 \(n\)"),
    ],
)
def test_wrong_inputs_name_the_tensor_and_what_was_expected(gate: Gate, feeds: dict[str, Array], message: str) -> None:
    with (
        Batcher(gate, DOUBLED, Limits(max_batch=8), batch=True) as batcher,
        pytest.raises(InvalidInputError, match=message),
    ):
        batcher.submit(feeds)
    assert batcher.use.requests == {"invalid": 1}


def test_dimensions_of_one_name_are_equal_and_limited(gate: Gate) -> None:
    pair = Signature(
        "pair",
        (TensorDescription("a", "int64", ("n", "t")), TensorDescription("b", "int64", ("n", "t"))),
        (TensorDescription("y", "int64", ("n", "t")),),
    )
    with Batcher(gate, pair, Limits(lengths={"t": 16}), batch=True) as batcher:
        two = np.zeros((1, 2), np.int64)
        with pytest.raises(InvalidInputError, match=r"axis 1 of input 'b' is 3; expected 2, as axis 1 of input 'a' is"):
            batcher.submit({"a": two, "b": np.zeros((1, 3), np.int64)})
        with pytest.raises(InvalidInputError, match=r"axis 1 of input 'a' is 17; expected 0 to 16 \(t\)"):
            batcher.submit({"a": np.zeros((1, 17), np.int64), "b": two})


def test_profiles_limit_batches_and_pad_small_ones(gate: Gate) -> None:
    gate.open.set()
    profiled = Signature("profiled", DOUBLED.inputs, DOUBLED.outputs, ({"x": ShapeRange((2, 3), (4, 3), (6, 3))},))
    with Batcher(gate, profiled, Limits(max_batch=32), batch=True) as batcher:
        answer = batcher.run(rows(5))
        assert answer["y"].tolist() == [[10, 10, 10]]
        with pytest.raises(InvalidInputError, match="axis 0 of input 'x' is 7; expected 1 to 6"):
            batcher.submit(rows(1, 7))
    assert [batch.shape for batch in gate.batches] == [(2, 3)]


@pytest.mark.parametrize(
    ("inputs", "outputs", "symbol"),
    [
        ([("n", 3)], [("n", 2)], "n"),
        ([("n", 3), ("n",)], [("n", "m")], "n"),
        ([("n", 3), ("m", 3)], [("n", 2)], None),
        ([(1, 3)], [(1, 2)], None),
        ([("n", 3)], [("2*n", 2)], None),
        ([("n", "n")], [("n", 2)], None),
        ([("n", 3)], [()], None),
    ],
)
def test_which_signatures_have_a_batch(
    inputs: list[tuple[int | str, ...]], outputs: list[tuple[int | str, ...]], symbol: str | None
) -> None:
    one = Signature(
        "net",
        tuple(TensorDescription(f"x{i}", "float32", shape) for i, shape in enumerate(inputs)),
        tuple(TensorDescription(f"y{i}", "float32", shape) for i, shape in enumerate(outputs)),
    )
    assert one.batch_symbol == symbol
    assert signature_from_record(one.to_record()) == one


def test_rows_that_see_each_other_are_never_joined() -> None:
    def centred(feeds: Mapping[str, Array], _: float | None) -> dict[str, Array]:
        return {"y": feeds["x"] - feeds["x"].mean(0)}

    def apart(feeds: Mapping[str, Array], _: float | None) -> dict[str, Array]:
        return {"y": feeds["x"] * 2}

    with Batcher(centred, DOUBLED) as one, Batcher(apart, DOUBLED) as other:
        assert (one.joins, other.joins) == (False, True)
        assert one.run({"x": np.eye(3, dtype=np.float32)})["y"].shape == (3, 3)


def test_an_engine_under_many_callers(dense: Engine) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (200, 8)).astype(np.float32)
    expected = dense.run({"x": x})["y"]

    async def ask(batcher: Batcher) -> list[dict[str, Array]]:
        return await asyncio.gather(*(batcher.run_async({"x": x[i : i + 1]}) for i in range(200)))

    with engine_batcher(dense) as batcher:
        assert batcher.joins
        answers = asyncio.run(ask(batcher))
        use = batcher.use
    assert np.allclose(np.concatenate([answer["y"] for answer in answers]), expected, atol=1e-6)
    assert use.requests == {"ok": 200}
    assert max(use.batches) <= 32
    assert use.mean_rows > 1


def test_an_engine_with_state_is_refused() -> None:
    nodes = [helper.make_node("Add", ["h0", "x"], ["h1"]), helper.make_node("Neg", ["h1"], ["y"])]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in ("h0", "x")]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "h1")]
    model = helper.make_model(
        helper.make_graph(nodes, "cell", given, made), opset_imports=[helper.make_opsetid("", 17)]
    )
    engine = mlirt.compile(model, "cpu", state={"h0": "h1"}, threads=1)
    assert isinstance(engine, Engine)
    with pytest.raises(InvalidInputError, match="keeps h0 from run to run"):
        engine_batcher(engine)
