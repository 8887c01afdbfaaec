"""What a launch touches, found by following its threads: the same elements as the kernel itself reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest
from kernel_text import parse_kernel

from mlirt.builder.extents import launch_reader
from mlirt.builder.extents.contract import contract_from
from mlirt.builder.extents.launch_reader import LaunchReader, TooMuchWork
from mlirt.runtime.contract_checks import contracts_section
from mlirt.runtime.extents import Contract, read_contracts

Touched = Mapping[int, Iterable[int]]
"""The elements that a launch touches, by place of the pointer."""

_HEAD = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %thread = kernel.thread_id : index
  %block = kernel.block_id {axis = 0 : i64} : index
  %blocks = kernel.grid_size {axis = 0 : i64} : index
"""

PERSISTENT = f"""
kernel.func @persistent(%y: memref<?xf32>, %rows: index, %columns: index) attributes {{block_size = 32 : i64}} {{
  {_HEAD}
  %left = arith.subi %rows, %block : index
  %count = arith.ceildivsi %left, %blocks : index
  %end = scf.for %i = %c0 to %count step %c1 iter_args(%row = %block) -> (index) {{
    %is_inside = arith.cmpi slt, %thread, %columns : index
    scf.if %is_inside {{
      %v = kernel.load %y[%row, %thread] strides [%columns, 1] : memref<?xf32> -> f32
    }}
    %next = arith.addi %row, %blocks : index
    scf.yield %next : index
  }}
  kernel.return
}}
"""


def persistent(blocks: int, rows: int, columns: int) -> Touched:
    return {0: [row * columns + thread for row in range(rows) for thread in range(min(columns, 32))]}


SWIZZLED = f"""
kernel.func @swizzled(%y: memref<?xf32>, %rows: index, %group: index) attributes {{block_size = 32 : i64}} {{
  {_HEAD}
  %tall = arith.muli %group, %c4 : index
  %0 = arith.divui %block, %tall : index
  %first = arith.muli %0, %group : index
  %1 = arith.subi %rows, %first : index
  %height = arith.minsi %1, %group : index
  %rest = arith.remui %block, %tall : index
  %2 = arith.remui %rest, %height : index
  %row = arith.addi %first, %2 : index
  %column = arith.divui %rest, %height : index
  %3 = arith.divui %thread, %c4 : index
  %warp = kernel.warp_value %3 : index
  %v = kernel.load %y[%row, %column, %warp] strides [4, 1, 100] : memref<?xf32> -> f32
  kernel.return
}}
"""


