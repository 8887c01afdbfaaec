"""Inner tensors of a network: as outputs more, or computed beside it by a second engine, which leaves it as it is."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, StringAttr
from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from mlirt.dialects.interpreter import entry_function, output_names
from mlirt.dialects.tensor_names import aliases, tensor_names
from mlirt.errors import InvalidInputError
from mlirt.runtime.debug_tensors import with_debug
from mlirt.runtime.engine import Engine

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.runtime.engine_interface import EngineLike

_BESIDE: Mapping[str, Any] = {
    "debug": (),
    "dump_phases": None,
    "algorithm_selector": None,
    "refittable": False,
    "output_formats": (),
    "remarks": None,
}
"""The arguments of `mlirt.compile` that the engine beside is built with, whatever they are for the network."""


@dataclass(frozen=True)
class InnerOutputs:
    """The tensors that are outputs; `only` these, or behind the network's own."""

    names: tuple[str, ...]
    only: bool = False

    @staticmethod
    def of(asked: Sequence[str] | InnerOutputs) -> InnerOutputs:
        """What `outputs=` says."""
        if isinstance(asked, str):
            raise InvalidInputError(f"outputs: expected a list of names, such as [{asked!r}]")
        return asked if isinstance(asked, InnerOutputs) else InnerOutputs(tuple(dict.fromkeys(asked)))


def give_outputs(module: ModuleOp, asked: InnerOutputs) -> None:
    """Let the network return these tensors, where the importer has not done so; then leave out others, if asked to.

    Raises `InvalidInputError` for a name that no tensor has outside of loops and branches.
    """
    function = entry_function(module)
    last = function.body.block.last_op
    if not asked.names or not isinstance(last, ReturnOp):
        return
    known = {name: value for value, name in tensor_names(module).items()} | aliases(module)
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


def debugged(arguments: Mapping[str, Any]) -> EngineLike:
    """The engine of the network as it would be without debug tensors, with an engine beside it that computes them.

    `arguments` are those of `mlirt.compile` by name.
    """
    from mlirt.builder.compile import compile

    given = {name: value for name, value in arguments.items() if name != "debug"}
    names = InnerOutputs.of(arguments["debug"]).names
    if given["state"]:
        raise InvalidInputError("debug tensors are for networks without state: give the state as inputs")
    engine = compile(**given)
    if not isinstance(engine, Engine):
        raise InvalidInputError("target reference has no debug tensors: name them as outputs")
    chosen: dict[str, Any] = {**given, **_BESIDE, "outputs": InnerOutputs(names, only=True)}
    beside = cast("Engine", compile(**chosen))
    plan = with_debug(engine.plan, beside.plan)
    options = {name: given[name] for name in ("shape_cache_mb", "threads", "streams")}
    from mlirt.builder.host import gpu_is_here

    waits = engine.target == "cuda" and not gpu_is_here()
    return Engine(plan, given["spin_ms"], **options, waits=waits)
