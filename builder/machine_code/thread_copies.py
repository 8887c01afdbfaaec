"""Copies to shared memory that threads start (cp.async): LDGSTS, and DEPBAR.LE SB0, which waits for them.

Which of several stages an instruction reads is an address, and how often a loop starts copies is a number: neither is
followed. What is: behind the first copy nothing reads shared memory without a wait, and between a wait and a read
stands a barrier of the block, as the other threads have copied too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlirt.builder.machine_code.listing import Instruction, Listing
from mlirt.builder.machine_code.paths import Report

SHARED_READS = frozenset({"LDS", "LDSM", "ATOMS"})
BARRIERS = ("BAR.SYNC", "BAR.RED", "UCGABAR_WAIT")


@dataclass(frozen=True)
class Copies:
    """Whether copies have been started, whether a wait was passed, and whether a barrier followed the last wait."""

    begun: bool = False
    awaited: bool = False
    shared: bool = False


class ThreadCopyRule:
    """Reads of shared memory come after a wait and a barrier."""

    def __init__(self, listing: Listing) -> None:
        self.matters = any(one.name == "LDGSTS" for one in listing.instructions)

    def start(self) -> Copies:
        return Copies()

    def along(self, branch: Instruction, state: Copies, taken: bool) -> Copies:
        return state

    def after(self, instruction: Instruction, state: Copies, report: Report) -> Copies:
        if instruction.name == "LDGSTS":
            return replace(state, begun=True)
        if instruction.opcode == "DEPBAR.LE" and instruction.operands.startswith("SB0"):
            return replace(state, awaited=True, shared=False)
        if instruction.opcode.startswith(BARRIERS):
            return replace(state, shared=True)
        if instruction.name in SHARED_READS and state.begun:
            if not state.awaited:
                report(instruction, "it reads shared memory, and no copy that was started has been waited for")
            elif not state.shared:
                report(instruction, "it reads shared memory, and no barrier follows the wait for the copies")
        return state
