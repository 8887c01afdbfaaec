"""Products into tensor memory (tcgen05): UTCHMMA and others, UTCBAR, which commits them, LDTM, UTCATOMSWS.

Which columns an instruction names is an address, which is not followed, nor which of the warps goes a way. What is: no
end of a kernel behind products that are not committed; no load before a wait has succeeded; nothing uses tensor memory
behind its release; a kernel that allocates some also frees some, behind a barrier of the block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mlirt.builder.machine_code.listing import Instruction, Listing
from mlirt.builder.machine_code.paths import Report
from mlirt.builder.machine_code.thread_copies import BARRIERS

_PRODUCT = re.compile(r"UTC[A-Z]+MMA")
_ALLOCATE, _FREE = "UTCATOMSWS.FIND_AND_SET", "UTCATOMSWS.AND"


def is_tensor_product(instruction: Instruction) -> bool:
    """Whether it multiplies into tensor memory."""
    return _PRODUCT.fullmatch(instruction.name) is not None


def allocates(listing: Listing) -> bool:
    """Whether the code allocates tensor memory; threads read none of the tiles in shared memory then."""
    return any(one.opcode.startswith(_ALLOCATE) for one in listing.instructions)


@dataclass(frozen=True)
class TensorUse:
    """Products that are not committed, a wait that has succeeded, its predicate, barriers passed, and the release."""

    loose: bool = False
    waited: bool = False
    asked: str = ""
    barriers: int = 0
    freed: bool = False


class TensorMemoryRule:
    """Products are committed, loads come behind waits, and nothing behind the release."""

    def __init__(self, listing: Listing) -> None:
        self.matters = allocates(listing) or any(map(is_tensor_product, listing.instructions))
        self.frees = any(one.opcode.startswith(_FREE) for one in listing.instructions)

    def start(self) -> TensorUse:
        return TensorUse()

    def along(self, branch: Instruction, state: TensorUse, taken: bool) -> TensorUse:
        if state.asked and branch.predicate.removeprefix("!") == state.asked:
            succeeded = taken != branch.predicate.startswith("!")
            return replace(state, waited=state.waited or succeeded, asked="")
        return state

    def after(self, instruction: Instruction, state: TensorUse, report: Report) -> TensorUse:
        opcode, name = instruction.opcode, instruction.name
        is_product = is_tensor_product(instruction)
        if state.freed and (is_product or name == "LDTM"):
            report(instruction, "it uses tensor memory behind its release")
        if opcode.startswith(BARRIERS):
            return replace(state, barriers=min(state.barriers + 1, 2))
        if opcode.startswith("SYNCS.PHASECHK"):
            return replace(state, asked=instruction.parts[0])
        if is_product:
            return replace(state, loose=True)
        if name == "UTCBAR":
            return replace(state, loose=False)
        if name == "LDTM" and not state.waited:
            report(instruction, "it loads accumulators, and no barrier has been waited for")
        if opcode.startswith(_ALLOCATE) and not self.frees:
            report(instruction, "it allocates tensor memory, and nothing frees any")
        if opcode.startswith(_FREE):
            if state.barriers < 2:
                report(instruction, "it frees tensor memory, and no barrier of the block lies behind its use")
            return replace(state, freed=True)
        if name == "EXIT" and state.loose:
            report(instruction, "the kernel ends behind products that are not committed")
        if state.asked and state.asked in instruction.parts[:2] and name not in ("BRA", "SEL", "USEL"):
            return replace(state, asked="")
        return state
