"""The language in which instructions of kernels are defined: fields, numbered rules, and the text of each target.

All parts of a definition see the fields by name in one object `x`: attributes are plain Python values everywhere; an
operand or a result is its type in rules and texts, and an array in a meaning. An optional operand that is not given
is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnitAttr,
    VectorType,
    f64,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute
from xdsl.irdl import AnyAttr
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, OpTrait, Pure

Effects: TypeAlias = "tuple[OpTrait, ...]"
PURE: Effects = (Pure(),)
READS: Effects = (MemoryReadEffect(),)
WRITES: Effects = (MemoryWriteEffect(),)
SYNCHRONIZES: Effects = READS + WRITES
"""What depends on other threads or on when it happens: it is never moved, copied or removed."""

Numbers: TypeAlias = DenseArrayBase[IntegerType]
Floats: TypeAlias = DenseArrayBase[Float64Type]

Scope: TypeAlias = Literal["thread", "warp", "warpgroup", "block"]
"""The threads that execute an instruction together, if any does."""

_REQUIRED: Any = object()


@dataclass(frozen=True)
class Field:
    """An operand, an attribute or a result.

    `element` and `length` name variables of the definition: the element type that a value has or holds, and how many
    elements a fragment has. All fields with one `element` agree in it. `like` gives the type of a result: the field
    that it is equal to, a type, or a function of `x`.
    """

    part: Literal["operand", "attribute", "result"]
    constraint: Any
    element: str = ""
    length: str = ""
    default: Any = _REQUIRED
    variadic: bool = False
    kw_only: bool = False
    is_written: bool = False
    convert: Callable[[Any], Any] | None = None
    like: str | Attribute | Callable[[Any], Attribute] = ""

    @property
    def is_required(self) -> bool:
        return self.default is _REQUIRED

    @property
    def is_typed(self) -> bool:
        """Whether the type has to be written in the IR."""
        return not isinstance(self.constraint, Attribute)


# --- operands; `kw_only` tells type checkers that a builder takes a field by its name


def index(*, default: Any = _REQUIRED, kw_only: bool = False) -> Any:
    """A number of elements, bytes or threads."""
    return Field("operand", IndexType(), default=default, kw_only=kw_only)


def indices() -> Any:
    """Any number of indices."""
    return Field("operand", IndexType(), variadic=True)


def scalar(element: str = "", constraint: Any = None) -> Any:
    """A number; with a constraint such as `f32` one of that type."""
    return Field("operand", AnyAttr() if constraint is None else constraint, element)


def scalars(element: str = "") -> Any:
    """Any number of numbers."""
    return Field("operand", AnyAttr(), element, variadic=True)


def memref(element: str = "", *, default: Any = _REQUIRED, kw_only: bool = False) -> Any:
    """Memory, whose elements an index names."""
    return Field("operand", MemRefType, element, default=default, kw_only=kw_only)


def fragment(element: str = "", length: str = "") -> Any:
    """A vector of rank 1 in the registers of a thread."""
    return Field("operand", VectorType, element, length)


def fragments() -> Any:
    """Any number of fragments."""
    return Field("operand", VectorType, variadic=True)


def tile(element: str = "") -> Any:
    """A vector of rows x columns x lanes in the registers of a CPU."""
    return Field("operand", VectorType, element)


def operand(constraint: Any, element: str = "") -> Any:
    """A value of another type."""
    return Field("operand", constraint, element)


def result(
    constraint: Any = None,
    element: str = "",
    length: str = "",
    *,
    like: str | Attribute | Callable[[Any], Attribute] = "",
    init: Literal[False] = False,
) -> Any:
    """What an instruction gives, of a fixed type, of one that others determine (`like`), or of one a builder says."""
    if isinstance(constraint, Attribute):
        like = constraint
    return Field("result", AnyAttr() if constraint is None else constraint, element, length, like=like)


# --- attributes: what a builder takes becomes what the op has by a `converter`


def number(value: int) -> IntegerAttr:
    return IntegerAttr(value, i64)


def numbers(values: Sequence[int]) -> Numbers:
    return DenseArrayBase.from_list(i64, list(values))


def floats(values: Sequence[float]) -> Floats:
    return DenseArrayBase.from_list(f64, list(values))


def boolean(value: bool) -> BoolAttr:
    return BoolAttr.from_bool(value)


def unit(given: bool) -> UnitAttr | None:
    return UnitAttr() if given else None


_CONSTRAINTS: dict[Any, Any] = {
    number: IntegerAttr,
    numbers: DenseArrayBase.constr(i64),
    floats: DenseArrayBase.constr(f64),
    boolean: BoolAttr,
    unit: UnitAttr,
}


def attribute(
    *, converter: Callable[[Any], Any], default: Any = _REQUIRED, kw_only: bool = False, is_written: bool = False
) -> Any:
    """A value that is known when the kernel is made; `converter` is one of the functions above, or an enumeration.

    A default of None says that it may be missing; the IR leaves out what is equal to a default, unless it `is_written`.
    """
    constraint = _CONSTRAINTS.get(converter, converter)
    return Field("attribute", constraint, default=default, kw_only=kw_only, convert=converter, is_written=is_written)


def plain(value: Attribute | None, of: Field) -> Any:
    """An attribute as a Python value."""
    if of.convert is unit:
        return value is not None
    if isinstance(value, DenseArrayBase):
        return list(value.iter_values())
    if isinstance(value, IntegerAttr):
        return bool(value.value.data) if of.convert is boolean else value.value.data
    return value.data if isinstance(value, EnumAttribute) else value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


@dataclass(frozen=True)
class Rule:
    """A numbered constraint as the page of the dialect has it; `message` says of an op what is wrong: a function of
    `x`, or a template such as `"no lines of {line} bytes"`.
    """

    text: str
    holds: Callable[[Any], bool]
    message: str | Callable[[Any], str] = ""

    def said(self, x: Any) -> str:
        """What is wrong with an op."""
        if callable(self.message):
            return self.message(x)
        return self.message.format_map(cast("dict[str, Any]", vars(x))) or self.text


@dataclass(frozen=True)
class Text:
    """A call in generated source: `word(operands, parameters, limits)`.

    With a `hint` the word is made before the function, by its parameters: `hint = word(parameters)`, and called with
    the operands alone; a short one that is used once is `word(parameters)(operands)`. Parameters are a template such as
    `"{T}", {count}` or a function of `x`. Optional `limits` that are given come last and change the word's name to
    `word_first`. A word that depends on `x` lists the `words` that it may be.
    """

    word: str | Callable[[Any], str]
    parameters: str | Callable[[Any], str] = ""
    hint: str = ""
    operands: Sequence[str] | None = None
    limits: Sequence[str] = ()
    words: Sequence[str] = ()

    def name(self, x: Any) -> str:
        return self.word if isinstance(self.word, str) else self.word(x)

    def filled(self, x: Any) -> str:
        """The parameters of an op."""
        if not isinstance(self.parameters, str):
            return self.parameters(x)
        return self.parameters.format_map(cast("dict[str, Any]", vars(x)))

    @property
    def vocabulary(self) -> list[str]:
        """Every word that the text may name."""
        words = list(self.words) or ([self.word] if isinstance(self.word, str) else [])
        return words + [f"{word}_first" for word in words if self.limits]


@dataclass
class Spec:
    """What a definition says; without a text for a target the instruction is not there."""

    name: str
    fields: dict[str, Field]
    effects: Effects = PURE
    scope: Scope = "thread"
    is_asynchronous: bool = False  # it starts what goes on behind it, or waits for that
    rules: Sequence[Rule] = ()
    syntax: str = ""
    cpu: Text | None = None
    cuda: Text | None = None
    meaning: Callable[[Any, Any], Any] | None = None
    operands: list[str] = field(default_factory=list[str])
    attributes: list[str] = field(default_factory=list[str])
    results: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        for name, one in self.fields.items():
            {"operand": self.operands, "attribute": self.attributes, "result": self.results}[one.part].append(name)

    @property
    def operands_and_attributes(self) -> list[str]:
        """What a builder takes, in its order."""
        return [name for name, one in self.fields.items() if one.part != "result"]

    def text(self, target: str) -> Text | None:
        """The text for a target."""
        return {"cpu": self.cpu, "cuda": self.cuda}[target]