def swizzled(blocks: int, rows: int, group: int) -> Touched:
    found: list[int] = []
    for block in range(blocks):
        first = block // (4 * group) * group
        height = min(rows - first, group)
        rest = block % (4 * group)
        found.append((first + rest % height) * 4 + rest // height)
    return {0: found}


GUARDED = f"""
kernel.func @guarded(%y: memref<?xf32>, %z: memref<?xf32>, %size: index) attributes {{block_size = 32 : i64}} {{
  {_HEAD}
  %0 = arith.muli %block, %c32 : index
  %number = arith.addi %0, %thread : index
  %at = arith.muli %number, %c4 : index
  %left = arith.subi %size, %at : index
  %v = kernel.load_fragment %y[%at] valid %left {{offsets = array<i64: 0, 1, 2, 3>}} : memref<?xf32> -> vector<4xf32>
  %is_odd = arith.remui %thread, %c4 : index
  %is_first = arith.cmpi eq, %is_odd, %c1 : index
  %chosen = arith.select %is_first, %left, %c0 : index
  %w = kernel.load_fragment %z[%at] valid %chosen {{offsets = array<i64: 0, 1, 2, 3>}} : memref<?xf32> -> vector<4xf32>
  kernel.return
}}
"""


def guarded(blocks: int, size: int) -> Touched:
    threads = [thread for thread in range(32 * blocks) if 4 * thread < size]
    return {
        place: [4 * t + i for t in threads if place == 0 or t % 4 == 1 for i in range(4) if 4 * t + i < size]
        for place in (0, 1)
    }


RANKED = f"""
kernel.func @ranked(%x: memref<?xi32>, %y: memref<?xi32>, %most: index) attributes {{block_size = 32 : i64}} {{
  {_HEAD}
  %zero = arith.constant 0 : i32
  %v = kernel.load %x[%thread] strides [1] : memref<?xi32> -> i32
  %other = kernel.shuffle %v {{mask = 1 : i64}} : i32 -> i32
  %is_more = arith.cmpi slt, %v, %other : i32
  %0 = arith.extui %is_more : i1 to i32
  %1 = kernel.shuffle %0 {{mask = 2 : i64}} : i32 -> i32
  %2 = arith.addi %0, %1 : i32
  %rank = arith.index_cast %2 : i32 to index
  %is_kept = arith.cmpi slt, %rank, %most : index
  scf.if %is_kept {{
    kernel.store %v, %y[%block, %rank] strides [%most, 1] : i32, memref<?xi32>
  }}
  kernel.return
}}
"""


def ranked(blocks: int, most: int) -> Touched:
    return {0: range(32), 1: [block * most + rank for block in range(blocks) for rank in range(min(most, 3))]}


CASES: list[tuple[str, str, Callable[..., Touched], tuple[int, ...], tuple[int, ...]]] = [
    *(
        ("persistent", PERSISTENT, persistent, (blocks,), numbers)
        for blocks in (1, 5, 132)
        for numbers in ((1, 1), (131, 7), (133, 40), (400, 32))
    ),
    *(("swizzled", SWIZZLED, swizzled, (4 * rows,), (rows, group)) for rows in (1, 13, 16) for group in (1, 8)),
    *(("guarded", GUARDED, guarded, (blocks,), (size,)) for blocks in (1, 3) for size in (1, 2, 6, 127, 129, 500)),
    *(("ranked", RANKED, ranked, (3,), (most,)) for most in (1, 2, 3)),
]


def _name(case: int) -> str:
    return f"{CASES[case][0]}-{case}"


def contract_of_launch(text: str, numbers: Sequence[int], grid: Sequence[int]) -> tuple[Contract, list[int]]:
    """The contract of a launch, and its arguments: pointers, then integers."""
    kernel = parse_kernel(text)
    pointers = len(kernel.body.block.args) - len(numbers)
    constants = {pointers + i: number for i, number in enumerate(numbers)}
    record = contract_from(LaunchReader(kernel, constants, grid))
    head = {"objects": [], "args": ["ptr"] * pointers + ["i64"] * len(numbers)}
    head |= {"block": [32, 1, 1], "shared_bytes": 0, "cluster": 1}
    (contract,) = read_contracts(contracts_section({"": [head | record]}, [])).kernels[""]
    return contract, [0] * pointers + list(numbers)


@pytest.mark.parametrize("case", range(len(CASES)), ids=_name)
def test_a_launch_touches_exactly_these_elements(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _, text, expected, grid, numbers = CASES[case]
    if case % 2:
        monkeypatch.setattr(launch_reader, "_AT_ONCE", 64)  # two blocks
    if case % 3:
        monkeypatch.setattr(launch_reader, "_FOLLOWED_ITERATIONS", 0)
    contract, arguments = contract_of_launch(text, numbers, grid)
    extents = contract.extents_of(arguments, [*grid, 1, 1])
    touched = {place: list(elements) for place, elements in expected(*grid, *numbers).items()}
    assert extents == {
        place: (4 * min(elements), 4 * max(elements) + 4) for place, elements in touched.items() if elements
    }


def test_another_grid_or_another_number_is_refused() -> None:
    contract, arguments = contract_of_launch(PERSISTENT, (12, 8), (4,))
    assert isinstance(contract.extents_of(arguments, [5, 1, 1]), str)
    assert isinstance(contract.extents_of(arguments, [4, 2, 1]), str)
    assert isinstance(contract.extents_of([0, 13, 8], [4, 1, 1]), str)


def test_an_address_that_data_decide_is_not_proved() -> None:
    text = """
kernel.func @gather(%i: memref<?xi64>, %x: memref<?xf32>) attributes {block_size = 32 : i64} {
  %thread = kernel.thread_id : index
  %0 = kernel.load %i[%thread] strides [1] : memref<?xi64> -> i64
  %at = arith.index_cast %0 : i64 to index
  %v = kernel.load %x[%at] strides [1] : memref<?xf32> -> f32
  kernel.return
}
"""
    assert contract_of_launch(text, (), (2,))[0].unproved == {1}


def test_a_loop_whose_length_data_decide_touches_what_any_of_its_iterations_may() -> None:
    text = """
kernel.func @loop(%i: memref<?xi64>, %x: memref<?xf32>) attributes {block_size = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %0 = kernel.load %i[%c0] strides [1] : memref<?xi64> -> i64
  %given = arith.index_cast %0 : i64 to index
  %end = arith.minsi %given, %c7 : index
  scf.for %at = %c1 to %end step %c1 {
    %v = kernel.load %x[%at] strides [1] : memref<?xf32> -> f32
  }
  kernel.return
}
"""
    contract, arguments = contract_of_launch(text, (), (1,))
    assert contract.extents_of(arguments, [1, 1, 1]) == {0: (0, 8), 1: (4, 28)}


@pytest.mark.parametrize("text", [PERSISTENT, GUARDED, RANKED], ids=["persistent", "guarded", "ranked"])
def test_what_data_decide_is_not_sure(text: str) -> None:
    """Whether a launch comes to a store, and to which element: an error of the compiler is only what is sure."""
    kernel = parse_kernel(text)
    pointers = text.count("memref<?x", 0, text.index("{block_size"))
    reader = LaunchReader(kernel, {pointers + i: 2 for i in range(len(kernel.body.block.args) - pointers)}, (2,))
    assert reader.is_sure == (text != RANKED)


def test_a_loop_that_data_end_is_not_sure() -> None:
    """Its body may not run at all."""
    text = """
kernel.func @until(%x: memref<?xi64>) attributes {block_size = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i64
  %first = kernel.load %x[%c0] strides [1] : memref<?xi64> -> i64
  %last = scf.while (%v = %first) : (i64) -> i64 {
    %goes_on = arith.cmpi sgt, %v, %zero : i64
    scf.condition(%goes_on) %v : i64
  } do {
  ^bb0(%v: i64):
    %next = kernel.load %x[%c1] strides [1] : memref<?xi64> -> i64
    scf.yield %next : i64
  }
  kernel.return
}
"""
    reader = LaunchReader(parse_kernel(text), {}, (1,))
    assert contract_of_launch(text, (), (1,))[0].extents_of([0], [1, 1, 1]) == {0: (0, 16)}
    assert not reader.is_sure


def test_numbers_that_wrap_are_not_bounds() -> None:
    text = """
kernel.func @wraps(%x: memref<?xf32>, %n: index) attributes {block_size = 32 : i64, index_bits = 32 : i64} {
  %c4 = arith.constant 4 : index
  %large = arith.muli %n, %c4 : index
  %at = arith.remui %large, %c4 : index
  %v = kernel.load %x[%large] strides [1] : memref<?xf32> -> f32
  kernel.return
}
"""
    assert contract_of_launch(text, (1 << 29,), (1,))[0].unproved == {0}
    assert not contract_of_launch(text, (1 << 28,), (1,))[0].unproved


STRIDED = f"""
kernel.func @strided(%y: memref<?xf32>, %size: index, %modulus: index) attributes {{block_size = 32 : i64}} {{
  {_HEAD}
  scf.for %i = %c0 to %size step %c32 {{
    %at = arith.addi %i, %thread : index
    %is_inside = arith.cmpi slt, %at, %size : index
    scf.if %is_inside {{
      %0 = arith.remui %at, %modulus : index
      %1 = arith.addi %0, %block : index
      %v = kernel.load %y[%1] strides [1] : memref<?xf32> -> f32
    }}
  }}
  kernel.return
}}
"""


@pytest.mark.parametrize("modulus", [7, 40, 1000, 1 << 20])
@pytest.mark.parametrize("blocks", [1, 2, 3, 50])
def test_iterations_between_the_first_and_the_last_may_touch_more(
    blocks: int, modulus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch_reader, "_AT_ONCE", 1)
    contract, arguments = contract_of_launch(STRIDED, (1005, modulus), (blocks,))
    assert contract.extents_of(arguments, [blocks, 1, 1]) == {0: (0, 4 * (min(modulus, 1005) + blocks - 1))}


def test_longer_loops_and_larger_grids_are_no_more_work() -> None:
    """But where a loop carries what addresses depend on."""
    strided, persistent = parse_kernel(STRIDED), parse_kernel(PERSISTENT)
    for size, blocks in ((1000, 8), (1 << 24, 1 << 18)):
        LaunchReader(strided, {1: size, 2: 1 << 25}, (blocks,), 1 << 18)
    with pytest.raises(TooMuchWork):
        LaunchReader(persistent, {1: 1 << 24, 2: 32}, (8,), 1 << 20)


def test_launches_that_are_too_large_are_not_followed() -> None:
    with pytest.raises(TooMuchWork):
        LaunchReader(parse_kernel(PERSISTENT), {1: 4000, 2: 32}, (4,), 1000)


def test_many_iterations_of_few_threads_take_time_too() -> None:
    """As an op by itself does, however few numbers it computes."""
    with pytest.raises(TooMuchWork):
        LaunchReader(parse_kernel(PERSISTENT), {1: 1 << 16, 2: 32}, (1,), 1 << 25)
