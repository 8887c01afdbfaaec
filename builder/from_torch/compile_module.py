"""`mlirt.compile` for PyTorch: a module is exported, the program imported, and the engine called like the module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlirt.builder.from_torch.exported_network import exported_network
from mlirt.builder.from_torch.module_engine import ModuleEngine

_OF_MODULES = ("model", "inputs_or_target", "example_keywords", "dynamic_shapes")


def compile_module(given: Mapping[str, Any]) -> ModuleEngine:
    """The engine of a module or an exported program; `given` are the arguments of `mlirt.compile` by name."""
    from mlirt.builder.compile import compile

    options = {name: value for name, value in given.items() if name not in _OF_MODULES}
    inputs = given["inputs_or_target"]
    if isinstance(inputs, str):
        inputs, options["target"] = None, options["target"] or inputs
    network = exported_network(given["model"], inputs, given["dynamic_shapes"], given["example_keywords"])
    engine = compile(network, **options)
    assert network.convention is not None  # it has been imported
    return ModuleEngine(engine, network.convention)
