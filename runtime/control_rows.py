"""Lays a program out as a flat list of rows with jumps, as the main loop on the CPU runs it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from mlirt.runtime.bound_launch import Address
from mlirt.runtime.expressions import evaluate
from mlirt.runtime.program import Branch, Loop, Program, Requirement, SizeCheck
from mlirt.runtime.shape_binding import ShapeBinding


@dataclass(frozen=True)
class KernelRow:
    """Run the kernel of a launch."""

    launch: int


@dataclass
class JumpRow:
    """Go to row `target` where the byte is 0; without a place, always."""

    place: Address | None
    target: int = 0


@dataclass(frozen=True)
class SizeRow:
    """Stop unless the word is what the symbol was taken for; without a place, the host knows that it is not."""

    symbol: str
    place: Address | None
    expected: int


@dataclass(frozen=True)
class RequireRow:
    """Stop where the byte is 0; without a place, always."""

    place: Address | None
    message: str


@dataclass(frozen=True)
class HostRow:
    """Stop, for the host to make a launch; the run goes on with the next row then."""

    launch: int


Row: TypeAlias = "KernelRow | JumpRow | SizeRow | RequireRow | HostRow"


def rows_of(program: Program, binding: ShapeBinding, hosted: Collection[int] = ()) -> list[Row]:
    """The rows of a program that is `decided` for one set of shapes; the host makes the launches `hosted`.

    Where there are such, row 0 jumps to where a run begins or goes on.
    """
    rows: list[Row] = [JumpRow(None, 1)] if hosted else []
    _append(program, binding, rows)
    return [HostRow(row.launch) if isinstance(row, KernelRow) and row.launch in hosted else row for row in rows]


def _append(program: Program, binding: ShapeBinding, rows: list[Row]) -> None:
    for step in program:
        if isinstance(step, int):
            rows.append(KernelRow(step))
        elif isinstance(step, Branch):
            _append_branch(step, binding, rows)
        elif isinstance(step, Loop):
            _append_loop(step, binding, rows)
        elif isinstance(step, Requirement):
            place = None if step.condition is None else binding.places[step.condition]
            rows.append(RequireRow(place, step.message))
        elif isinstance(step, SizeCheck):
            rows.extend(_size_rows(step, binding))


def _append_branch(step: Branch, binding: ShapeBinding, rows: list[Row]) -> None:
    skip = JumpRow(binding.places[step.condition])
    rows.append(skip)
    _append(step.then, binding, rows)
    leave = JumpRow(None)
    if step.otherwise:
        rows.append(leave)
    skip.target = len(rows)
    _append(step.otherwise, binding, rows)
    leave.target = len(rows)


def _append_loop(step: Loop, binding: ShapeBinding, rows: list[Row]) -> None:
    start = len(rows)
    _append(step.before, binding, rows)
    leave = JumpRow(binding.places[step.condition])
    rows.append(leave)
    _append(step.body, binding, rows)
    rows.append(JumpRow(None, start))
    leave.target = len(rows)


def _size_rows(step: SizeCheck, binding: ShapeBinding) -> list[Row]:
    expected = binding.values[step.symbol]
    if step.word is not None:
        return [SizeRow(step.symbol, binding.places[step.word], expected)]
    actual = evaluate(step.value, binding.values)
    return [] if actual == expected else [SizeRow(step.symbol, None, actual)]
