"""The text of instructions: the call that the definition of each gives for a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.instruction import Instruction, spec_of, view_of
from mlirt.dialects.kernel.instruction_fields import Spec, Text
from mlirt.dialects.locations import name_of
from mlirt.errors import CompileError

if TYPE_CHECKING:
    from mlirt.codegen.python_source import PythonSource


def instruction_words(target: str, *, are_asynchronous: bool = False) -> frozenset[str]:
    """The words that the texts of all instructions of the dialect may use, or of those that are asynchronous."""
    from mlirt.dialects.kernel import Kernel

    specs = [spec_of(op) for op in Kernel.operations if issubclass(op, Instruction)]
    wanted = [spec for spec in specs if spec.is_asynchronous or not are_asynchronous]
    texts = [text for spec in wanted if (text := spec.text(target)) is not None]
    return frozenset(word for text in texts for word in text.vocabulary)


def write_instruction(source: PythonSource, op: Instruction) -> None:
    """Write an instruction; raises `CompileError` for one without a text for the target of the source."""
    spec = spec_of(op)
    text = spec.text(source.target)
    if text is None:
        raise CompileError(f"{name_of(op)}: {op.name} has no text in {type(source).__name__}")
    call = _call(source, op, spec, text)
    if not spec.results:
        source.line(call)
        return
    results = [getattr(op, name) for name in spec.results]
    if len(results) > 1:
        names = ", ".join(source.names.define(one) for one in results)
        source.line(f"{names} = {call}")
    else:
        source.define(results[0], source.index(call) if isinstance(results[0].type, IndexType) else call)


def _call(source: PythonSource, op: Instruction, spec: Spec, text: Text) -> str:
    x = view_of(op)
    name, parameters = text.name(x), text.filled(x)
    taken = text.operands if text.operands is not None else [n for n in spec.operands if n not in text.limits]
    values = [value for field in taken for value in _values(getattr(op, field))]
    limits = [value for field in text.limits for value in _values(getattr(op, field))]
    if text.hint:
        name = source.word(text.hint, f"{name}({parameters})")
        parameters = ""
    # A word that is made for its operands says what type each has.
    written = source.arguments if text.hint else source.texts
    texts = [*written(values), *([parameters] if parameters else []), *written(limits)]
    return f"{name}{'_first' * bool(limits)}({', '.join(texts)})"


def _values(operand: Any) -> list[SSAValue]:
    """The values of an operand: none of one that is not given."""
    if isinstance(operand, SSAValue):
        return [operand]
    return [] if operand is None else list(operand)
