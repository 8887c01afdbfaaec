"""Records of plugins in a manifest: what is damaged is told by the name of its field."""

from __future__ import annotations

from typing import Any

import pytest

from mlirt.errors import PlanError
from mlirt.runtime.manifest import Kernel
from mlirt.runtime.plugin_calls import PluginCall
from mlirt.runtime.record_schema import Fault, Scope, read_record

ARGS = ["ptr", "ptr", "i64", "i64", "i64"]


def parsed(args: list[str] = ARGS, written: frozenset[int] = frozenset({1}), **changes: Any) -> PluginCall | None:
    plugin = {
        **{"version": "1", "namespace": "mine", "state": "key", "inputs": 1},
        **{"elements": ["float32", "int8"], "ranks": [2, 1]},
        **changes,
    }
    record = {
        **{"name": "repeat", "symbol": "Repeat", "object": {}, "args": args, "written": sorted(written)},
        "plugin": plugin,
    }
    try:
        return read_record(Kernel, record, Scope(weights={"key": 4})).plugin
    except Fault as fault:
        raise fault.within("kernels[0]").in_plan() from fault


def test_record() -> None:
    expected = PluginCall("Repeat", "1", "mine", "key", 1, ("float32", "int8"), (2, 1))
    assert parsed() == expected
    found = parsed(state=None)
    assert found is not None
    assert found.state is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": "other"}, r"plugin.state: there is no weight 'other'"),
        ({"elements": ["float32"]}, r"plugin.elements: expected a data type and a rank for each tensor"),
        ({"elements": ["float32", "text"]}, r"plugin.elements: expected a data type"),
        ({"ranks": [2, -1]}, r"plugin.ranks: expected whole numbers up to 8"),
        ({"ranks": [2, 9]}, r"plugin.ranks: expected whole numbers up to 8"),
        ({"ranks": [2, 2]}, r"kernels\[0\].args: expected 2 pointers and 4 lengths"),
        ({"inputs": 3}, r"plugin.inputs: expected a whole number in \[0, 2\]"),
        ({"inputs": 0}, r"kernels\[0\].written: a plugin writes its outputs"),
        ({"version": 1}, r"plugin.version: expected a text"),
        ({"code": "x"}, r"plugin.code: is no field"),
    ],
)
def test_damaged_record(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        parsed(**changes)


def test_arguments_of_other_types() -> None:
    with pytest.raises(PlanError, match="expected 2 pointers and 3 lengths"):
        parsed(["ptr", "i64", "i64", "i64", "i64"])
