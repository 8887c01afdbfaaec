"""What the groups of `add_..` methods of a network share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.frontend.network.graph import NetworkGraph


class Methods:
    """A part of `INetworkDefinition`."""

    graph: NetworkGraph
