"""What a build gets to choose tactics with: a file of times that it may write, and a device or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirt.builder.tactics.timing_cache import TimingCache
from mlirt.builder.tactics.tuning import tuning
from mlirt.errors import InvalidInputError


def test_new_times_go_to_the_file_when_the_build_is_over(tmp_path: Path) -> None:
    path = tmp_path / "times"
    with tuning(path, heuristic=True) as choice:
        choice.cache.put("gpu", "op", {"a": 1.0})
        assert not path.exists()
    assert TimingCache.load(path).get("gpu", "op") == {"a": 1.0}


def test_a_build_without_new_times_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "times"
    with tuning(path, heuristic=True):
        pass
    assert not path.exists()


def test_a_build_that_fails_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "times"

    def fail() -> None:
        with tuning(path, heuristic=True) as choice:
            choice.cache.put("gpu", "op", {"a": 1.0})
            raise InvalidInputError("no such layer")

    with pytest.raises(InvalidInputError):
        fail()
    assert not path.exists()


def test_a_cache_in_memory_is_used_as_it_is() -> None:
    cache = TimingCache()
    with tuning(cache, heuristic=True) as choice:
        assert choice.cache is cache
        assert choice.timer is None


def test_counts_are_positive() -> None:
    with pytest.raises(InvalidInputError, match="7 rounds of 0 calls"), tuning(calls=0):
        pass
