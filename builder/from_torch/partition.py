"""Which parts of a graph become engines: as few and as large as the operators that are left to PyTorch allow."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.frontend.importing.network import Network
from mlirt.frontend.torch.subgraph import read_graph


def refused_names(graph: Any, weights: Mapping[str, Any]) -> set[str]:
    """The nodes of a graph that no engine can have: operators without layers, and all that is no tensor."""
    ctx = RtContext()
    register_dialects(ctx)
    reader, _, _ = read_graph(graph, weights, Network(ctx.weights))
    return {node.name for node in reader.refused_nodes}


def partitioned(module: Any, refused: set[str]) -> Any:
    """The graph with parts as submodules `fused_0`, `fused_1`, ..; what is refused stays between them."""
    partitioner = CapabilityBasedPartitioner(module, _Supported(refused), allows_single_node_partition=True)
    return partitioner.fuse_partitions(partitioner.propose_partitions(), prefix="fused_")


class _Supported(OperatorSupportBase):
    """Calls whose results are tensors; sizes are computed between the engines, which take them from shapes."""

    def __init__(self, refused: set[str]) -> None:
        self._refused = refused

    def is_node_supported(self, submodules: Any, node: Any) -> bool:
        """Whether an engine may have the node."""
        if node.op != "call_function" or node.name in self._refused:
            return False
        found = node.meta.get("val")
        parts = found if isinstance(found, tuple | list) else [found]
        return all(isinstance(part, torch.Tensor) for part in parts)
