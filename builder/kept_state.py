"""State that stays in the engine: outputs of a run that are inputs of the next one, checked before the build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mlirt.dialects.interpreter import entry_function, input_names, output_names
from mlirt.dialects.tensor_types import dims, element_name, element_of
from mlirt.errors import InvalidInputError
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.plan_file import Plan, make_plan
from mlirt.runtime.state_pairs import mismatch

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class KeptState:
    """An input, the output that it is in the next run, and the bytes of what it is in the first one."""

    input: str
    output: str
    initial: bytes | None


def chosen_state(
    module: ModuleOp, state: Mapping[str, str] | None, initial: Mapping[str, Array] | None
) -> tuple[KeptState, ...]:
    """The state that the caller asks for; raises `InvalidInputError` where an output cannot be the input.

    A dimension of the input has the length that it has in the output, or is a name of its own: then the state may have
    other lengths from run to run.
    """
    pairs, first = dict(state or {}), dict(initial or {})
    for name in first:
        if name not in pairs:
            raise InvalidInputError(f"initial_state: {name!r} is no state; the states are {_listed(list(pairs))}")
    if not pairs:
        return ()
    function = entry_function(module)
    inputs = dict(zip(input_names(function), function.function_type.inputs.data, strict=True))
    outputs = dict(zip(output_names(function), function.function_type.outputs.data, strict=True))
    if len(set(pairs.values())) < len(pairs):
        raise InvalidInputError("state: an output is the next value of one input, but one is named twice")
    found: list[KeptState] = []
    for name, output in pairs.items():
        if name not in inputs:
            raise InvalidInputError(f"state: the network has no input {name!r}; its inputs are {_listed(list(inputs))}")
        if output not in outputs:
            raise InvalidInputError(f"state: the network has no output {output!r}; it has {_listed(list(outputs))}")
        _check(name, inputs[name], output, outputs[output])
        found.append(KeptState(name, output, _bytes_of(name, inputs[name], first.get(name))))
    return tuple(found)


def _check(name: str, given: Attribute, output: str, made: Attribute) -> None:
    kinds = [f"{element_name(element_of(of))}[{', '.join(map(str, dims(of)))}]" for of in (given, made)]
    fits = element_of(given) == element_of(made) and len(dims(given)) == len(dims(made))
    if fits:
        pairs = zip(dims(given), dims(made), strict=True)
        fits = all(have == length or str(have).isidentifier() for have, length in pairs)
    if not fits:
        raise InvalidInputError(
            f"state {name!r}: {kinds[0]} cannot be what the output {output!r} was, {kinds[1]}; give both one type and "
            "shape, or the input dimensions of names of their own"
        )


def _bytes_of(name: str, of: Attribute, value: Array | None) -> bytes | None:
    if value is None:
        return None
    array, dtype = np.asarray(value), numpy_dtype(element_name(element_of(of)))
    if not all(isinstance(one, int) for one in dims(of)):
        raise InvalidInputError(f"initial_state {name!r}: its shape is dynamic; set engine.state[{name!r}] instead")
    if array.dtype != dtype or array.shape != dims(of):
        raise InvalidInputError(f"initial_state {name!r}: expected {dtype}{dims(of)}, got {array.dtype}{array.shape}")
    return np.ascontiguousarray(array).tobytes()


def with_state(plan: Plan, state: Sequence[KeptState]) -> Plan:
    """The plan with the pairs, and the values of first runs in sections of their own."""
    if not state:
        return plan
    inputs = [one.name for one in plan.manifest.inputs]
    outputs = [one.name for one in plan.manifest.outputs]
    records: list[dict[str, object]] = []
    sections: dict[str, bytes] = {}
    for number, one in enumerate(state):
        given, made = inputs.index(one.input), outputs.index(one.output)
        fault = mismatch(plan.manifest.inputs[given], plan.manifest.outputs[made])
        if fault:
            raise InvalidInputError(f"state {one.input!r}: {fault}; give both one type, shape and format")
        record: dict[str, object] = {"input": given, "output": made}
        if one.initial is not None:
            record["initial"] = f"state.{number}"
            sections[f"state.{number}"] = one.initial
        records.append(record)
    return make_plan({**plan.manifest_json, "state": records}, {**plan.sections, **sections}, plan.weights)


def copied_state(old: Plan, new: Plan) -> Plan:
    """A plan of the same network with the state of another one."""
    if not old.manifest.state:
        return new
    sections = {one.initial: old.sections[one.initial] for one in old.manifest.state if one.initial is not None}
    made = make_plan(
        {**new.manifest_json, "state": old.manifest_json["state"]}, {**new.sections, **sections}, new.weights
    )
    return replace(made, origin=new.origin)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
