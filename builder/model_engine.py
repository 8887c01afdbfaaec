"""The engine of a model that is none of PyTorch's: from the cache of plans, else read, lowered and compiled."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from mlirt.builder.build_keys import model_key
from mlirt.builder.config.machines import machines_of
from mlirt.builder.device_choice import asking
from mlirt.builder.inner_outputs import InnerOutputs
from mlirt.builder.model_kinds import is_source_network, name_of_model
from mlirt.builder.opened import opened
from mlirt.builder.plan_cache import TAKEN, PlanCache
from mlirt.builder.plan_profiles import shape_ranges
from mlirt.counted_warnings import warnings_so_far
from mlirt.errors import reports_shortage
from mlirt.runtime.garbage_collection import rare_collections
from mlirt.runtime.plan_file import Plan, plan_for_machines

if TYPE_CHECKING:
    from mlirt.builder.config.build_config import BuildConfig, Progress
    from mlirt.builder.model_kinds import SourceNetwork
    from mlirt.builder.model_network import ModelSource
    from mlirt.builder.read_model import ModelNetwork
    from mlirt.dialects.context import RtContext
    from mlirt.runtime.engine_interface import EngineLike


_LOG = logging.getLogger("mlirt")


@reports_shortage("the build")
@rare_collections()
def build_engine(model: ModelSource | SourceNetwork, config: BuildConfig) -> EngineLike:
    """The engine of a model that is none of PyTorch's; the plugins of the configuration count already.

    The log `mlirt` has a line about it (INFO), and one about each step of the build (DEBUG).
    """
    start = perf_counter()
    if _LOG.isEnabledFor(logging.DEBUG):
        config = config.replace(progress=_logged(config.progress))
    machines = machines_of(config)
    with asking(config.device, *(() if len(machines) > 1 else (config.cpu, config.system, config.gpu))):
        if len(machines) > 1:
            engine = _engine_for_machines(model, config, machines)
        elif config.debug:
            from mlirt.builder.inner_tensors import debugged

            engine = debugged(model, config, _one_engine)
        else:
            engine = _one_engine(model, config, InnerOutputs(tuple(dict.fromkeys(config.outputs))))
    _LOG.info("mlirt: %s was built in %.2f s: %r", engine.name, perf_counter() - start, engine)
    return engine


def _logged(progress: Progress | None) -> Progress:
    def told(text: str, done: int, total: int) -> None:
        _LOG.debug("mlirt: step %d of %d: %s", done, total, text)
        if progress is not None:
            progress(text, done, total)

    return told


def _engine_for_machines(
    model: ModelSource | SourceNetwork, config: BuildConfig, machines: Mapping[str, BuildConfig]
) -> EngineLike:
    """The engine of this machine, whose plan is saved with those for the others."""
    plans = dict[str, Plan]()
    for name, one in machines.items():
        with asking(one.device, one.cpu, one.system, one.gpu):
            found = _plan_or_engine(model, one, InnerOutputs(tuple(dict.fromkeys(one.outputs))))
        assert isinstance(found, Plan)
        plans[name] = found
    plan = plan_for_machines(plans)
    return opened(plan, plan.manifest.target.kind, config)


def _one_engine(model: ModelSource | SourceNetwork, config: BuildConfig, inner: InnerOutputs) -> EngineLike:
    """An engine that stands alone."""
    found = _plan_or_engine(model, config, inner)
    return opened(found, found.manifest.target.kind, config) if isinstance(found, Plan) else found


def _plan_or_engine(model: ModelSource | SourceNetwork, config: BuildConfig, inner: InnerOutputs) -> Plan | EngineLike:
    """The plan of a model, from the cache if the same one was built before; the interpreter has an engine alone."""
    target = config.chosen_target()
    name, cache = name_of_model(model), PlanCache()
    key = None
    if not is_source_network(model) and cache.is_open:
        key = model_key(model, target, config, name, inner)
    plan = None if key is None else cache.get(key)
    if plan is not None:
        if config.progress is not None:
            config.progress(TAKEN, 0, 1)
        return plan
    # The compiler is not even imported for a plan that was built before: that takes three quarters of its start.
    from mlirt.builder.read_model import read_model_network
    from mlirt.dialects.context import RtContext
    from mlirt.passes.remarks import recording

    warned = warnings_so_far()
    ctx = RtContext()
    network = read_model_network(model, ctx, config, target, inner)
    if network.target == "reference":
        return _reference_engine(network, ctx, config, name)
    from mlirt.builder.build import BuildOptions, build_plan
    from mlirt.builder.tactics.tuning import tuning_of

    options = BuildOptions.of(
        config, name=name, first=network.first, pipeline=network.pipeline, state=network.state, frees_weights=True
    )
    if key is not None and warnings_so_far() == warned:
        options = replace(options, kept_as=[key])
    with tuning_of(config, network.target) as choice, recording(config.remarks):
        return build_plan(network.module, ctx, network.target, replace(options, tuning=choice))


def _reference_engine(network: ModelNetwork, ctx: RtContext, config: BuildConfig, name: str) -> EngineLike:
    from mlirt.builder.reference_engine import ReferenceEngine

    if "int8" in config.precision and network.first in (None, "cleanup"):
        from mlirt.passes.pipeline import run_phases

        run_phases(network.module, ctx, last="cleanup")
    return ReferenceEngine(network.module, ctx, name, shape_ranges(network.profiles))
