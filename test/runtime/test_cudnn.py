"""How a convolution is put to cuDNN, and which of its proposals are taken, told by a library that writes down calls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_cudnn import FakeLibrary

from mlirt.errors import PlanError
from mlirt.runtime.cudnn import Cudnn
from mlirt.runtime.cudnn_descriptors import Field, Kind
from mlirt.runtime.library_calls import LibraryConvolution

CONVOLUTION = LibraryConvolution(
    *("cudnn", ("float16", "float16", "float16", "float32"), "relu", False, 0, 1 << 20),
    *((2, 1), (1, 1), (1, 0), True, 1),
)
ADDRESSES = [1 << 12, 1 << 13, 1 << 14, 1 << 15, (1 << 16) + 4]
SIZES = [2, 8, 9, 7, 16, 3, 3, 5, 5]
MATRIX_UNITS, ANY_ORDER = 0, 4


def test_a_convolution_with_bias_and_relu_is_one_graph() -> None:
    library = FakeLibrary([[MATRIX_UNITS]])
    Cudnn(library).prepare(CONVOLUTION, ADDRESSES, SIZES)(7)
    tensors = {one[Field.TENSOR_ID][0]: one for one in library.of_kind(Kind.TENSOR)}
    sizes = {name: one[Field.TENSOR_SIZES] for name, one in tensors.items()}
    assert sizes == {
        1: [2, 8, 9, 7],
        2: [16, 8, 3, 3],
        3: [2, 16, 5, 5],
        4: [1, 16, 1, 1],
        10: [2, 16, 5, 5],
        11: [2, 16, 5, 5],
    }
    assert tensors[1][Field.TENSOR_STRIDES] == [8 * 9 * 7, 1, 7 * 8, 8]
    assert [name for name, one in tensors.items() if Field.TENSOR_IS_VIRTUAL in one] == [10, 11]
    assert [tensors[name][Field.TENSOR_ALIGNMENT] for name in (1, 4)] == [[16], [4]]
    (window,) = library.of_kind(Kind.CONVOLUTION)
    assert (window[Field.CONVOLUTION_STRIDE], window[Field.CONVOLUTION_PADDING_AFTER]) == ([2, 1], [1, 0])
    assert [one[Field.POINTWISE_MODE] for one in library.of_kind(Kind.POINTWISE)] == [[0], [100]]
    (graph,) = library.of_kind(Kind.GRAPH)
    assert [library.kinds[op] for op in graph[Field.GRAPH_OPS]] == [Kind.CONVOLVE, Kind.APPLY, Kind.APPLY]
    (pointers,) = library.of_kind(Kind.POINTERS)
    assert pointers[Field.POINTERS_IDS] == [1, 2, 3, 4]
    assert pointers[Field.POINTERS_ADDRESSES] == [*ADDRESSES[:3], ADDRESSES[4]]
    assert pointers[Field.POINTERS_WORKSPACE] == [ADDRESSES[3]]
    assert len(library.run) == 1


def test_channels_need_not_be_innermost() -> None:
    library = FakeLibrary([[]])
    plain = replace(CONVOLUTION, channels_last=False, elements=("float32",) * 3, activation="none")
    Cudnn(library).prepare(plain, ADDRESSES[:4], SIZES)
    tensors = library.of_kind(Kind.TENSOR)
    assert tensors[0][Field.TENSOR_STRIDES] == [8 * 9 * 7, 9 * 7, 7, 1]
    assert len(tensors) == 3


def test_equal_layers_share_their_plans() -> None:
    library = FakeLibrary([[MATRIX_UNITS], [MATRIX_UNITS]])
    cudnn = Cudnn(library)
    for _ in range(3):
        cudnn.prepare(CONVOLUTION, ADDRESSES, SIZES)
    assert (len(library.of_kind(Kind.GRAPH)), len(library.of_kind(Kind.PLAN))) == (1, 1)
    cudnn.prepare(replace(CONVOLUTION, proposal=1), ADDRESSES, SIZES)
    assert (len(library.of_kind(Kind.GRAPH)), len(library.of_kind(Kind.PLAN))) == (1, 2)


@pytest.mark.parametrize(
    ("element", "rounded", "ways"), [("float16", False, 2), ("float32", True, 2), ("float32", False, 1)]
)
def test_ways_that_lose_digits_or_give_other_bits_are_left_out(element: str, *, rounded: bool, ways: int) -> None:
    """Single precision is rounded for matrix units where the build allows it."""
    cudnn = Cudnn(FakeLibrary([[ANY_ORDER], [MATRIX_UNITS], []]))
    what = replace(CONVOLUTION, elements=(element,) * 4, rounded=rounded)
    found = 2 * ways  # both sources of proposals propose the same here
    cudnn.prepare(replace(what, proposal=found - 1), ADDRESSES, SIZES)
    with pytest.raises(PlanError, match=f"cuDNN 91900 has no way number {found + 1} for a convolution of {element}"):
        cudnn.prepare(replace(what, proposal=found), ADDRESSES, SIZES)


def test_ways_that_need_more_memory_are_left_out() -> None:
    cudnn = Cudnn(FakeLibrary([[]], workspace=(1 << 20) + 1))
    with pytest.raises(PlanError, match="no way number 1 for"):
        cudnn.prepare(CONVOLUTION, ADDRESSES, SIZES)


def test_a_call_that_fails_says_why() -> None:
    cudnn = Cudnn(FakeLibrary([], refused="cudnnBackendFinalize"))
    with pytest.raises(PlanError, match="cuDNN 91900: cudnnBackendFinalize: NOT_SUPPORTED"):
        cudnn.prepare(CONVOLUTION, ADDRESSES, SIZES)


def test_descriptions_are_given_back() -> None:
    library = FakeLibrary([[MATRIX_UNITS]])
    cudnn = Cudnn(library)
    queue = cudnn.prepare(CONVOLUTION, ADDRESSES, SIZES)
    (pointers,) = [number for number, kind in library.kinds.items() if kind is Kind.POINTERS]
    assert pointers not in library.given_back
    del queue
    assert pointers in library.given_back
