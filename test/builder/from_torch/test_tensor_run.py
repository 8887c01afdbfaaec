"""Tensors of PyTorch as inputs and outputs of engines: twenty exchanges, none of which copies."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import mlirt  # noqa: E402
from mlirt.builder.from_torch import module_engine  # noqa: E402
from mlirt.builder.from_torch.tensor_run import run_tensors  # noqa: E402
from mlirt.errors import InvalidInputError  # noqa: E402
from mlirt.runtime.lent_arrays import address_in_place  # noqa: E402
from mlirt.runtime.tensor_exchange import host_array  # noqa: E402

KINDS = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 bool".split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("transposed", [False, True])
def test_exchange_copies_nothing(kind: str, transposed: bool) -> None:
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, kind))
    tensor = tensor.T if transposed else tensor
    array = host_array("input 'x'", tensor)
    assert array.ctypes.data == tensor.data_ptr()
    assert array.dtype.name == kind
    assert array.tolist() == tensor.tolist()


@pytest.fixture(scope="module")
def engine() -> Any:
    made: Any = mlirt.compile(torch.nn.Linear(4, 3), (torch.randn(2, 4),), target="cpu")
    return made.engine


def test_inputs_and_outputs_are_tensors(engine: Any) -> None:
    x, y = torch.randn(2, 4), torch.empty(2, 3)
    found = engine.run({"input": x}, {"output": y})
    np.testing.assert_array_equal(y.numpy(), engine.run({"input": x.numpy()})["output"])
    assert found["output"] is y or found["output"].ctypes.data == y.data_ptr()
    assert torch.from_dlpack(run_tensors(engine, {"input": x})["output"]).equal(y)


def test_tensor_that_needs_gradients_is_named(engine: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"input 'input': .*grad"):
        engine.run({"input": torch.randn(2, 4, requires_grad=True)})


def test_wrong_type_is_named(engine: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"input 'input': expected data type float32, got bfloat16"):
        engine.run({"input": torch.zeros(2, 4, dtype=torch.bfloat16)})
    with pytest.raises(InvalidInputError, match=r"output 'output': expected an array of float32"):
        engine.run({"input": torch.zeros(2, 4)}, {"output": torch.zeros(2, 3, dtype=torch.float64)})


def test_tensor_on_another_device_is_named(engine: Any) -> None:
    with pytest.raises(InvalidInputError, match="input 'input'"):
        engine.run({"input": torch.zeros(2, 4, device="meta")})


def _others(x: Any) -> dict[str, Any]:
    class Own(torch.Tensor):
        pass

    return {
        "transposed": torch.randn(4, 2).T,
        "another shape": torch.randn(4, 2),
        "another type": x.double(),
        "gradients": torch.randn(2, 4, requires_grad=True),
        "negated": torch.view_as_complex(torch.randn(2, 4, 2)).conj().imag,
        "sparse": x.to_sparse(),
        "of a subclass": x.as_subclass(Own),
        "nowhere": x.to("meta"),
        "an array": x.numpy(),
    }


@pytest.mark.parametrize("kind", sorted(_others(torch.zeros(2, 4))))
def test_only_what_lies_as_an_array_does_is_read_in_place(kind: str) -> None:
    dtype, x = np.dtype("float32"), torch.randn(2, 4)
    assert address_in_place(x, dtype, (2, 4)) == x.data_ptr()
    assert address_in_place(_others(x)[kind], dtype, (2, 4)) is None


def test_nothing_is_not_read() -> None:
    assert address_in_place(torch.zeros(0, 4), np.dtype("float32"), (0, 4)) is None


@pytest.mark.parametrize("rows", [2, 500])
def test_tensors_and_arrays_by_turns(rows: int) -> None:
    """Small arrays are copied for the kernels, which read tensors where they lie."""
    module = torch.nn.Linear(4, 3)
    made: Any = mlirt.compile(module, (torch.randn(rows, 4),), target="cpu")
    for number in range(24):
        x = torch.randn(rows, 4)
        given = x.numpy() if number % 3 else x
        with torch.no_grad():
            found = made.engine.run({"input": given})["output"]
            np.testing.assert_allclose(found, module(x).numpy(), atol=1e-5)
        del given, x
        torch.randn(rows, 4)  # where the last one was


@pytest.mark.parametrize("rows", [2, 500])
def test_results_in_tensors_by_turns(rows: int) -> None:
    """Kernels write tensors where they lie, and nothing there in a later run."""

    class Two(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1.0, x * 2.0

    made: Any = mlirt.compile(Two(), (torch.randn(rows, 4),), target="cpu")
    engine = made.engine
    first, second = (one.name for one in engine.outputs)
    kept: list[tuple[Any, Any]] = []
    for number in range(24):
        x, y, z = torch.randn(rows, 4), torch.empty(rows, 4), torch.empty(rows, 4)
        given: dict[str, Any] = [{first: y, second: z}, {second: z}, {}, {first: y.numpy(), second: z}][number % 4]
        found = engine.run({"x": x if number % 8 < 6 else x.numpy()}, given)
        assert list(found) == [first, second]
        for name, one in given.items():
            assert found[name] is one
        results = [torch.as_tensor(found[name]) for name in (first, second)]
        kept += [(results[0], x + 1.0), (results[1], x * 2.0)]
    for result, expected in kept:
        assert result.equal(expected)


@pytest.mark.parametrize("rows", [2, 500])
def test_results_in_tensors_that_share_memory(rows: int) -> None:
    """The outputs are written when all inputs have been read; of two in one place the last counts."""

    class Sums(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.flip(0) + 1.0, x * 2.0

    made: Any = mlirt.compile(Sums(), (torch.randn(rows, 4),), target="cpu")
    engine = made.engine
    first, second = (one.name for one in engine.outputs)
    for _ in range(4):
        engine.run({"x": torch.randn(rows, 4)}, {first: torch.empty(rows, 4), second: torch.empty(rows, 4)})
        x, other = torch.randn(rows, 4), torch.empty(rows, 4)
        expected = x.flip(0) + 1.0, x * 2.0
        engine.run({"x": x}, {first: x, second: other})
        assert x.equal(expected[0])
        assert other.equal(expected[1])
        engine.run({"x": x}, {first: other, second: other})
        assert other.equal(x * 2.0)


def _the_long_way(engine: Any, feeds: Any) -> None:
    pytest.fail("a call is one run")


def test_calls_after_the_first_are_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    module = torch.nn.Linear(4, 3)
    made: Any = mlirt.compile(module, (torch.randn(2, 4),), target="cpu")
    with torch.no_grad():
        made(torch.randn(2, 4))
        monkeypatch.setattr(module_engine, "run_tensors", _the_long_way)
        x = torch.randn(2, 4)
        first = made(x)
        torch.testing.assert_close(first, module(x), atol=1e-5, rtol=0)
        kept = first.clone()
        made(torch.randn(2, 4))
        assert first.equal(kept)  # results are fresh


def test_the_long_way_is_left_for_the_rest() -> None:
    module = torch.nn.Linear(4, 3)
    made: Any = mlirt.compile(module, (torch.randn(2, 4),), target="cpu")
    x = torch.randn(2, 4)
    made(x)
    for given in (x.clone().requires_grad_(), torch.nn.Parameter(x), x.T.contiguous().T):
        with torch.no_grad():
            torch.testing.assert_close(made(given), module(x), atol=1e-5, rtol=0)
    with pytest.raises(InvalidInputError, match="no gradients"):
        made(x.clone().requires_grad_())
    with pytest.raises(InvalidInputError, match="expected data type float32, got float64"):
        made(x.double())
    with pytest.raises(InvalidInputError, match="shape"):
        made(torch.randn(3, 4))
    with pytest.raises(InvalidInputError, match="expected a tensor"):
        made(x.numpy())
