"""The number of a thread in mixed radix: what a kernel divides it by decides the digits, which vary independently.

`t // 32` and `t % 32` of one thread are bounded apart from each other once `t` is `32 q + r`; as a quotient and a
difference of one unknown they are not.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.simt import ThreadIdOp
from mlirt.dialects.kernel.warpgroup import WarpValueOp


def thread_radices(kernel: FuncOp, threads: int) -> list[int]:
    """What the digits of a thread's number count, the first one 1; each divides the next one, and the last `threads`.

    They are constants that the number, a quotient or a remainder of it are divided by, as far as these fit each other.
    """
    parts: dict[SSAValue, int] = {}
    """Quotients of a thread's number, or remainders of those, by what they have been divided by."""
    found: set[int] = set()
    for op in kernel.body.walk():
        if isinstance(op, ThreadIdOp):
            parts[op.result] = 1
        elif isinstance(op, WarpValueOp) and op.operands[0] in parts:
            parts[op.results[0]] = parts[op.operands[0]]
        elif op.name in ("arith.divui", "arith.remui") and op.operands[0] in parts:
            divisor, before = _constant(op.operands[1]), parts[op.operands[0]]
            if divisor is not None and divisor > 0:
                parts[op.results[0]] = before * divisor if op.name == "arith.divui" else before
                found.add(before * divisor)
    chosen = [1]
    for radix in sorted(found):
        if radix > chosen[-1] and radix % chosen[-1] == 0 and threads % radix == 0 and radix < threads:
            chosen.append(radix)
    return chosen


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None
