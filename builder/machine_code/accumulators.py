"""The registers of wgmma: its accumulators are left alone until they have been waited for, its left matrix is not
changed.

A group is what was started up to an instruction with `gsb0`; `WARPGROUP.DEPBAR.LE gsb0, n` leaves the n newest groups
under way. Products may follow one another on the same sums.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mlirt.builder.machine_code.listing import Instruction, Listing
from mlirt.builder.machine_code.paths import Report
from mlirt.builder.machine_code.registers import (
    PRODUCTS,
    accumulators,
    left_registers,
    reads_accumulators,
    touched,
    written,
)

_WAIT = re.compile(r"gsb0,\s*0x([0-9a-f]+)")


@dataclass(frozen=True)
class Group:
    """What products that are under way write and read."""

    accumulators: frozenset[range] = frozenset()
    left: frozenset[int] = frozenset()

    def joined(self, other: Group) -> Group:
        return Group(self.accumulators | other.accumulators, self.left | other.left)


@dataclass(frozen=True)
class UnderWay:
    """Groups, the oldest in front, and the group that is not complete yet."""

    groups: tuple[Group, ...] = ()
    begun: Group = Group()

    @property
    def all(self) -> Group:
        total = self.begun
        for group in self.groups:
            total = total.joined(group)
        return total


class AccumulatorRule:
    """Nothing but products touches accumulators under way, and nothing writes a left matrix under way."""

    def __init__(self, listing: Listing) -> None:
        waits = [_left_over(one) for one in listing.instructions if _is_wait(one)]
        # Every wait completes what is older than this, so that older groups need not be told apart.
        self.newest = max(waits, default=0)
        self.matters = has_products(listing)

    def start(self) -> UnderWay:
        return UnderWay()

    def along(self, branch: Instruction, state: UnderWay, taken: bool) -> UnderWay:
        return state

    def after(self, instruction: Instruction, state: UnderWay, report: Report) -> UnderWay:
        if instruction.name in PRODUCTS:
            return self._started(instruction, state, report)
        if _is_wait(instruction):
            left = _left_over(instruction)
            return UnderWay(state.groups[max(0, len(state.groups) - left) :], state.begun)
        self._look(instruction, state.all, report)
        return state

    def _started(self, product: Instruction, state: UnderWay, report: Report) -> UnderWay:
        own, left, under_way = accumulators(product), left_registers(product), state.all
        for other in under_way.accumulators:
            if other != own and set(other) & {*own, *left}:
                report(product, f"it uses R{other[0]} to R{other[-1]}, accumulators of another wgmma that is under way")
        if set(own) & under_way.left:
            report(product, "it writes the left matrix of a wgmma that is under way")
        begun = state.begun.joined(Group(frozenset({own}), frozenset(left)))
        if "gsb0" not in product.operands:
            return replace(state, begun=begun)
        return UnderWay(self._merged((*state.groups, begun)), Group())

    def _merged(self, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        if len(groups) <= self.newest + 1:
            return groups
        old = groups[0]
        for group in groups[1 : len(groups) - self.newest]:
            old = old.joined(group)
        return (old, *groups[len(groups) - self.newest :])

    def _look(self, instruction: Instruction, under_way: Group, report: Report) -> None:
        if under_way.accumulators:
            used = touched(instruction)
            for accumulators in under_way.accumulators:
                if hit := used.intersection(accumulators):
                    report(instruction, f"R{min(hit)} is a sum of a wgmma that has not been waited for")
        if under_way.left and (hit := written(instruction) & under_way.left):
            report(instruction, f"R{min(hit)} is written while a wgmma reads it as its left matrix")


class FenceRule:
    """Between a register's change and the wgmma that reads it stands `WARPGROUP.ARRIVE`."""

    def __init__(self, listing: Listing) -> None:
        products = [one for one in listing.instructions if one.name in PRODUCTS]
        self.relevant = frozenset(number for one in products for number in (*accumulators(one), *left_registers(one)))
        self.matters = bool(products)

    def start(self) -> frozenset[int]:
        return frozenset()

    def along(self, branch: Instruction, state: frozenset[int], taken: bool) -> frozenset[int]:
        return state

    def after(self, instruction: Instruction, state: frozenset[int], report: Report) -> frozenset[int]:
        if instruction.opcode == "WARPGROUP.ARRIVE":
            return frozenset()
        if instruction.name in PRODUCTS:
            used = {
                *(accumulators(instruction) if reads_accumulators(instruction) else ()),
                *left_registers(instruction),
            }
            if hit := used & state:
                report(instruction, f"R{min(hit)} was changed and no WARPGROUP.ARRIVE followed")
            return state
        changed = written(instruction) & self.relevant
        return state if changed <= state else state | changed


def has_products(listing: Listing) -> bool:
    """Whether there is any wgmma."""
    return any(one.name in PRODUCTS for one in listing.instructions)


def _is_wait(instruction: Instruction) -> bool:
    return instruction.opcode.startswith("WARPGROUP.DEPBAR")


def _left_over(wait: Instruction) -> int:
    found = _WAIT.search(wait.operands)
    return int(found[1], 16) if found else 0
