"""Products of warpgroups that the assembler lets end one by one, so that nothing goes on beside them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from mlirt.builder.machine_code.listing import Instruction, Listing
from mlirt.builder.machine_code.paths import Violation
from mlirt.builder.machine_code.registers import PRODUCTS

_ALL = "gsb0, 0x0"
_MIN_PRODUCTS = 4
"""Of a kernel that has more than one to wait for: those of one line of 64 halves."""


def serialized(listing: Listing) -> Iterator[Violation]:
    """The first product of each kernel in which each one is waited for before the next one starts."""
    for kernel in listing.kernels:
        own = [one for one in listing.instructions if one.function == kernel]
        products = [position for position, one in enumerate(own) if one.name in PRODUCTS]
        if len(products) >= _MIN_PRODUCTS and all(any(map(_waits_for_all, own[a:b])) for a, b in pairwise(products)):
            first = own[products[0]]
            reason = "each product ends before the next one starts: the assembler found a call or too few registers"
            yield Violation(kernel, first.number, str(first), reason)


def _waits_for_all(instruction: Instruction) -> bool:
    return instruction.opcode == "WARPGROUP.DEPBAR.LE" and instruction.operands.strip() == _ALL
