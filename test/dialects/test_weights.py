"""Weights outside the IR: one entry per array, keys that stay, errors that say what is missing."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from counted_copies import counted_copies
from numpy.testing import assert_array_equal
from xdsl.dialects.builtin import StringAttr

from mlirt.aligned_memory import is_aligned
from mlirt.dialects.weights import WeightsAttr, WeightStore, digest_of
from mlirt.errors import InvalidModelError


def test_equal_arrays_share_an_entry() -> None:
    store = WeightStore()
    first = store.put(np.arange(6, dtype=np.float32), "conv1.weight")
    assert store.put(np.arange(6, dtype=np.float32), "other") == first
    assert [key for key, _ in store.items()] == ["conv1.weight"]
    assert_array_equal(store.get(first), np.arange(6))


def test_equal_hints_give_different_keys() -> None:
    store = WeightStore()
    attributes = [store.put(np.full(3, value, np.int64), "w") for value in range(3)]
    assert len({attribute.key.data for attribute in attributes}) == 3
    for value, attribute in enumerate(attributes):
        assert_array_equal(store.get(attribute), [value] * 3)


class CountedKeys(dict[str, object]):
    """A mapping that counts the questions whether it has a key."""

    questions = 0

    def __contains__(self, key: object) -> bool:
        self.questions += 1
        return super().__contains__(key)


def test_many_arrays_of_one_hint_are_stored_in_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    store, keys = WeightStore(), CountedKeys()
    monkeypatch.setattr(store, "_arrays", keys)
    for value in range(500):
        store.put(np.array(value), "w")
    assert keys.questions == 500
    assert list(keys)[:3] == ["w", "w.1", "w.2"]


@pytest.mark.parametrize(
    "other",
    [np.zeros((2, 3), np.int32), np.zeros((3, 2), np.float32), np.zeros(6, np.float32), -np.zeros((2, 3), np.float32)],
    ids=["type", "shape", "rank", "sign_of_zero"],
)
def test_digest_sees_type_shape_and_bits(other: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
    assert digest_of(np.zeros((2, 3), np.float32)) != digest_of(other)


def test_digest_does_not_depend_on_the_layout() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert digest_of(array) == digest_of(np.asfortranarray(array))
    assert digest_of(np.broadcast_to(np.float32(1), (2, 3))) == digest_of(np.ones((2, 3), np.float32))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)], ids=str)
def test_digest_of_scalars_and_nothing(shape: tuple[int, ...]) -> None:
    assert len(digest_of(np.zeros(shape))) == 16


def test_missing_weights_are_named() -> None:
    with pytest.raises(InvalidModelError, match="weights 'w' are not loaded: give the weights file beside the IR"):
        WeightStore().get(WeightsAttr(StringAttr("w"), StringAttr("0")))


def test_a_key_is_given_once() -> None:
    store = WeightStore()
    store.add("w", np.zeros(2))
    with pytest.raises(InvalidModelError, match="weights 'w' are given twice"):
        store.add("w", np.ones(2))


def test_what_is_widened_is_not_kept() -> None:
    store, narrow = WeightStore(), np.arange(40_000).astype(np.float16)
    attr = store.put(narrow.astype(np.float32), "w", narrow)
    first = store.get(attr)
    assert store.get(attr) is first
    latest = weakref.ref(first)
    del first
    assert latest() is None
    assert_array_equal(store.get(attr), narrow)
    assert store.get(attr).dtype == np.float32
    assert store.are_halves(attr)
    assert store.halves(attr) is narrow


@pytest.mark.parametrize(("size", "step", "are"), [(40_000, 1.0, True), (40_000, 1e-6, False), (10, 1.0, False)])
def test_which_arrays_are_large_and_halves(size: int, step: float, are: bool) -> None:
    store = WeightStore()
    attr = store.put(np.arange(size, dtype=np.float32) % 2048 + np.float32(step), "w")
    assert store.are_halves(attr) == are
    if are:
        assert_array_equal(store.halves(attr), store.get(attr))


def test_packed_arrays_are_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store, copied = WeightStore(), counted_copies(monkeypatch)
    transposed = np.arange(24, dtype=np.float32).reshape(4, 6).T
    attr = store.put_packed(transposed, "packed")
    assert_array_equal(store.get(attr), transposed)
    assert store.for_kernels([attr.key.data])[attr.key.data] is store.get(attr)
    assert copied == [transposed.nbytes]
    assert store.put_packed(transposed, "other") == attr
    assert len(store.keys()) == 1


def test_a_store_shares_arrays_with_another() -> None:
    store, other = WeightStore(), WeightStore()
    attributes = [store.put(np.full(9, value), f"w{value}") for value in range(3)]
    other.share(store, ["w1", "w2"])
    assert set(other.keys()) == {"w1", "w2"}
    assert other.get(attributes[1]) is store.get(attributes[1])
    assert other.put(np.full(9, 2), "new") == attributes[2]


def test_a_packed_array_takes_the_place_of_an_equal_one_that_kernels_cannot_read() -> None:
    store = WeightStore()
    unaligned = np.zeros(101, np.uint8)[1:]
    unaligned[:] = np.arange(100)
    attr = store.put(unaligned, "w")
    assert store.put_packed(unaligned, "packed") == attr
    packed = store.get(attr)
    assert is_aligned(packed)
    assert store.put_packed(unaligned, "once more") == attr
    assert store.get(attr) is packed
    assert store.for_kernels([attr.key.data])[attr.key.data] is packed
