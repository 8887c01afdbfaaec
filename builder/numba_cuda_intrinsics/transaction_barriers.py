"""Barriers in shared memory that count arrivals of threads and bytes of copies (mbarriers)."""

from __future__ import annotations

from typing import Any

from mlirt.builder.numba_cuda_intrinsics.instructions import I32, ptx, word
from mlirt.builder.numba_cuda_intrinsics.threads import shared_address
from mlirt.builder.numba_cuda_intrinsics.untyped import ir, types

_BARRIER = [types.CPointer(types.int64), types.int64]
_BYTES = 8


def _word(text: str, *more: Any) -> Any:
    """`word(barriers, index, ..)`: one instruction on a barrier whose address is `$0`; a number is part of its text."""

    def emit(builder: Any, barriers: Any, index: Any, *rest: Any) -> Any:
        address = shared_address(builder, barriers, index, _BYTES)
        if rest and isinstance(rest[0], ir.Constant):
            return ptx(builder, text.replace("$1", str(rest[0].constant)), [], [address], memory=True)
        return ptx(builder, text, [], [address, *(builder.trunc(one, I32) for one in rest)], memory=True)

    return word(types.void, [*_BARRIER, *more], emit)


mbarrier_init = _word("mbarrier.init.shared::cta.b64 [$0], $1;", types.int64)
mbarrier_expect = _word("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", types.int64)
mbarrier_arrive = _word("mbarrier.arrive.shared::cta.b64 _, [$0];")
mbarrier_wait = _word(
    "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @p bra DONE; bra AGAIN; DONE: }",
    types.int64,
)


def _fence(builder: Any) -> Any:
    return ptx(builder, "fence.mbarrier_init.release.cluster;", [], [], memory=True)


mbarrier_fence = word(types.void, [], _fence)


def _async_fence(builder: Any) -> Any:
    return ptx(builder, "fence.proxy.async.shared::cta;", [], [], memory=True)


async_fence = word(types.void, [], _async_fence)
