"""How the warpgroups of a block share registers: those that copy leave some to those that multiply."""

from __future__ import annotations

from mlirt.dialects.kernel.simt import WARPGROUP, registers_at_start
from mlirt.kernels.lib.language.hopper_words import set_registers

# Of each thread, by the warpgroups that multiply: of the one that starts copies, and of these. Together they have no
# more than the block starts with: a warpgroup that asks for more waits for ever.
SHARES = {2: (40, 232), 3: (32, 160)}


def even_share(groups: int) -> int:
    """The registers that each thread starts with, where so many warpgroups multiply and another one copies."""
    return registers_at_start(WARPGROUP * (groups + 1))


def most_registers(groups: int, *, fixed: bool) -> int:
    """Those of a thread that multiplies, which get what the others give unless these are `fixed`."""
    return even_share(groups) if fixed or groups not in SHARES else SHARES[groups][1]


def are_given(groups: int, held: int) -> bool:
    """Whether threads that multiply get more, where each holds so many numbers.

    Where these are few, blocks take no more registers than they need: the next launch may begin beside them.
    """
    return groups in SHARES and 2 * held > even_share(groups)


def give_registers(groups: int, held: int, *, multiplies: bool) -> None:
    """Write what this warpgroup does: leave registers to others, or take what they leave."""
    if are_given(groups, held):
        set_registers(SHARES[groups][multiplies], grow=multiplies)
