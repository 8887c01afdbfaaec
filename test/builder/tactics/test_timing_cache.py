"""The timing cache: bytes and back, two caches into one, files that builds share, and files that are no cache."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mlirt.builder.tactics.timing_cache import REFUSED, TimingCache, times_of_those_right
from mlirt.errors import InvalidInputError


def cache(place: str = "gpu", op: str = "matmul", **times: float) -> TimingCache:
    made = TimingCache()
    made.put(place, op, times or {"a": 1.5, "b": 2.0})
    return made


def test_bytes_and_back() -> None:
    """tensorrt-features.md#15.9, with the three tests behind this one: a cache is serialized, combined and reset."""
    first = cache(a=1.5, never=float("inf"))
    again = TimingCache(first.serialize())
    assert again.get("gpu", "matmul") == {"a": 1.5, "never": float("inf")}
    assert again.serialize() == first.serialize()
    assert b"Infinity" not in first.serialize()
    assert TimingCache().get("gpu", "matmul") == {}


def test_the_order_of_entries_leaves_no_trace() -> None:
    one, other = TimingCache(), TimingCache()
    for made, order in ((one, "xy"), (other, "yx")):
        for op in order:
            made.put("gpu", op, {"a": 1.0})
    assert one.serialize() == other.serialize()


def test_combining_keeps_what_is_known() -> None:
    first, second = cache(a=1.0), cache(a=9.0, b=2.0)
    assert first.combine(second)
    assert first.get("gpu", "matmul") == {"a": 1.0, "b": 2.0}


def test_a_cache_of_another_device_is_combined_only_on_demand() -> None:
    """tensorrt-features.md#15.10."""
    first, other = cache("gpu"), cache("other gpu")
    assert not first.combine(other)
    assert first.places() == ("gpu",)
    assert first.combine(other, ignore_mismatch=True)
    assert first.places() == ("gpu", "other gpu")
    assert TimingCache().combine(other)


def test_reset_forgets() -> None:
    made = cache()
    assert made.reset()
    assert len(made) == 0


def test_a_file_is_read_and_added_to(tmp_path: Path) -> None:
    path = tmp_path / "times"
    assert len(TimingCache.load(path)) == 0
    cache(op="x").save(path)
    cache(op="y").save(path)
    assert len(TimingCache.load(path)) == 2


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "times"

    def write(number: int) -> None:
        cache(op=f"op {number}").save(path)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    assert len(TimingCache.load(path)) == 24


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"2.0", b"", "damaged"),
        (b"1.5", b"0.5", "damaged"),
        (b"{", b"\xff{", "damaged"),
        (b"mlirt timing cache", b"something else", "no timing cache of mlirt"),
        (b'"format": 1', b'"format": 99', "has format 99, this mlirt reads format 1"),
    ],
)
def test_other_files_are_refused(old: bytes, new: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "times"
    path.write_bytes(cache().serialize().replace(old, new))
    with pytest.raises(InvalidInputError, match=message) as caught:
        TimingCache.load(path)
    assert str(path) in str(caught.value)


def test_a_folder_is_no_cache_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLIRT_CACHE_KEY_FILE", raising=False)
    with pytest.raises(InvalidInputError, match="are signed: let MLIRT_CACHE_KEY_FILE name a file"):
        TimingCache.load(tmp_path)


def test_an_empty_cache_is_a_cache() -> None:
    """It may be given to be filled: what asks whether there is one must not take another in its place."""
    cache = TimingCache()
    assert len(cache) == 0
    assert (cache or TimingCache()) is cache


def test_refused_tactics_are_not_the_fastest() -> None:
    times = {"refused": REFUSED, "slow": 7.0, "fast": 3.0, "never ran": float("inf")}
    assert times_of_those_right(times) == {"slow": 7.0, "fast": 3.0}
