"""`mlirt.compile` for PyTorch: a module is exported, the program imported, and the engine called like the module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlirt.builder.from_torch.module_engine import ModuleEngine
from mlirt.frontend.torch.exported_network import exported_network

if TYPE_CHECKING:
    from mlirt.builder.config.build_config import BuildConfig


def compile_module(
    model: Any,
    inputs: Sequence[Any] | None,
    keywords: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    config: BuildConfig,
) -> ModuleEngine:
    """The engine of a module, which is exported with these inputs and keywords first, or of an exported program."""
    from mlirt.builder.model_engine import build_engine

    network = exported_network(model, inputs, dynamic_shapes, keywords)
    engine = build_engine(network, config)
    assert network.convention is not None  # it has been imported
    return ModuleEngine(engine, network.convention)


def own_precision(tensors: Iterable[Any]) -> str | None:
    """The precision fp16 where all floating-point tensors of a module are halves, so that it is computed as it says."""
    kinds = {str(one.dtype) for one in tensors if hasattr(one, "is_floating_point") and one.is_floating_point()}
    return "fp16" if kinds == {"torch.float16"} else None


def weights_of(model: Any) -> Iterable[Any]:
    """The parameters and buffers of a module, whose `state_dict` is a method, or an exported program, which has it."""
    is_program = hasattr(model, "graph_signature")
    return (model.state_dict if is_program else model.state_dict()).values()
