"""What the driver is asked to encode, in its own order of dimensions."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

from mlirt.runtime.tensor_maps import MapLayout, declare, encode


class FakeLibrary:
    """Notes the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def cuTensorMapEncodeTiled(self, *args: Any) -> int:
        self.calls.append(args)
        return 0

    cuTensorMapEncodeIm2col = cuTensorMapEncodeTiled


def numbers(array: Any, count: int) -> list[int]:
    return list(array)[:count]


def test_a_box_of_a_matrix() -> None:
    library = FakeLibrary()
    layout = MapLayout("float16", (100, 72), (160, 2), (64, 32), 64)
    call, status, encoded = encode(library, layout, 4096)
    assert (call, status) == ("cuTensorMapEncodeTiled", 0)
    assert ctypes.addressof(encoded) % 64 == 0
    assert layout.extent() == 99 * 160 + 71 * 2 + 2
    _, element, rank, address, sizes, steps, box, ones, *tail = library.calls[0]
    assert (element, rank, address) == (6, 2, 4096)
    assert (numbers(sizes, 2), numbers(steps, 1)) == ([72, 100], [160])
    assert (numbers(box, 2), numbers(ones, 2)) == ([32, 64], [1, 1])
    assert tail == [0, 2, 3, 0]


def test_a_window() -> None:
    library = FakeLibrary()
    sizes, steps = (2, 9, 11, 64), (9 * 11 * 128, 11 * 128, 128, 2)
    layout = MapLayout("bfloat16", sizes, steps, (128, 64), 128, (-1, -2), (1, 0), (2, 1))
    assert encode(library, layout, 256)[0] == "cuTensorMapEncodeIm2col"
    _, element, rank, _, dims, strides, lower, upper, channels, pixels, steps_, *tail = library.calls[0]
    assert (element, rank, channels, pixels) == (9, 4, 64, 128)
    assert (numbers(dims, 4), numbers(strides, 3)) == ([64, 11, 9, 2], [128, 11 * 128, 9 * 11 * 128])
    assert (numbers(lower, 2), numbers(upper, 2), numbers(steps_, 4)) == ([-2, -1], [0, 1], [1, 1, 2, 1])
    assert tail == [0, 3, 3, 0]


def test_copies_that_round_to_tf32() -> None:
    library = FakeLibrary()
    plain = MapLayout("float32", (100, 72), (288, 4), (64, 32), 128)
    for layout in (plain, replace(plain, tf32=True)):
        encode(library, layout, 4096)
    assert [call[1] for call in library.calls] == [7, 11]  # FLOAT32, TFLOAT32
    assert replace(plain, tf32=True).extent() == plain.extent()


def test_an_old_driver_has_no_maps() -> None:
    declare(object())
