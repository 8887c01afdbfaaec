"""What asynchronous operations of a cubin need, checked on all paths of its machine code.

Covered, for every kernel and every path that the instructions allow:
  * wgmma (HGMMA, IGMMA, QGMMA): nothing but another one reads or writes its accumulators until a wait has covered its
  group,
    and nothing writes a left matrix in registers; WARPGROUP.ARRIVE stands between a change of such registers and the
    product that reads them.
  * cp.async (LDGSTS): no read of shared memory (LDS, LDSM) before the first wait, nor between a wait and the
    next barrier of the block.
  * Copies by the device (TMA, UBLKCP) to shared memory: no product and no read before a wait on a barrier that counts
    bytes has succeeded; no such barrier is used before a barrier of the block, where the kernel makes them.
  * Copies by the device out of shared memory: FENCE.VIEW.ASYNC between what threads wrote and the copy, or a product
    that reads it; no end of the kernel before they have been waited for.
  * tcgen05 (UTCHMMA, UTCIMMA, UTCQMMA): no end of the kernel before products are committed to a barrier (UTCBAR), no
    load of accumulators (LDTM) before a wait on a barrier has succeeded, no use of tensor memory behind its release,
    and a release behind a barrier of the block.
  * wgmma: not each product is waited for before the next one starts, which the assembler does where a kernel calls
    functions. That is right, and takes several times as long.
  * A branch or call whose target is not in the code is reported: no path is left out.
Not covered, as it depends on addresses: which stage of shared memory an instruction reads and which barrier belongs to
it, whether a stage is written again too early, whether a parity is the right one, how many bytes a barrier was told to
expect; what threads of a block do to each other; fences for tensor maps in global memory, which no kernel here uses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlirt.builder.kernel_cache import KernelCache, key_of, sources_digest, versions
from mlirt.builder.machine_code.accumulators import AccumulatorRule, FenceRule
from mlirt.builder.machine_code.bulk_copies import ArrivalRule, StoreRule
from mlirt.builder.machine_code.cubins_in_files import is_asynchronous
from mlirt.builder.machine_code.disassembler import PACKAGE, disassemble
from mlirt.builder.machine_code.listing import Listing, parse_listing
from mlirt.builder.machine_code.paths import Rule, Violation, follow
from mlirt.builder.machine_code.serialization import serialized
from mlirt.builder.machine_code.tensor_memory import TensorMemoryRule
from mlirt.builder.machine_code.thread_copies import ThreadCopyRule

RULES: tuple[Callable[[Listing], Rule[Any]], ...] = (
    AccumulatorRule,
    FenceRule,
    ThreadCopyRule,
    ArrivalRule,
    StoreRule,
    TensorMemoryRule,
)


def violations(listing: Listing) -> list[Violation]:
    """What any rule finds in any kernel of a listing."""
    every = [make(listing) for make in RULES]
    rules = [rule for rule in every if rule.matters] or every[:1]  # one at least: paths that cannot be followed
    found = [one for kernel in listing.kernels for rule in rules for one in follow(listing, kernel, rule)]
    return [*found, *serialized(listing)]


def faults_of(cubin: bytes) -> list[str]:
    """A line for each violation in a cubin; known ones come from the cache.

    Raises `MissingPackageError` where nvdisasm is not installed, `CompileError` where it refuses the cubin.
    """
    return faults_of_all([cubin])[0]


def faults_of_all(cubins: Sequence[bytes]) -> list[list[str]]:
    """The same for each of several cubins, which takes much less time than one after the other."""
    cache, found = KernelCache(), dict[bytes, list[str]]()
    for cubin in dict.fromkeys(cubins):
        known = b"" if not is_asynchronous(cubin) else cache.get(_key(cubin), lambda _: True)
        if known is not None:  # an empty entry is one without faults
            found[cubin] = known.decode().splitlines()
    missing = [cubin for cubin in dict.fromkeys(cubins) if cubin not in found]
    for cubin, text in zip(missing, disassemble(missing), strict=True):
        found[cubin] = [str(one) for one in violations(parse_listing(text))]
        cache.put(_key(cubin), "\n".join(found[cubin]).encode())
    return [found[cubin] for cubin in cubins]


def _key(cubin: bytes) -> str:
    digest = hashlib.blake2b(cubin, digest_size=20).hexdigest()
    return key_of("machine code", digest, sources_digest(Path(__file__).parent), versions(PACKAGE))
