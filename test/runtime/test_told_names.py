"""Names of layers for people and programs: no two launches of a plan have the same one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config

import mlirt as trt
from mlirt.runtime.layer_records import inspected
from mlirt.runtime.loop_times import times_of_launches, times_of_layers
from mlirt.runtime.told_names import numbered, told_name


def told(*records: Mapping[str, object]) -> list[str]:
    return [told_name(record) for record in numbered(records)]


def test_the_first_launch_of_a_layer_has_its_name() -> None:
    norm, other = {"name": "norm"}, {"name": "other"}
    assert told(norm, other, norm, norm) == ["norm", "other", "norm [launch 2]", "norm [launch 3]"]


def test_names_of_layers_are_left_to_them() -> None:
    one, taken = {"name": "a"}, {"name": "a [launch 2]"}
    assert told(one, one, one, taken) == ["a", "a [launch 3]", "a [launch 4]", "a [launch 2]"]


def test_a_change_of_order_leaves_the_name_to_what_it_is_for() -> None:
    reformat, convolution = {"name": "a", "family": "reformat"}, {"name": "a", "family": "convolution"}
    assert told(reformat, convolution, reformat) == ["a [launch 1]", "a", "a [launch 3]"]
    assert told(reformat, reformat) == ["a", "a [launch 2]"]


def test_joined_and_sibling_layers_are_told_as_ever() -> None:
    pointwise = {"name": "a + b", "family": "pointwise"}
    assert told(pointwise, pointwise) == ["PWN(a, b)", "PWN(a, b) [launch 2]"]
    siblings = {"name": "a + b + c", "siblings": [["a", "b"]]}
    assert told(siblings, siblings) == ["a || b + c", "a || b + c [launch 2]"]


def test_inspector_and_profile_agree() -> None:
    records = [{"name": "norm", "family": "reduction"}, {"name": "norm", "family": "pointwise"}]
    names = ["norm", "norm [launch 2]"]
    layers: Any = inspected(records, [], "detailed")["Layers"]
    assert [layer["Name"] for layer in layers] == names
    assert all("launch" not in layer for layer in layers)
    times = [("norm", 1.0), ("norm", 2.0)]
    expected = list(zip(names, (1.0, 2.0), strict=True))
    assert times_of_layers(times, records) == times_of_launches(times, records) == expected


def test_a_layer_of_several_launches_17_1() -> None:
    logger = CollectingLogger()
    network, config = new_network(logger), cpu_config(logger)
    x = network.add_input("x", trt.float32, (3, 400))
    for name in ("where", "where [launch 2]"):
        layer = network.add_non_zero(x)
        layer.name = name
        network.mark_output(layer.get_output(0))
    engine = built(network, config, logger)
    inspector = engine.create_engine_inspector()
    names = [inspector.get_layer_information(k, trt.LayerInformationFormat.ONELINE) for k in range(engine.num_layers)]
    assert {"where", "where [launch 2]", "where [launch 3]"} < set(names)
    assert len(set(names)) == len(names)
