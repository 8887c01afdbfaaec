"""rt-debug reduce: the smallest part of a network that still fails, with the tensors that it had in the whole one."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirt.atomic_file import write_atomically
from mlirt.dialects.interpreter import entry_function, interpret
from mlirt.dialects.locations import name_of, names
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights_file import write_weights
from mlirt.dialects.xdsl_compat import module_text
from mlirt.errors import InvalidInputError, MlirtError
from mlirt.tools.debugging.case import Case
from mlirt.tools.debugging.compare import compared_tensors, first_beyond
from mlirt.tools.debugging.crashes import crash_of
from mlirt.tools.debugging.differences import worst
from mlirt.tools.debugging.halving import least

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

Test = Callable[[Case], bool]
Say = Callable[[str], None]
_REACHES = (1, 2, 4)


def differs(bound: float) -> Test:
    """Whether the compiled network is further off the interpreted one than the bound."""
    return _is_off(bound, lambda case: case.compiled(case.module, case.first))


def differs_after_passes(bound: float) -> Test:
    """Whether the passes alone make a network compute something else; no kernel is compiled for that."""
    return _is_off(bound, lambda case: case.interpreted(case.after(None)))


def _is_off(bound: float, run: Callable[[Case], Mapping[str, Array]]) -> Test:
    def test(case: Case) -> bool:
        try:
            return case.apart(lambda: worst(run(case), case.interpreted(case.module))[1]) > bound
        except MlirtError:
            return False  # another failure than the one that is looked for

    return test


def suspects(case: Case, bound: float) -> tuple[str, ...]:
    """The names of the layers of the first launch whose kernel is off; none where none is known.

    They only say where to look first.
    """
    try:
        first = first_beyond(case.apart(lambda: compared_tensors(case)), bound)
    except MlirtError:
        return ()
    return () if first is None else tuple(first.layer.split(" + "))


def fails_with(text: str) -> Test:
    """Whether building or running the network ends with an error that holds a text."""

    def test(case: Case) -> bool:
        try:
            case.apart(lambda: case.compiled(case.module, case.first))
        except Exception as error:
            return text in f"{type(error).__name__}: {error}"
        return False

    return test


def crashes() -> Test:
    """Whether building or running the network ends the process."""
    return lambda case: bool(crash_of(case, lambda: bool(case.compiled(case.module, case.first))))


def crashes_after_passes() -> Test:
    """Whether the passes end the process."""
    return lambda case: bool(crash_of(case, lambda: bool(case.after(None))))


def script_says_so(script: str) -> Test:
    """Whether a program that gets the IR file ends with exit code 0; the inputs lie beside the file as .npz."""

    def test(case: Case) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = write_network(case, Path(folder) / "candidate.mlir")
            try:
                done = subprocess.run([str(Path(script).resolve()), str(path)], capture_output=True, check=False)
            except OSError as error:
                raise InvalidInputError(f"--test={script}: it cannot be run: {error.strerror}") from None
            return done.returncode == 0

    return test


@dataclass(frozen=True)
class _Part:
    """Layers of the network in order, and the values that are its outputs."""

    layers: tuple[Operation, ...]
    outputs: tuple[SSAValue, ...]


def reduced(case: Case, test: Test, say: Say, suspected: Collection[str] = ()) -> Case:
    """The smallest part found for which the test still holds; raises `InvalidInputError` where it does not at first.

    Layers are left out at the end, then at the front, then one by one; what the others read of them becomes an input
    that has the value which the whole network gives it. The layers named as `suspected` are tried alone at first.
    """
    if not test(case):
        raise InvalidInputError("the whole network does not fail in this way, so that there is nothing to reduce")
    values = _all_values(case)
    block = entry_function(case.module).body.block
    layers = tuple(op for op in block.ops if not isinstance(op, ConstantOp | ReturnOp))
    assert block.last_op is not None
    whole = _Part(layers, tuple(block.last_op.operands))

    def holds(part: _Part) -> bool:
        return bool(part.layers) and bool(part.outputs) and test(_case_of(case, part, values))

    for few in _around(suspected, whole):
        if not holds(few):
            continue
        title = ", ".join(dict.fromkeys(map(name_of, few.layers)))
        say(f"what fails alone: {title} ({len(few.layers)} of {len(layers)} layers)")
        return _case_of(case, _shrunk(few, holds, say), values)
    return _case_of(case, _shrunk(whole, holds, say), values)


def _around(suspected: Collection[str], whole: _Part) -> Iterator[_Part]:
    """The layers of these names, then with more of their neighbours: the layout that a kernel is for may need them."""
    places = [at for at, one in enumerate(whole.layers) if set(names(one.location)) & set(suspected)]
    if places:
        yield _part_of([whole.layers[at] for at in places], whole)
        for reach in _REACHES:
            yield _part_of(whole.layers[max(0, places[0] - reach) : places[-1] + 1 + reach], whole)


def _shrunk(whole: _Part, holds: Callable[[_Part], bool], say: Say) -> _Part:
    """The part without layers at its end, at its front, and those in between that it can do without."""
    end = least(1, len(whole.layers), lambda count: holds(_up_to(whole, count)))
    part = _up_to(whole, end)
    start = end - least(1, end, lambda count: holds(_Part(part.layers[-count:], part.outputs)))
    if len(whole.layers) > 1:
        numbers = f"number {end} fails" if start + 1 == end else f"numbers {start + 1} to {end} fail"
        say(f"of {len(whole.layers)} layers {numbers} alone")
    return _without_some(_Part(part.layers[start:], part.outputs), holds)


def _up_to(whole: _Part, count: int) -> _Part:
    """The first layers; the results of the last one are the outputs then."""
    layers = whole.layers[:count]
    return whole if count == len(whole.layers) else _Part(layers, tuple(layers[-1].results))


def _part_of(layers: Sequence[Operation], whole: _Part) -> _Part:
    """Some layers, and as outputs what others read of them."""
    inside = {inner for layer in layers for inner in layer.walk()}
    outputs = [
        result
        for layer in layers
        for result in layer.results
        if result in whole.outputs or any(use.operation not in inside for use in result.uses)
    ]
    return _Part(tuple(layers), tuple(outputs))


def _without_some(part: _Part, holds: Callable[[_Part], bool]) -> _Part:
    """The part without those layers that it can do without, each tried once, and with one output if that is enough."""
    for output in part.outputs:
        if len(part.outputs) > 1 and holds(one := _Part(part.layers, (output,))):
            part = one
            break
    for layer in part.layers:
        fewer = _Part(tuple(one for one in part.layers if one is not layer), part.outputs)
        if not set(layer.results) & set(part.outputs) and holds(fewer):
            part = fewer
    return part


def _all_values(case: Case) -> dict[SSAValue, Array]:
    """What each value of the entry function is in a run of the whole network."""
    found: dict[SSAValue, Array] = {}

    def keep(op: Operation, results: Sequence[Array]) -> None:
        found.update(zip(op.results, results, strict=True))

    interpret(case.module, case.ctx, case.feeds, observe=keep)
    for argument, array in zip(entry_function(case.module).body.block.args, case.feeds.values(), strict=False):
        found[argument] = array
    return found


def _case_of(case: Case, part: _Part, values: Mapping[SSAValue, Array]) -> Case:
    """The part as a network of its own, with the inputs that it has in the whole one."""
    inside = {result for layer in part.layers for result in layer.results}
    used = [operand for layer in part.layers for inner in layer.walk() for operand in inner.operands]
    outside = [value for value in dict.fromkeys((*used, *part.outputs)) if value in values and value not in inside]
    constants = [value for value in outside if isinstance(value.owner, ConstantOp)]
    given = [value for value in outside if value not in constants]
    block = Block(arg_types=[value.type for value in given])
    mapping: dict[SSAValue, SSAValue] = dict(zip(given, block.args, strict=True))
    for value in constants:
        assert isinstance(value.owner, Operation)
        block.add_op(copy := value.owner.clone())
        mapping[value] = copy.results[0]
    for layer in part.layers:
        block.add_op(layer.clone(value_mapper=mapping))
    block.add_op(ReturnOp(*(mapping[value] for value in part.outputs)))
    types = FunctionType.from_lists([value.type for value in given], [value.type for value in part.outputs])
    names = [f"in{number}" for number in range(len(given))]
    function = FuncOp("main", types, Region(block), arg_attrs=_named(names))
    feeds = {name: values[value] for name, value in zip(names, given, strict=True)}
    return replace(case, module=ModuleOp([function]), feeds=feeds)


def _named(names: Sequence[str]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr(DictionaryAttr({"trt.name": StringAttr(name)}) for name in names)


def layer_count(case: Case) -> int:
    """How many layers a network has."""
    return sum(not isinstance(op, ConstantOp | ReturnOp) for op in entry_function(case.module).body.block.ops)


def write_network(case: Case, path: Path) -> Path:
    """Write the IR, its weights and its inputs side by side."""
    from io import BytesIO

    import numpy as np

    write_weights(case.module, case.ctx, path.with_suffix(".safetensors"))
    stream = BytesIO()
    np.savez(stream, allow_pickle=False, **dict(case.feeds))
    write_atomically(path.with_suffix(".npz"), [stream.getvalue()])
    write_atomically(path, [module_text(case.module, debuginfo=True).encode()])
    return path
