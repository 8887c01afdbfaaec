"""Builds networks with an implicit batch: as those with an explicit one, for 1 to the builder's largest batch
(tensorrt-features.md#2.17).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.builder.api.optimization_profile import IOptimizationProfile

if TYPE_CHECKING:
    from mlirt.builder.api.builder_config import IBuilderConfig
    from mlirt.frontend.network.definition import INetworkDefinition


def explicit(
    network: INetworkDefinition, config: IBuilderConfig, max_batch_size: int
) -> tuple[INetworkDefinition, IBuilderConfig]:
    """The network and the configuration to build in the place of these; themselves where the batch is explicit."""
    if not network.graph.has_implicit_batch:
        return network, config
    found = network.with_batch(max_batch_size)
    own = config.for_profile(_profile(found, 1, max_batch_size))
    if config.int8_calibrator is not None:
        size = config.int8_calibrator.get_batch_size()
        own.set_calibration_profile(_profile(found, size, size))
    return found, own


def _profile(network: INetworkDefinition, least: int, most: int) -> IOptimizationProfile:
    found = IOptimizationProfile()
    for one in network.graph.inputs:
        if -1 in one.shape:
            smallest, largest = ([count, *list(one.shape)[1:]] for count in (least, most))
            found.set_shape(one.name, smallest, largest, largest)
    return found
