"""Results of torch.compile that share memory with arguments and each other, and weights that graphs write to."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from mlirt.builder.from_torch import graph_engines  # noqa: E402
from mlirt.builder.from_torch.dynamo_backend import mlirt_backend  # noqa: E402

nn: Any = torch.nn
OPTIONS = {"target": "reference", "min_nodes": 1}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "views of the argument": lambda x: (x.view(-1), x[1:], x.t(), (x * 2 + 1).relu()),
    "nothing but a view": lambda x: x[:, 1],
    "views of an argument that is written to": lambda x: (x.mul_(2)[1:], x.sum(), x.view(-1, 2)),
    "a result and its views": lambda x: _views((x * 2 + 1).relu()),
    "views alone": lambda x: _views((x * 2 + 1).relu())[1:],
    "parts": lambda x: [*(x * 2 + 1).chunk(2, 1), *x.split(2)],
    "a view of what is written to later": lambda x: _written((x * 2 + 1).relu()),
    "a transposed result": lambda x: (x.sin() + 1).t(),
    "an expanded result": lambda x: (x.sum(0) + 1).expand(3, 4, 6),
    "sizes in views": lambda x: (x.view(x.shape[0] * 2, -1), x.sum() * x.shape[0]),
}


def _views(y: Any) -> Any:
    return y, y[1:], y.t(), y.view(-1)


def _written(y: Any) -> Any:
    row = y[0]
    y.add_(1)
    return y, row


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend=mlirt_backend, options=OPTIONS, **options)


def flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.parametrize("dynamic", [False, True])
def test_memory_is_shared_as_in_pytorch(name: str, dynamic: bool) -> None:
    run = compiled(FUNCTIONS[name], dynamic=dynamic)
    for rows in (4, 6) if dynamic else (4,):
        x = torch.randn(rows, 6)
        ours, theirs = [x.clone()], [x.clone()]
        with torch.no_grad():
            ours += flat(run(ours[0]))
            theirs += flat(FUNCTIONS[name](theirs[0]))
        for k in range(len(ours)):
            assert [one.shape for one in ours] == [one.shape for one in theirs]
            for one, other in zip(ours, theirs, strict=True):
                assert torch.allclose(one, other, atol=1e-5)
            assert ours[k].stride() == theirs[k].stride()
            if 0 not in ours[k].stride():  # elements that are one in memory cannot be written to one by one
                ours[k].mul_(3)
                theirs[k].mul_(3)


def test_a_transposed_result_is_read_by_strides_behind_a_break() -> None:
    def function(x: Any) -> Any:
        y = (x * 2 + 1).t()
        torch._dynamo.graph_break()
        return y.as_strided((2, 3), (1, 2)) + 1

    x = torch.randn(4, 6)
    assert torch.allclose(compiled(function)(x), function(x), atol=1e-5)


class Cache(nn.Module):
    """Writes into buffers in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(1, 8, 6))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any, place: Any) -> Any:
        self.rows[:, place] = x
        self.count += 1
        return (self.rows.sum(1) + x).relu() * self.count


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The engines that have been made."""
    made: list[Any] = []
    first = graph_engines.PartEngine.__init__

    def noted(engine: Any, *args: Any) -> None:
        first(engine, *args)
        made.append(engine)

    monkeypatch.setattr(graph_engines.PartEngine, "__init__", noted)
    return made


def test_buffers_that_a_graph_writes_to_are_inputs(engines: list[Any]) -> None:
    module = Cache()
    other = copy.deepcopy(module)
    run = compiled(other)
    counts: list[int] = []
    with torch.no_grad():
        for k in range(4):
            x, place = torch.randn(1, 6), torch.tensor([k])
            assert torch.allclose(run(x, place), module(x, place), atol=1e-5)
            assert torch.allclose(other.rows, module.rows)
            assert other.count == module.count
            counts.append(len(engines))
    assert len(set(counts)) == 1


def test_statistics_of_training_are_written_once() -> None:
    module = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU()).train()
    other = copy.deepcopy(module)
    run = compiled(other)
    with torch.no_grad():
        for k in range(6):
            if k == 3:
                module.eval()
                other.eval()
            x = torch.randn(4, 6) + k
            assert torch.allclose(run(x), module(x), atol=1e-5)
            for one, two in zip(other.buffers(), module.buffers(), strict=True):
                assert torch.allclose(one, two, atol=1e-5)


def test_a_buffer_that_is_written_to_between_calls_becomes_an_input(engines: list[Any]) -> None:
    module = nn.BatchNorm1d(6).eval()
    run = compiled(module)
    counts: list[int] = []
    with torch.no_grad():
        for _ in range(5):
            x = torch.randn(4, 6)
            assert torch.allclose(run(x), module(x), atol=1e-5)
            counts.append(len(engines))
            module.running_mean.add_(1)
    assert counts[2] == counts[4]


def test_weights_with_other_data_are_followed() -> None:
    module = nn.Linear(6, 3)
    run = compiled(module)
    x = torch.randn(4, 6)
    with torch.no_grad():
        run(x)
        module.weight.data = torch.ones(3, 6)
        assert torch.allclose(run(x), module(x), atol=1e-5)


def test_no_gradients_are_needed_where_the_graph_says_so() -> None:
    module = nn.Linear(6, 3)

    def function(x: Any) -> Any:
        with torch.no_grad():
            y = module(x)
        return y + 1

    x = torch.randn(4, 6)
    assert torch.is_grad_enabled()
    assert torch.allclose(compiled(function)(x), function(x), atol=1e-5)


@pytest.mark.parametrize("sign", [1, -1])
def test_branches_stay_with_pytorch(sign: int) -> None:
    def function(x: Any) -> Any:
        y = (x * 2 + 1).relu()
        return torch.cond(x.sum() > 0, lambda y: y * 2 + 1, lambda y: y - 1, (y,)).sum()

    x = torch.ones(4, 6) * sign
    assert torch.allclose(compiled(function)(x), function(x))


def test_numbers_that_follow_from_lengths() -> None:
    def function(x: Any) -> Any:
        n = x.shape[0]
        return torch.full((n,), float(n)), x * (n / 2) + 1, x / n**0.5, x.sum() * (1.5 * n + 1)

    run = compiled(function, dynamic=True)
    for rows in (4, 7, 9):
        x = torch.randn(rows, 3)
        for one, two in zip(run(x), function(x), strict=True):
            assert torch.allclose(one, two, atol=1e-5)
