"""Contracts of kernels: they hold for every launch, and are exact where a kernel touches all that it may."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest
from kernel_text import parse_kernel

from mlirt.builder.extents.contract import contract_of
from mlirt.runtime.contract_checks import contracts_section
from mlirt.runtime.extents import Contract, read_contracts

Touched = Mapping[int, Iterable[int]]
"""The elements that a launch touches, by place of the pointer."""

TILED = """
kernel.func @tiled(%x: memref<?xf32>, %n: index, %m: index, %step: index) attributes {target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %chunks = arith.ceildivsi %n, %c4 : index
  kernel.parallel(%chunks, %m) {
  ^bb0(%i: index, %j: index):
    %start = arith.muli %i, %c4 : index
    %left = arith.subi %n, %start : index
    %length = arith.minsi %left, %c4 : index
    kernel.parallel(%length) {
    ^bb1(%k: index):
      %v = kernel.load %x[%j, %start, %k] strides [%step, 1, 1] : memref<?xf32> -> f32
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}
"""


def tiled(n: int, m: int, step: int) -> Touched:
    return {0: [j * step + i for j in range(m) for i in range(n)]}


RECURRENCE = """
kernel.func @recurrence(%w: memref<?xf32>, %rows: index, %columns: index) attributes {target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %end = scf.for %r = %c0 to %rows step %c1 iter_args(%at = %c0) -> (index) {
    %next = scf.for %s = %c0 to %columns step %c1 iter_args(%place = %at) -> (index) {
      %v = kernel.load %w[%place] strides [1] : memref<?xf32> -> f32
      %following = arith.addi %place, %c8 : index
      scf.yield %following : index
    }
    scf.yield %next : index
  }
  kernel.return
}
"""


def recurrence(rows: int, columns: int) -> Touched:
    return {0: [8 * i for i in range(rows * columns)]}


WINDOW = """
kernel.func @window(%x: memref<?xf32>, %n: index, %size: index, %pad: index, %outputs: index)
    attributes {target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  kernel.parallel(%outputs) {
  ^bb0(%o: index):
    %first = arith.subi %o, %pad : index
    %before = arith.subi %c0, %first : index
    %low = arith.maxsi %before, %c0 : index
    %behind = arith.subi %n, %first : index
    %high = arith.minsi %behind, %size : index
    scf.for %r = %low to %high step %c1 {
      %v = kernel.load %x[%first, %r] strides [1, 1] : memref<?xf32> -> f32
    }
    kernel.yield
  }
  kernel.return
}
"""


def window(n: int, size: int, pad: int, outputs: int) -> Touched:
    return {0: [o - pad + r for o in range(outputs) for r in range(size) if 0 <= o - pad + r < n]}


SPLIT = """
kernel.func @split(%x: memref<?xf32>, %n: index, %w: index, %stride: index) attributes {target = "cpu"} {
  kernel.parallel(%n) {
  ^bb0(%i: index):
    %row = arith.divui %i, %w : index
    %column = arith.remui %i, %w : index
    %v = kernel.load %x[%row, %column] strides [%stride, 1] : memref<?xf32> -> f32
    kernel.yield
  }
  kernel.return
}
"""


def split(n: int, w: int, stride: int) -> Touched:
    return {0: [i // (w or 1) * stride + i % (w or 1) for i in range(n)]}


SHARED = """
kernel.func @shared(%x: memref<?xf32>, %tasks: index, %blocks: index, %size: index) attributes {target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first, %last = kernel.worker_share %tasks
  %begin = arith.divui %first, %blocks : index
  %end = arith.ceildivsi %last, %blocks : index
  scf.for %pair = %begin to %end step %c1 {
    %gone = arith.muli %pair, %blocks : index
    %from = arith.subi %first, %gone : index
    %low = arith.maxsi %from, %c0 : index
    %to = arith.subi %last, %gone : index
    %high = arith.minsi %to, %blocks : index
    scf.for %tile = %low to %high step %c1 {
      %v = kernel.load %x[%pair, %tile] strides [%size, 1] : memref<?xf32> -> f32
    }
  }
  kernel.return
}
"""


def shared(tasks: int, blocks: int, size: int) -> Touched:
    return {0: [task // blocks * size + task % blocks for task in range(tasks)]}


SLOTS = """
kernel.func @slotted(%x: memref<?xf32>, %tasks: index, %slots: index, %size: index) attributes {target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %slot = kernel.worker_slot %tasks, %slots
  scf.for %i = %c0 to %size step %c1 {
    %v = kernel.load %x[%slot, %i] strides [%size, 1] : memref<?xf32> -> f32
  }
  kernel.return
}
"""


def slotted(tasks: int, slots: int, size: int) -> Touched | None:
    return {0: range(slots * size)} if slots else None


GATHER = """
kernel.func @gather(%i: memref<?xi64>, %x: memref<?xf32>, %n: index, %rows: index) attributes {target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  kernel.parallel(%n) {
  ^bb0(%j: index):
    %raw = kernel.load %i[%j] strides [1] : memref<?xi64> -> i64
    %index = arith.index_cast %raw : i64 to index
    %most = arith.subi %rows, %c1 : index
    %below = arith.minsi %index, %most : index
    %inside = arith.maxsi %below, %c0 : index
    %v = kernel.load %x[%inside] strides [1] : memref<?xf32> -> f32
    %small = arith.cmpi slt, %index, %rows : index
    %natural = arith.cmpi sge, %index, %c0 : index
    %both = arith.andi %small, %natural : i1
    scf.if %both {
      kernel.store %v, %x[%index] strides [1] : f32, memref<?xf32>
    }
    kernel.yield
  }
  kernel.return
}
"""


def gather(n: int, rows: int) -> Touched:
    return {0: range(n), 1: range(max(rows, 1)) if n else ()}


TILES = """
kernel.func @tiles(%x: memref<?xf32>, %tasks: index, %per_task: index, %rows: index) attributes {target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  kernel.parallel(%tasks) {
  ^bb0(%task: index):
    %first = arith.muli %task, %per_task : index
    %end = arith.addi %first, %per_task : index
    %last = arith.minsi %end, %rows : index
    %size = arith.subi %last, %first : index
    %left = arith.remui %size, %c4 : index
    %whole = arith.subi %last, %left : index
    scf.for %row = %first to %whole step %c4 {
      kernel.parallel(%c4) {
      ^bb1(%i: index):
        %v = kernel.load %x[%row, %i] strides [1, 1] : memref<?xf32> -> f32
        kernel.yield
      }
    }
    kernel.yield
  }
  kernel.return
}
"""


def tiles(tasks: int, per_task: int, rows: int) -> Touched | None:
    if tasks * per_task >= rows + per_task:  # tasks without rows
        return None
    ends = [(t * per_task, min((t + 1) * per_task, rows)) for t in range(tasks)]
    return {0: [row for first, last in ends for row in range(first, last - (last - first) % 4)]}


WHOLE_TILES = """
kernel.func @whole_tiles(%x: memref<?xf32>, %tasks: index, %rows: index) attributes {target = "cpu"} {
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  kernel.parallel(%tasks) {
  ^bb0(%task: index):
    %first = arith.muli %task, %c8 : index
    %end = arith.addi %first, %c8 : index
    %last = arith.minsi %end, %rows : index
    scf.for %row = %first to %last step %c4 {
      kernel.parallel(%c4) {
      ^bb1(%i: index):
        %v = kernel.load %x[%row, %i] strides [1, 1] : memref<?xf32> -> f32
        kernel.yield
      }
    }
    kernel.yield
  }
  kernel.return
}
"""


def whole_tiles(tasks: int, rows: int) -> Touched:
    return {0: [row + i for t in range(tasks) for row in range(8 * t, min(8 * t + 8, rows), 4) for i in range(4)]}


BORDERED = """
kernel.func @bordered(%x: memref<?xf32>, %rows: index, %step: index, %border: index, %inner: index)
    attributes {target = "cpu"} {
  %c0 = arith.constant 0 : index
  kernel.parallel(%rows) {
  ^bb0(%row: index):
    %source = arith.subi %row, %border : index
    %inside = arith.cmpi ult, %source, %inner : index
    %begin = arith.select %inside, %c0, %step : index
    %length = arith.subi %step, %begin : index
    kernel.parallel(%length) {
    ^bb1(%i: index):
      %v = kernel.load %x[%source, %begin, %i] strides [%step, 1, 1] : memref<?xf32> -> f32
      kernel.yield
    }
    kernel.yield
  }
  kernel.return
}
"""


def bordered(rows: int, step: int, border: int, inner: int) -> Touched:
    sources = [row - border for row in range(rows) if 0 <= row - border < inner]
    return {0: [source * step + i for source in sources for i in range(step)]}


REPEATED = """
kernel.func @repeated(%x: memref<?xf32>, %rows: index, %shift: index, %period: index) attributes {target = "cpu"} {
  kernel.parallel(%rows) {
  ^bb0(%row: index):
    %moved = arith.subi %row, %shift : index
    %is_out = arith.cmpi uge, %moved, %period : index
    %source = scf.if %is_out -> (index) {
      %turn = arith.floordivsi %moved, %period : index
      %gone = arith.muli %turn, %period : index
      %rest = arith.subi %moved, %gone : index
      scf.yield %rest : index
    } else {
      scf.yield %moved : index
    }
    %v = kernel.load %x[%source] strides [1] : memref<?xf32> -> f32
    kernel.yield
  }
  kernel.return
}
"""


def repeated(rows: int, shift: int, period: int) -> Touched | None:
    return {0: [(row - shift) % period for row in range(rows)]} if period else None


RANKED = """
kernel.func @ranked(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %count: index) attributes {target = "cpu"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0 : i32
  kernel.parallel(%n) {
  ^bb0(%i: index):
    %own = kernel.load %x[%i] strides [1] : memref<?xf32> -> f32
    %sum = kernel.reduce add(%n) init %z : i32 -> i32 {
    ^bb1(%j: index):
      %other = kernel.load %x[%j] strides [1] : memref<?xf32> -> f32
      %less = arith.cmpf olt, %other, %own : f32
      %one = arith.extui %less : i1 to i32
      kernel.yield %one : i32
    }
    %rank = arith.index_cast %sum : i32 to index
    %taken = arith.cmpi slt, %rank, %count : index
    scf.if %taken {
      kernel.store %own, %y[%rank] strides [1] : f32, memref<?xf32>
    }
    %place = kernel.reduce min(%n) init %n : index -> index {
    ^bb2(%j: index):
      %other = kernel.load %x[%j] strides [1] : memref<?xf32> -> f32
      %less = arith.cmpf olt, %other, %own : f32
      %found = arith.select %less, %j, %n : index
      kernel.yield %found : index
    }
    %most = arith.subi %n, %c1 : index
    %inside = arith.minsi %place, %most : index
    %v = kernel.load %x[%inside] strides [1] : memref<?xf32> -> f32
    kernel.yield
  }
  kernel.return
}
"""


def ranked(n: int, count: int) -> Touched:
    return {0: range(n), 1: range(min(n + 1, count) if n else 0)}


SAMPLED = """
kernel.func @sampled(%x: memref<?xf32>, %n: index, %some: index) attributes {target = "cpu"} {
  %c0 = arith.constant 0 : index
  %fits = arith.cmpi slt, %some, %n : index
  %length = arith.select %fits, %some, %c0 : index
  kernel.parallel(%length) {
  ^bb0(%i: index):
    %v = kernel.load %x[%i] strides [1] : memref<?xf32> -> f32
    kernel.yield
  }
  kernel.return
}
"""


def sampled(n: int, some: int) -> Touched:
    return {0: range(some if some < n else 0)}


CASES: Sequence[tuple[str, Callable[..., Touched | None], int]] = [
    (TILED, tiled, 3),
    (RECURRENCE, recurrence, 2),
    (WINDOW, window, 4),
    (SPLIT, split, 3),
    (SHARED, shared, 3),
    (SLOTS, slotted, 3),
    (GATHER, gather, 2),
    (TILES, tiles, 3),
    (WHOLE_TILES, whole_tiles, 2),
    (BORDERED, bordered, 4),
    (REPEATED, repeated, 3),
    (RANKED, ranked, 2),
    (SAMPLED, sampled, 2),
]
# Those that touch the last element in reach, for all numbers.
EXACT = (whole_tiles, bordered, ranked, sampled)
NUMBERS = (0, 1, 2, 3, 5, 9)


def read(text: str, signed: Sequence[int] = ()) -> tuple[Contract, int]:
    """The contract of a kernel, and how many pointers come first."""
    kernel = parse_kernel(text)
    types = ["ptr" if str(arg.type).startswith("memref") else "i64" for arg in kernel.body.block.args]
    head = {"objects": [], "args": types, "block": [1, 1, 1], "shared_bytes": 0, "cluster": 1}
    section = contracts_section({"": [{**head, **contract_of(kernel, signed)}]}, [])
    return read_contracts(section).kernels[""][0], types.count("ptr")


@pytest.mark.parametrize(("text", "touched", "count"), CASES, ids=[case[1].__name__ for case in CASES])
def test_extents_hold_what_a_launch_touches(text: str, touched: Callable[..., Touched | None], count: int) -> None:
    contract, pointers = read(text)
    assert not contract.unproved
    exact = 0
    total = 0
    for numbers in itertools.product(NUMBERS, repeat=count):
        if touched is shared and numbers[1] == 0 and numbers[0]:  # tasks of no blocks
            continue
        if (touches := touched(*numbers)) is None:
            continue
        found = contract.extents_of([None] * pointers + list(numbers), (1, 1, 1))
        wanted = {place: set(elements) for place, elements in touches.items()}
        if isinstance(found, str):
            assert not any(wanted.values()), f"{numbers}: {found}"
            continue
        for place, elements in wanted.items():
            width = 8 if touched is gather and place == 0 else 4
            start, end = found.get(place, (0, 0))
            assert not elements or (start <= min(elements) * width and (max(elements) + 1) * width <= end), numbers
            ends = (min(elements) * width, (max(elements) + 1) * width) if elements else (0, 0)
            exact += ends == (start, max(end, start))
            total += 1
    assert exact >= (1 if touched in EXACT else 0.7) * total, f"{exact} of {total} are exact"


def test_negative_numbers_are_for_those_that_may_be() -> None:
    text = """
    kernel.func @back(%x: memref<?xf32>, %n: index, %step: index) attributes {target = "cpu"} {
      kernel.parallel(%n) {
      ^bb0(%i: index):
        %v = kernel.load %x[%i] strides [%step] : memref<?xf32> -> f32
        kernel.yield
      }
      kernel.return
    }"""
    contract, _ = read(text)
    assert contract.extents_of([None, 3, -1], (1, 1, 1)) == "argument 2 is -1, which must not be negative"
    contract, _ = read(text, [2])
    assert contract.extents_of([None, 3, -1], (1, 1, 1)) == {0: (-8, 4)}
    assert contract.extents_of([None, 3, 2], (1, 1, 1)) == {0: (0, 20)}
    assert contract.extents_of([None, 2**40, 2**30], (1, 1, 1)) == "its numbers are too large"


def test_constants_are_those_of_every_launch() -> None:
    kernel = parse_kernel(TILED)
    head = {"objects": [], "args": ["ptr", "i64", "i64", "i64"], "block": [1, 1, 1], "shared_bytes": 0, "cluster": 1}
    found = contract_of(kernel, constants={1: 10, 3: 12})
    contract = read_contracts(contracts_section({"": [{**head, **found}]}, [])).kernels[""][0]
    assert contract.extents_of([None, 10, 3, 12], (1, 1, 1)) == {0: (0, 136)}
    assert contract.extents_of([None, 11, 3, 12], (1, 1, 1)) == "argument 1 is 11, its code is for 10"
    whole, _ = read(TILED)
    assert len(contract.numbers) < len(whole.numbers) / 2


@pytest.mark.parametrize("operation", ["remsi", "divsi", "floordivsi"])
def test_data_with_negative_bounds_may_be_divided(operation: str) -> None:
    contract, _ = read(
        f"""
    kernel.func @clipped(%i: memref<?xi64>, %n: index) attributes {{target = "cpu"}} {{
      %least = arith.constant -6 : i64
      %most = arith.constant 6 : i64
      %raw = kernel.load %i[] strides [] : memref<?xi64> -> i64
      %some = arith.maxsi %raw, %least : i64
      %clipped = arith.minsi %some, %most : i64
      %found = arith.{operation} %clipped, %most : i64
      %other = arith.{operation} %most, %clipped : i64
      kernel.store %found, %i[] strides [] : i64, memref<?xi64>
      kernel.return
    }}"""
    )
    assert contract.extents_of([None, 3], (1, 1, 1)) == {0: (0, 8)}


def test_what_nothing_bounds_is_unproved() -> None:
    contract, _ = read(
        """
    kernel.func @anywhere(%i: memref<?xi64>, %x: memref<?xf32>) attributes {target = "cpu"} {
      %raw = kernel.load %i[] strides [] : memref<?xi64> -> i64
      %index = arith.index_cast %raw : i64 to index
      %v = kernel.load %x[%index] strides [1] : memref<?xf32> -> f32
      kernel.return
    }"""
    )
    assert contract.unproved == {1}
    assert contract.extents_of([None, None], (1, 1, 1)) == {0: (0, 8)}
