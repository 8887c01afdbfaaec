"""Copies that the device makes by itself (TMA, bulk copies), and the barriers that count their bytes (mbarriers).

Which barrier belongs to which memory is an address, which is not followed. What is: barriers are used behind a barrier
of the block where one thread has made them; products and reads come after a wait that has succeeded; what threads wrote
to shared memory is fenced before the device reads it; no kernel ends before copies out of its shared memory are done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mlirt.builder.machine_code.listing import Instruction, Listing
from mlirt.builder.machine_code.paths import Report
from mlirt.builder.machine_code.registers import PRODUCTS
from mlirt.builder.machine_code.tensor_memory import allocates, is_tensor_product
from mlirt.builder.machine_code.thread_copies import BARRIERS, SHARED_READS

_WAIT = re.compile(r"SB0,\s*0x([0-9a-f]+)")
_SHARED_WRITES = frozenset({"STS", "STSM", "ATOMS"})


def is_load(instruction: Instruction) -> bool:
    """Whether the device copies to shared memory."""
    return instruction.name == "UTMALDG" or instruction.opcode.startswith("UBLKCP.S.G")


def is_store(instruction: Instruction) -> bool:
    """Whether the device copies, or adds, from shared memory."""
    return instruction.name in ("UTMASTG", "UTMAREDG", "UBLKRED") or instruction.opcode.startswith("UBLKCP.G.S")


@dataclass(frozen=True)
class Arrivals:
    """Whether a barrier of the block was passed, one that counts bytes too, and the predicate that tells of that."""

    shared: bool = False
    arrived: bool = False
    asked: str = ""


class ArrivalRule:
    """Products and reads of shared memory that the device fills come after a barrier that counts its bytes."""

    def __init__(self, listing: Listing) -> None:
        self.makes = any(one.opcode.startswith("SYNCS.EXCH") for one in listing.instructions)
        self.loads = any(map(is_load, listing.instructions))
        self.matters = self.makes or self.loads
        # Behind tensor memory threads read no tiles, but its address, and what the assembler keeps of its columns.
        self.readers = PRODUCTS if allocates(listing) else PRODUCTS | SHARED_READS

    def start(self) -> Arrivals:
        return Arrivals()

    def along(self, branch: Instruction, state: Arrivals, taken: bool) -> Arrivals:
        if state.asked and branch.predicate.removeprefix("!") == state.asked:
            succeeded = taken != branch.predicate.startswith("!")
            return replace(state, arrived=state.arrived or succeeded, asked="")
        return state

    def after(self, instruction: Instruction, state: Arrivals, report: Report) -> Arrivals:
        opcode = instruction.opcode
        if opcode.startswith(BARRIERS):
            return replace(state, shared=True)
        uses_barrier = opcode.startswith(("SYNCS.ARRIVE", "SYNCS.PHASECHK")) or is_load(instruction)
        if self.makes and uses_barrier and not state.shared:
            report(instruction, "it uses a barrier in shared memory, and no barrier of the block has been passed")
        if opcode.startswith("SYNCS.PHASECHK"):
            return replace(state, asked=instruction.parts[0])
        reads = instruction.name in self.readers or is_tensor_product(instruction)
        if self.loads and not state.arrived and reads:
            report(instruction, "it reads shared memory, and no copy of the device has been waited for")
        if state.asked and state.asked in instruction.parts[:2] and instruction.name not in ("BRA", "SEL", "USEL"):
            return replace(state, asked="")
        return state


@dataclass(frozen=True)
class Stores:
    """Whether threads have written without a fence, and copies out of shared memory that are under way."""

    written: bool = False
    loose: bool = False
    groups: int = 0


class StoreRule:
    """Copies out of shared memory see what threads wrote, and end before the kernel does."""

    def __init__(self, listing: Listing) -> None:
        waits = [_left_over(one) for one in listing.instructions if _is_wait(one)]
        self.most = max(waits, default=0) + 1
        self.matters = any(one.name in PRODUCTS or is_store(one) for one in listing.instructions)

    def start(self) -> Stores:
        return Stores()

    def along(self, branch: Instruction, state: Stores, taken: bool) -> Stores:
        return state

    def after(self, instruction: Instruction, state: Stores, report: Report) -> Stores:
        name = instruction.name
        if name in _SHARED_WRITES:
            return replace(state, written=True)
        if instruction.opcode.startswith("FENCE.VIEW.ASYNC"):
            return replace(state, written=False)
        if state.written and (is_store(instruction) or name in PRODUCTS):
            report(instruction, "it reads what threads wrote to shared memory, and no FENCE.VIEW.ASYNC stands between")
        if is_store(instruction):
            return replace(state, loose=True)
        if name == "UTMACMDFLUSH" and state.loose:
            return replace(state, loose=False, groups=min(state.groups + 1, self.most))
        if _is_wait(instruction):
            return replace(state, groups=min(state.groups, _left_over(instruction)))
        if name == "EXIT" and (state.loose or state.groups):
            report(instruction, "the kernel ends while the device may still read its shared memory")
        return state


def _is_wait(instruction: Instruction) -> bool:
    return instruction.opcode == "DEPBAR.LE" and instruction.operands.startswith("SB0")


def _left_over(wait: Instruction) -> int:
    found = _WAIT.search(wait.operands)
    return int(found[1], 16) if found else 0
