"""A build keeps of its weights what somebody still needs: no more than one large array is there in two forms."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_writer import GraphWriter, floats

import mlirt
from mlirt.aligned_memory import AlignedMemory
from mlirt.dialects.weights import WeightStore
from mlirt.runtime.engine import Engine

_SIZE, _PRODUCTS = 544, 6  # matrices of 1.1 MiB: smaller arrays stay


def _network() -> Any:
    """Products with matrices that are multiplied by vectors first, which the importer does."""
    writer, value = GraphWriter(0), "x"
    for number in range(_PRODUCTS):
        matrix = writer.normal(f"matrix_{number}", (_SIZE, _SIZE), 0.04)
        scale = writer.uniform(f"scale_{number}", (_SIZE,), 0.9, 1.1)
        value = writer.node("MatMul", [value, writer.node("Mul", [matrix, scale])])
    return writer.model("scaled", [floats("x", 2, _SIZE)], [floats(value, 2, _SIZE)])


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_folded_weights_are_gone_once_they_are_packed(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_PLAN_CACHE_MB", "0")
    folded: list[weakref.ref[Any]] = []
    alive: list[int] = []
    put, copy_of = WeightStore.put, AlignedMemory.copy_of

    def watched(store: WeightStore, array: Any, hint: str = "weights", source: Any = None) -> Any:
        if array.shape == (_SIZE, _SIZE):
            folded.append(weakref.ref(array))
        return put(store, array, hint, source)

    def copied(memory: AlignedMemory, array: Any) -> Any:
        if array.nbytes >= _SIZE * _SIZE * 4:
            alive.append(sum(one() is not None for one in folded))
        return copy_of(memory, array)

    monkeypatch.setattr(WeightStore, "put", watched)
    monkeypatch.setattr(AlignedMemory, "copy_of", copied)
    engine = mlirt.compile(_network(), target=target)
    assert isinstance(engine, Engine)
    assert len(folded) >= _PRODUCTS
    assert target == "cuda" or len(alive) == _PRODUCTS  # some may lie where kernels for a GPU read them
    # Of the six one goes after the other as they are packed, or copied to where kernels read them.
    assert all(count <= _PRODUCTS - k for k, count in enumerate(alive))
    in_plan = {id(array) for array in engine.plan.weights.values()}
    assert not [one for one in folded if (array := one()) is not None and id(array) not in in_plan]


def _store(*values: float) -> tuple[WeightStore, list[Any]]:
    store = WeightStore()
    return store, [store.put(np.full((1 << 18,), value, np.float32), "w") for value in values]


def test_what_is_there_at_first_stays_unless_everything_is_meant() -> None:
    store, (old,) = _store(1.0)
    with store.freeing():
        new = store.put(np.full((1 << 18,), 2.0, np.float32), "w")
        store.let_go(["w", "w.1"])
        assert list(store.keys()) == ["w"]
        assert store.get(old)[0] == 1
    store.let_go(["w"])
    assert list(store.keys()) == ["w"]
    with store.freeing(everything=True):
        store.let_go(["w"])
    assert not store.keys()
    assert new.key.data == "w.1"


def test_a_key_is_never_another_arrays() -> None:
    """So plans have the same names for weights, whatever was let go of."""
    store, (first, second) = _store(1.0, 2.0)
    with store.freeing(everything=True):
        store.let_go(["w", "w.1"])
        assert store.put(np.full((1 << 18,), 3.0, np.float32), "w.1").key.data == "w.1.1"
        assert store.put(np.full((1 << 18,), 2.0, np.float32), "other") == second
        assert store.get(second)[0] == 2
        assert dict(store.digests()).keys() == {"w.1", "w.1.1"}
    assert first.key.data not in store.keys()


def test_small_arrays_stay() -> None:
    store = WeightStore()
    with store.freeing(everything=True):
        attr = store.put(np.ones(1000, np.float32), "w")
        store.keep_only([])
        assert store.get(attr).size == 1000


def test_a_pass_that_fails_when_weights_are_gone_is_still_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLIRT_PLAN_CACHE_MB", "0")
    from mlirt.passes.memory import plan_memory

    def fails(*_: object) -> None:
        raise ValueError("broken on purpose")

    monkeypatch.setattr(plan_memory.PlanMemoryPass, "apply", fails)
    with pytest.raises(mlirt.CompileError, match="plan-memory: ValueError: broken on purpose; its large weights are"):
        mlirt.compile(_network(), target="cpu")
