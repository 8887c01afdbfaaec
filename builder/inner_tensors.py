"""Inner tensors of a network: as outputs more, or computed beside it by a second engine, which leaves it as it is."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, StringAttr
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from mlirt.builder.inner_outputs import InnerOutputs
from mlirt.builder.opened import opened
from mlirt.dialects.interpreter import entry_function, output_names
from mlirt.dialects.tensor_names import aliases, tensor_names
from mlirt.errors import InvalidInputError
from mlirt.runtime.debug_tensors import with_debug
from mlirt.runtime.engine import Engine

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.config.build_config import BuildConfig
    from mlirt.builder.model_kinds import SourceNetwork
    from mlirt.builder.model_network import ModelSource
    from mlirt.runtime.engine_interface import EngineLike

_BESIDE: Mapping[str, Any] = {
    "dump_phases": None,
    "algorithm_selector": None,
    "refittable": False,
    "output_formats": (),
    "remarks": None,
}
"""The settings that the engine beside is built with, whatever they are for the network."""


def known_tensors(module: ModuleOp) -> Mapping[str, SSAValue]:
    """The tensors outside of loops and branches that are not constants, by their names."""
    return {name: value for value, name in tensor_names(module).items()} | aliases(module)


def give_outputs(module: ModuleOp, asked: InnerOutputs) -> None:
    """Let the network return these tensors, where the importer has not done so; then leave out others, if asked to.

    Raises `InvalidInputError` for a name that no tensor has outside of loops and branches.
    """
    function = entry_function(module)
    last = function.body.block.last_op
    if not asked.names or not isinstance(last, ReturnOp):
        return
    known = known_tensors(module)
    missing = [name for name in asked.names if name not in known]
    if missing:
        near = difflib.get_close_matches(missing[0], sorted(known), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InvalidInputError(
            f"the network has no tensor {missing[0]!r} outside of loops and branches that is not a constant{hint}"
        )
    own = [] if asked.only else output_names(function)
    names = [*own, *(name for name in asked.names if name not in own)]
    attributes = dict(zip(output_names(function), (function.res_attrs or ArrayAttr(())).data, strict=False))
    _return(module, {name: known[name] for name in names}, attributes)


def _return(module: ModuleOp, results: Mapping[str, SSAValue], attributes: Mapping[str, DictionaryAttr]) -> None:
    function = entry_function(module)
    last = function.body.block.last_op
    assert last is not None
    function.body.block.erase_op(last)
    function.body.block.add_op(ReturnOp(*results.values()))
    types = [value.type for value in results.values()]
    function.properties["function_type"] = FunctionType.from_lists(function.function_type.inputs.data, types)
    plain = {name: DictionaryAttr({"trt.name": StringAttr(name)}) for name in results}
    function.properties["res_attrs"] = ArrayAttr([attributes.get(name, plain[name]) for name in results])


def debugged(
    model: ModelSource | SourceNetwork,
    config: BuildConfig,
    built: Callable[[ModelSource | SourceNetwork, BuildConfig, InnerOutputs], EngineLike],
) -> EngineLike:
    """The engine of the network as it would be without debug tensors, with an engine beside it that computes them.

    `built` makes an engine of its own of a model, a configuration and inner tensors.
    """
    own = config.replace(debug=())
    engine = built(model, own, InnerOutputs(tuple(dict.fromkeys(config.outputs))))
    if not isinstance(engine, Engine):
        raise InvalidInputError("target reference has no debug tensors: name them as outputs")
    asked = InnerOutputs(tuple(dict.fromkeys(config.debug)), only=True)
    beside = cast("Engine", built(model, own.replace(**_BESIDE), asked))
    return opened(with_debug(engine.plan, beside.plan), engine.target, config)
