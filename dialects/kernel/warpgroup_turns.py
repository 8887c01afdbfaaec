"""Warpgroups that run the same code, each at its own pace."""

from __future__ import annotations

from xdsl.ir import Block, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, region_def, traits_def
from xdsl.traits import RecursiveMemoryEffect


@irdl_op_definition
class EachWarpgroupOp(IRDLOperation):
    """What each warpgroup does by itself: inside, one may wait for what another one does there.

    Threads of a warp stay together as anywhere else; code outside is for threads that do not wait for each other.

    Example: `kernel.each_warpgroup { kernel.mbarrier_wait %full[%s] parity %p : .. kernel.yield }`
    """

    name = "kernel.each_warpgroup"

    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "attr-dict-with-keyword $body"

    def __init__(self, body: Region | None = None) -> None:
        super().__init__(regions=[body if body is not None else Region(Block())])
