"""Inner tensors of a network that a second plan, in a section of the first one, computes from the same inputs.

The network's own launches are what they would be without it. `info` of the manifest has the names as `debug`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from mlirt.runtime.plan_file import Plan, plan_bytes, read_plan

_SECTION = "debug.plan"
_NAMES = "debug"


def with_debug(plan: Plan, beside: Plan) -> Plan:
    """A plan with another one, whose outputs are its debug tensors."""
    names = [tensor.name for tensor in beside.manifest.outputs]
    content = plan_bytes(beside.manifest_json, beside.sections, beside.weights)
    info = {**cast("Mapping[str, object]", plan.manifest_json.get("info", {})), _NAMES: names}
    return replace(
        plan,
        manifest=replace(plan.manifest, info=info),
        manifest_json={**plan.manifest_json, "info": info},
        sections={**plan.sections, _SECTION: content},
    )


def debug_names(plan: Plan) -> tuple[str, ...]:
    """The names of the debug tensors; none where the plan has no plan for them."""
    names = plan.manifest.info.get(_NAMES)
    if _SECTION not in plan.sections or not isinstance(names, list | tuple):
        return ()
    return tuple(map(str, cast("list[object]", names)))


def debug_plan(plan: Plan) -> Plan:
    """The plan that computes the debug tensors."""
    return read_plan(plan.sections[_SECTION])


def without_debug(info: Mapping[str, object]) -> dict[str, object]:
    """`info` of a plan that has lost them."""
    return {key: value for key, value in info.items() if key != _NAMES}
