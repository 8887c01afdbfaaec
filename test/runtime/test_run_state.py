"""State of contexts: on the CPU, and on a GPU by a driver that keeps its memory on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, cuda_plan

from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.device_run import run_on_device
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import Plan, make_plan, plan_bytes, read_plan

Maker = Callable[[], Any]
X = np.random.default_rng(0).standard_normal((3, 4), np.float32)


def with_state(plan: Plan, state: list[dict[str, Any]]) -> Plan:
    return make_plan({**plan.manifest_json, "state": state}, plan.sections, plan.weights)


def next_of(x: Any) -> Any:
    """What the tiny network makes of its input, which is its next one."""
    return np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(x.shape)


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture(params=["cpu", "cuda"])
def context(request: pytest.FixtureRequest, tiny: Maker, driver: FakeDriver) -> ExecutionContext:
    """Of the tiny plan, whose input is its output of the run before."""
    pairs = [{"input": 0, "output": 0}]
    if request.param == "cuda":
        plan = with_state(cuda_plan(tiny), pairs)
        return ExecutionContext(plan.manifest, CudaDevice(plan, driver).session())
    parts = tiny()
    parts.manifest["state"] = pairs
    return Engine(make_plan(parts.manifest, parts.sections, parts.weights)).context


def test_output_is_the_next_input(context: ExecutionContext) -> None:
    context.state["x"] = X
    expected = X
    for _ in range(4):
        found = context.run({})
        assert list(found) == ["z"]
        expected = next_of(expected)
        np.testing.assert_allclose(context.state["x"], expected, rtol=1e-5)


def test_sequences_are_apart_and_begin_anew(context: ExecutionContext) -> None:
    context.state["x"] = X
    context.state_of("other")["x"] = 2 * X[:2]
    for _ in range(2):
        context.run({})
        context.run({}, sequence="other")
    np.testing.assert_allclose(context.state["x"], next_of(next_of(X)), rtol=1e-5)
    np.testing.assert_allclose(context.state_of("other")["x"], next_of(next_of(2 * X[:2])), rtol=1e-5)
    assert context.sequences == ("", "other")
    context.reset_state("other")
    assert context.sequences == ("",)
    context.reset_state()
    assert context.sequences == ()
    with pytest.raises(InvalidInputError, match="state 'x' has no value yet: its shape follows from the first run"):
        _ = context.state["x"]
    context.run({})  # no other input tells how long it is: it begins with nothing
    assert context.state["x"].shape == (0, 4)


def test_value_for_one_run(context: ExecutionContext) -> None:
    """A value among the feeds is read, and what the run makes of it stays."""
    context.state["x"] = X
    context.run({"x": 3 * X})
    np.testing.assert_allclose(context.state["x"], next_of(3 * X), rtol=1e-5)


def test_values_are_copies(context: ExecutionContext) -> None:
    given = X.copy()
    context.state["x"] = given
    given[:] = 0
    taken = context.state["x"]
    taken[:] = 7
    np.testing.assert_array_equal(context.state["x"], X)
    context.run({})
    kept = context.state["x"]
    context.run({})
    np.testing.assert_allclose(kept, next_of(X), rtol=1e-5)


def test_measured_runs_go_on(context: ExecutionContext) -> None:
    context.state["x"] = X
    found, _ = context.run_timed({})
    assert list(found) == ["z"]
    np.testing.assert_allclose(context.state["x"], next_of(X), rtol=1e-5)
    assert len(context.profile({})) == 3
    np.testing.assert_allclose(context.state["x"], next_of(X), rtol=1e-5)


MISTAKES: list[tuple[Callable[[ExecutionContext], object], str]] = [
    (lambda c: c.state.__setitem__("x", X[0]), r"state 'x': expected float32\['n', '4'\], got float32\[4\]"),
    (lambda c: c.state.__setitem__("x", X.astype(np.float64)), "got float64"),
    (lambda c: c.state.__setitem__("q", X), "the engine has no state 'q'; its states are 'x'"),
    (lambda c: c.state.__delitem__("x"), "cannot be deleted; reset_state"),
    (lambda c: c.run({}, {"y": X}), "output 'y' is a state, which stays in the engine"),
    (lambda c: c.run({"x": X[:, :3]}), "expected shape"),
    (lambda c: c.run({"w": X}), "no input 'w'"),
    (lambda c: c.bind({}), "bind is for engines without state"),
]


@pytest.mark.parametrize(("act", "why"), MISTAKES)
def test_what_does_not_fit(context: ExecutionContext, act: Callable[[Any], object], why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        act(context)


def test_state_stays_on_the_gpu(tiny: Maker, driver: FakeDriver) -> None:
    """After the first run nothing of it is copied to or from the host, and its memory is used again."""
    plan = with_state(cuda_plan(tiny), [{"input": 0, "output": 0}])
    context = ExecutionContext(plan.manifest, CudaDevice(plan, driver).session())
    context.state["x"] = X
    context.run({})
    copies: dict[str, list[int]] = {"to_device": [], "to_host": [], "on_device": []}
    for kind, sizes in copies.items():
        original = getattr(driver, "copy_" + kind)

        def counted(a: int, b: int, size: int, stream: int, original: Any = original, sizes: Any = sizes) -> None:
            sizes.append(size)
            original(a, b, size, stream)

        setattr(driver, "copy_" + kind, counted)
    for _ in range(3):
        context.run({})
    assert copies == {"to_device": [], "to_host": [32] * 3, "on_device": [48] * 6}  # z alone goes to the host
    np.testing.assert_allclose(context.state["x"], next_of(next_of(next_of(next_of(X)))), rtol=1e-5)
    with pytest.raises(InvalidInputError, match=r"an engine with state \(x\) takes arrays on the host"):
        run_on_device(context, plan.manifest, {}, {}, 0)


def test_two_arrays_take_turns_on_the_cpu(tiny: Maker) -> None:
    """What a run writes is what the next one reads: no array is made once there are two."""
    parts = tiny()
    parts.manifest["state"] = [{"input": 0, "output": 0}]
    context = Engine(make_plan(parts.manifest, parts.sections, parts.weights)).context
    context.state["x"] = np.ones((4096, 4), np.float32)  # larger than what is copied as it is small
    addresses: list[int] = []
    for _ in range(6):
        context.run({})
        kept = context._state.value("x", "")  # pyright: ignore[reportPrivateUsage, reportOptionalMemberAccess]
        addresses.append(kept.ctypes.data)
    assert addresses[2] == addresses[4] != addresses[3] == addresses[5]


def test_failed_run_leaves_the_state(context: ExecutionContext) -> None:
    context.state["x"] = X
    context.run({})
    for given in ({"z": np.zeros(3, np.float32)}, {"q": X}):
        with pytest.raises(InvalidInputError, match=r"output '[zq]'"):
            context.run({}, given)
        np.testing.assert_allclose(context.state["x"], next_of(X), rtol=1e-5)
    z = np.zeros(8, np.float32)
    assert context.run({}, {"z": z})["z"] is z
    np.testing.assert_allclose(context.state["x"], next_of(next_of(X)), rtol=1e-5)


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ([{"input": 1, "output": 0}], r"state\[0\].input"),
        ([{"input": 0, "output": 1}], "'x' has 2 dimensions, but 'z' has 1"),
        ([{"input": 0, "output": 0}] * 2, "an input or an output is in two pairs"),
        ([{"input": 0, "output": 0, "initial": "nowhere"}], "there is no section 'nowhere'"),
        ([{"input": 0}], "output"),
        ([3], "state"),
    ],
)
def test_damaged_plan(tiny: Maker, state: list[Any], fault: str) -> None:
    parts = tiny()
    parts.manifest["state"] = state
    with pytest.raises(PlanError, match=fault):
        make_plan(parts.manifest, parts.sections, parts.weights)


def test_plan_file_has_it(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["state"] = [{"input": 0, "output": 0}]
    engine = Engine(read_plan(plan_bytes(parts.manifest, parts.sections, parts.weights)))
    assert (engine.inputs, [str(one) for one in engine.outputs]) == ((), ["z float32[8]"])
    assert [(str(one), output) for one, output in engine.states] == [("x float32[n, 4]", "y")]
    engine.state["x"] = X
    engine.run({})
    np.testing.assert_allclose(engine.state["x"], next_of(X), rtol=1e-5)
    engine.reset_state()
    plain = engine.create_execution_context(keeps_state=False)
    np.testing.assert_allclose(plain.run({"x": X})["y"], next_of(X), rtol=1e-5)
    assert dict(plain.state) == {}
