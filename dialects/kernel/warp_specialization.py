"""Warp specialisation: warpgroups that run the same code, each at its own pace."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Region
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, irdl_op_definition, prop_def, region_def, traits_def
from xdsl.traits import RecursiveMemoryEffect

from mlirt.dialects.kernel.warpgroup import WARPGROUP


@irdl_op_definition
class EachWarpgroupOp(IRDLOperation):
    """What each warpgroup does by itself: inside, one may wait for what another one does there.

    Threads of a warp stay together as anywhere else; code outside is for threads that do not wait for each other. With
    fewer `threads` it is what each group of so many does, such as each warp.

    Example: `kernel.each_warpgroup { kernel.mbarrier_wait %full[%s] parity %p : .. kernel.yield }`
    """

    name = "kernel.each_warpgroup"

    body = region_def("single_block")
    threads = prop_def(IntegerAttr, default_value=IntegerAttr(WARPGROUP, i64))
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(RecursiveMemoryEffect())
    assembly_format = "attr-dict-with-keyword $body"

    def __init__(self, body: Region | None = None, threads: int = WARPGROUP) -> None:
        properties = {"threads": IntegerAttr(threads, i64)}
        super().__init__(properties=properties, regions=[body if body is not None else Region(Block())])
