"""Float32 weights that are halves, or bytes times scales, take no more bytes in a plan, and have their bits again."""

import json
import os
import signal
from typing import Any

import numpy as np
import pytest

from mlirt.errors import PlanError
from mlirt.runtime import compact_weights, safetensors_section
from mlirt.runtime.compact_weights import compact

RNG = np.random.default_rng(0)
SHAPE = (24, 40, 48)


def int8_times(scales_shape: tuple[int, ...], shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Bytes times scales, as a quantised network is folded: the largest number of a line is 127 of its scale."""
    scales = RNG.uniform(1e-3, 1e-2, scales_shape).astype(np.float32)
    numbers, axes = RNG.standard_normal(shape), tuple(np.flatnonzero(np.array(scales_shape) == 1))
    numbers = np.rint(127 * numbers / np.abs(numbers).max(axis=axes, keepdims=True))
    return numbers.astype(np.int8).astype(np.float32) * scales


def stream(weights: dict[str, np.ndarray]) -> bytes:
    return b"".join(bytes(piece) for piece in safetensors_section.pieces(weights))


def read_back(array: np.ndarray) -> np.ndarray:
    return safetensors_section.parse(memoryview(stream({"w": array})))["w"]


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    "scales",
    [(1, 1, 1), (24, 1, 1), (1, 1, 48), (24, 1, 48), (24, 40, 1), (1, 40, 48)],
    ids=lambda shape: "x".join(map(str, shape)),
)
def test_bytes_with_scales_of_any_lines(scales: tuple[int, ...]) -> None:
    array = int8_times(scales)
    found = compact(array)
    assert found is not None
    assert found.scales is not None
    assert found.numbers.dtype == np.int8
    assert found.scales.size <= np.prod(scales)
    assert same_bits(read_back(array), array)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 6])
def test_lines_whose_smallest_number_is_some_steps_from_zero(steps: int) -> None:
    numbers = RNG.choice(np.array([-127, -90, -steps, steps, 64, 0]), (300, 40)).astype(np.float32)
    numbers[:, 0] = steps
    array = numbers * RNG.uniform(1e-3, 1e-2, (300, 1)).astype(np.float32)
    found = compact(array)
    assert found is not None
    assert found.numbers.dtype == np.int8
    assert same_bits(found.wide(), array)


def test_lines_of_zeros_have_a_scale_too() -> None:
    array = int8_times((24, 1, 1))
    array[3] = 0
    array[0] = 0
    found = compact(array)
    assert found is not None
    assert found.numbers.dtype == np.int8
    assert same_bits(found.wide(), array)


def test_halves() -> None:
    array = RNG.standard_normal((100, 70)).astype(np.float16).astype(np.float32)
    array[0, :4] = (-0.0, np.inf, 2.0**-24, 65504.0)
    found = compact(array)
    assert found is not None
    assert found.numbers.dtype == np.float16
    assert same_bits(read_back(array), array)
    assert read_back(array).ctypes.data % 64 == 0


def test_what_would_lose_a_bit_stays() -> None:
    plain = RNG.standard_normal((64, 64)).astype(np.float32)
    nearly = int8_times((24, 1, 1))
    nearly[20, 30, 40] = np.nextafter(nearly[20, 30, 40], np.float32(np.inf))
    negative_zero = int8_times((1, 1, 1))
    negative_zero[-1, -1, -1] = -0.0
    for array in (plain, nearly, negative_zero, plain.astype(np.float64), int8_times((1, 1), (3, 4))):
        assert compact(array) is None
        assert same_bits(read_back(array), array)


def test_the_stream_is_as_small_as_that() -> None:
    array = int8_times((1, 1, 48))
    assert len(stream({"w": array})) < array.nbytes / 4 + 1024
    assert len(stream({"w": array.astype(np.float16).astype(np.float32)})) < array.nbytes / 2 + 1024


def changed(change: dict[str, Any]) -> bytes:
    """A stream with other entries in its header."""
    whole = stream({"w": int8_times((24, 1, 1))})
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length]) | change
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + whole[8 + length :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"__metadata__": {safetensors_section.FLOAT32: "["}}, "its metadata is damaged"),
        ({"__metadata__": {safetensors_section.FLOAT32: "[1]"}}, "its metadata is damaged"),
        ({"__metadata__": []}, "its metadata is damaged"),
        ({"__metadata__": {safetensors_section.FLOAT32: '["v"]'}}, "not stored as what becomes float32"),
        ({"w": {"dtype": "F16", "shape": [24], "data_offsets": [0, 48]}}, "not stored as what becomes float32"),
        ({"w": {"dtype": "I8", "shape": [48], "data_offsets": [0, 48]}}, "its scales do not fit it"),
        ({"w": {"dtype": "I8", "shape": [2, 2, 2], "data_offsets": [0, 8]}}, "its scales do not fit it"),
    ],
)
def test_damage_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        safetensors_section.parse(memoryview(changed(change)))


def test_the_stream_holds_no_array_twice() -> None:
    """Float32 arrays go out from where they lie; what is shortened is made some rows at a time, each time anew."""
    plain = RNG.standard_normal((64, 2048)).astype(np.float32)
    halves = RNG.standard_normal((256, 8192)).astype(np.float16).astype(np.float32)
    made = safetensors_section.stream_of({"halves": halves, "plain": plain})
    first, second = (b"".join(made.pieces()) for _ in range(2))
    assert first == second
    assert len(first) == made.size
    own = [piece for piece in made.pieces() if len(piece) > 4096]
    assert sum(np.shares_memory(np.frombuffer(piece, np.uint8), plain) for piece in own) == 1
    assert max(len(piece) for piece in own if len(piece) != plain.nbytes) <= 2 << 20
    assert sum(len(piece) for piece in own) == plain.nbytes + halves.nbytes // 2


def test_streams_of_one_identity_share_what_is_widened() -> None:
    weights = {"w": RNG.standard_normal((64, 64)).astype(np.float16).astype(np.float32)}
    content = memoryview(stream(weights))
    one, other = (safetensors_section.parse(content, "digest")["w"] for _ in range(2))
    assert one.ctypes.data == other.ctypes.data
    assert safetensors_section.parse(content, "another")["w"].ctypes.data != one.ctypes.data
    assert safetensors_section.parse(content)["w"].ctypes.data != one.ctypes.data
    address = one.ctypes.data
    del one
    assert safetensors_section.parse(content, "digest")["w"].ctypes.data == address
    np.testing.assert_array_equal(other, weights["w"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_that_is_forked_while_weights_are_widened_has_a_lock_of_its_own() -> None:
    content = memoryview(stream({"w": RNG.standard_normal((64, 64)).astype(np.float16).astype(np.float32)}))
    with compact_weights._lock:  # pyright: ignore[reportPrivateUsage]
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if len(safetensors_section.parse(content, "in the child")) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("scales_shape", [(1, 1, 1), (24, 1, 1), (1, 1, 48), (24, 40, 1)])
def test_ratios_of_whole_numbers_refuse_nothing_that_fits(
    scales_shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quick look at the first numbers of a line changes no form, and spares random weights the search."""
    scaled = int8_times(scales_shape)
    arrays = [scaled * np.float32(factor) for factor in (2.0**-130, 2.0**-118, 1, 2.0**100)]
    noise = [RNG.standard_normal(SHAPE).astype(np.float32) for _ in range(4)]
    looked = [compact(array) for array in arrays]
    assert sum(one is not None for one in looked) >= 2
    with monkeypatch.context() as patch:
        patch.setattr(compact_weights, "_guesses_of_one", None)
        assert [compact(array) for array in noise] == [None] * 4
    monkeypatch.setattr(compact_weights, "_have_whole_ratios", bool)
    for array, one in zip(arrays, looked, strict=True):
        again = compact(array)
        assert (one is None) == (again is None)
        if one is not None and again is not None:
            assert one.numbers.dtype == again.numbers.dtype
            np.testing.assert_array_equal(one.scales, again.scales)
