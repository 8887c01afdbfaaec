"""Weights that were built in are looked at in each call: which writes are seen, natively and by Python."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from mlirt.builder.from_torch import weight_watch  # noqa: E402
from mlirt.builder.from_torch.weight_watch import WeightWatch  # noqa: E402


def _weights() -> list[Any]:
    """Several types, sizes and orders in memory."""
    return [
        torch.nn.Parameter(torch.ones(3, 5)),
        torch.ones(7).half(),
        torch.ones(1),
        torch.ones(4, 6).t(),
        torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.ones(0, 3),
        torch.ones(2, 8)[:, ::2],
        torch.ones((), dtype=torch.int8),
    ]


@pytest.fixture(params=["native", "python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(weight_watch, "_function", lambda: None)
    elif weight_watch._function() is None:  # pyright: ignore[reportPrivateUsage]
        pytest.skip("this PyTorch does not tell native code where tensors lie")
    return request.param


@pytest.mark.usefixtures("way")
def test_nothing_has_changed() -> None:
    weights = _weights()
    watch = WeightWatch(weights)
    assert not watch.have_changed(weights)
    assert watch.written(weights) == []
    assert not WeightWatch([]).have_changed([])


def _written(weight: Any) -> None:
    with torch.no_grad():
        weight.add_(1)


def _moved(weight: Any) -> None:
    weight.data = weight.data + 1


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("change", [_written, _moved])
@pytest.mark.parametrize("number", range(len(_weights())))
def test_writes_and_moves_are_seen(change: Callable[[Any], None], number: int) -> None:
    weights = _weights()
    watch = WeightWatch(weights)
    change(weights[number])
    is_empty_move = change is _moved and not weights[number].numel()  # it has no address before and behind it
    assert watch.have_changed(weights) is not is_empty_move
    assert not WeightWatch(weights).have_changed(weights)


@pytest.mark.usefixtures("way")
def test_other_tensors_of_the_same_elements_are_others() -> None:
    weights = _weights()
    watch = WeightWatch(weights)
    assert watch.have_changed([*weights[:2], weights[2].view(1), *weights[3:]])


def test_tensors_of_inference_mode_have_no_version(way: str) -> None:
    with torch.inference_mode():
        weights = [torch.ones(4), torch.ones(4)]
        watch = WeightWatch(weights)
        assert not watch.have_changed(weights)
        weights[1].add_(1)
        assert watch.have_changed(weights) is (way == "native")


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4])
def test_updates_without_a_version_are_seen_in_the_hosts_memory(number: int) -> None:
    weights = _weights()
    watch = WeightWatch(weights)
    weights[number].data += 0.5
    assert watch.have_changed(weights)
    assert watch.written(weights) == [number]


def test_written_names_what_a_call_still_has() -> None:
    weights = _weights()
    watch = WeightWatch(weights)
    weights[1].mul_(2)
    other = weights[2].clone()
    assert watch.written([weights[0], weights[1], other, *weights[3:]]) == [1]
