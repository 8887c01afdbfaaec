"""Instructions of kernels: each is one class, from whose definition all else follows.

`@instruction` derives the op class from the fields of the definition: operands, properties and results, verifier,
assembly format, builder, and the constraints in its documentation. `interpreter_instruction.py` executes its `meaning`,
`codegen/instruction_text.py` writes its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, dataclass_transform

from xdsl.dialects.builtin import IndexType, MemRefType, VectorType
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)

from mlirt.dialects.kernel import instruction_fields as fields
from mlirt.dialects.kernel.instruction_fields import Field, Rule, Spec, Text, plain
from mlirt.dialects.kernel.tensor_map import TensorMapType
from mlirt.dialects.tensor_op import require
from mlirt.dialects.tensor_types import element_name, is_float8

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr
    from xdsl.ir import Block, Region, Use

_TOLD = ("effects", "scope", "is_asynchronous", "rules", "syntax", "cpu", "cuda")


class Element(str):
    """The name of an element type as generated text has it, and the type."""

    __slots__ = ("type",)
    type: Attribute


def element_of(type_: Attribute) -> Element:
    """The element of memory, a vector or a tensor map, or a scalar itself; all but scalars hold booleans as bytes."""
    inner = type_
    if isinstance(type_, MemRefType | VectorType):
        inner = cast("MemRefType[Attribute] | VectorType[Attribute]", type_).get_element_type()
    elif isinstance(type_, TensorMapType):
        inner = type_.element
    try:
        kept = "int64" if isinstance(inner, IndexType) else "int8" if is_float8(inner) else element_name(inner)
    except KeyError:
        kept = str(inner)  # no kernel has such elements; whoever asks says so
    name = Element({"bool": "bool_" if inner is type_ else "uint8"}.get(kept, kept))
    name.type = inner
    return name


def view_of(op: Instruction) -> Any:
    """`x` of an op: attributes as Python values, types of operands and results, and the variables of the definition."""
    spec = spec_of(op)
    x: Any = SimpleNamespace(name=op.name, op=op)
    for name in spec.attributes:
        setattr(x, name, plain(getattr(op, name), spec.fields[name]))
    for name in (*spec.operands, *spec.results):
        value = getattr(op, name)
        several = spec.fields[name].variadic
        setattr(x, name, [one.type for one in value] if several else None if value is None else value.type)
    return _bind(spec, x)


def _bind(spec: Spec, x: Any) -> Any:
    """Give the variables of a definition the values that the types of its fields say, the first one's each."""
    for name in (*spec.operands, *spec.results):
        one, types = spec.fields[name], getattr(x, name, None)
        for type_ in cast("list[Attribute]", types) if isinstance(types, list) else [types]:
            if one.element and type_ is not None and not hasattr(x, one.element):
                setattr(x, one.element, element_of(type_))
            if one.length and type_ is not None and not hasattr(x, one.length):
                setattr(x, one.length, cast("VectorType[Attribute]", type_).get_shape()[0])
    return x


def _verify(op: Any) -> None:
    spec, x = spec_of(op), view_of(op)
    for name in (*spec.operands, *spec.results):
        one, type_ = spec.fields[name], getattr(x, name)
        if one.like and type_ != (wanted := _result_type(one, x)):
            other = f"the {one.like} {wanted}" if isinstance(one.like, str) else f"not {wanted}"
            require(False, f"{x.name}: the {name} is {type_}, {other}")
        for each in cast("list[Attribute]", type_) if isinstance(type_, list) else [type_]:
            _check_variables(spec, x, one, each)
    for position, rule in enumerate(spec.rules, 1):
        if not rule.holds(x):
            require(False, f"C{position}: {x.name}: {rule.said(x)}")


def _check_variables(spec: Spec, x: Any, one: Field, type_: Any) -> None:
    """Raise where a type differs from the first one with the same element or length."""
    for part, what in (("element", "the element type"), ("length", "the length")):
        variable = getattr(one, part)
        if not variable or type_ is None:
            continue
        found = element_of(type_) if part == "element" else type_.get_shape()[0]
        if found != getattr(x, variable):
            first = next(n for n in (*spec.operands, *spec.results) if getattr(spec.fields[n], part) == variable)
            require(False, f"{x.name}: {getattr(x, first)} and {type_} differ in {what}")


def _result_type(one: Field, x: Any) -> Attribute:
    if isinstance(one.like, str):
        return getattr(x, one.like)
    return one.like(x) if callable(one.like) else one.like


@dataclass_transform(
    field_specifiers=(
        *(fields.index, fields.indices, fields.scalar, fields.scalars, fields.memref),
        *(fields.fragment, fields.fragments, fields.tile, fields.operand, fields.attribute, fields.result),
    ),
    eq_default=False,
)
class _WithFields(IRDLOperation):
    """Tells type checkers that a builder takes the fields of a class, in their order and of the types written there."""


class Instruction(_WithFields):
    """The base of all instructions.

    Positional arguments of the builder are the operands and attributes in their order; those with a default may be
    left out or given by name. A definition may have a builder of its own, which ends in `self.fill(..)`.
    """

    if TYPE_CHECKING:
        # Every op has these, and no builder takes them.
        _operands: Any = fields.result()
        _operand_uses: tuple[Use, ...] = fields.result()
        results: Any = fields.result()
        _successors: tuple[Block, ...] = fields.result()
        _successor_uses: tuple[Use, ...] = fields.result()
        properties: dict[str, Attribute] = fields.result()
        attributes: dict[str, Attribute] = fields.result()
        location: LocationAttr = fields.result()
        regions: tuple[Region, ...] = fields.result()
        parent: Block | None = fields.result()
        _next_op: Operation | None = fields.result()
        _prev_op: Operation | None = fields.result()
        effects: ClassVar[fields.Effects]
        scope: ClassVar[fields.Scope]
        is_asynchronous: ClassVar[bool]
        rules: ClassVar[Sequence[Rule]]
        syntax: ClassVar[str]
        cpu: ClassVar[Text | None]
        cuda: ClassVar[Text | None]

    def fill(self, *args: Any, **given: Any) -> None:
        """Give the op its operands, properties and results; results are named where no field determines their type."""
        spec = spec_of(self)
        takes = spec.operands_and_attributes
        by_position = [name for name in takes if not spec.fields[name].kw_only]
        required = [name for name in takes if spec.fields[name].is_required]
        values = {name: spec.fields[name].default for name in takes if not spec.fields[name].is_required}
        values.update(zip(by_position, args, strict=False))
        types = {name: given.pop(name) for name in spec.results if name in given}
        unknown = [*given.keys() - set(takes)]
        values.update(given)
        missing = [name for name in required if name not in values]
        if missing or unknown or len(args) > len(by_position):
            raise TypeError(f"{spec.name} takes {', '.join(takes)}; missing {missing}, unknown {unknown}")
        properties = {name: _attribute(spec.fields[name], values[name]) for name in spec.attributes}
        x: Any = SimpleNamespace(name=spec.name, op=self, **types)
        for name in spec.attributes:
            setattr(x, name, plain(properties[name], spec.fields[name]))
        for name in spec.operands:
            value = values[name]
            is_list = spec.fields[name].variadic
            setattr(x, name, [one.type for one in value] if is_list else None if value is None else value.type)
        _bind(spec, x)
        IRDLOperation.__init__(
            self,
            operands=[values[name] for name in spec.operands],
            properties=properties,
            result_types=[types[n] if n in types else _result_type(spec.fields[n], x) for n in spec.results],
        )


def _attribute(one: Field, value: Any) -> Attribute | None:
    if value is None or isinstance(value, Attribute):
        return value
    assert one.convert is not None
    return one.convert(value)


def _irdl(one: Field) -> Any:
    if one.part == "result":
        return result_def(one.constraint)
    if one.part == "attribute":
        if one.is_required or one.is_written:
            return prop_def(one.constraint)
        default = _attribute(one, one.default)
        return opt_prop_def(one.constraint) if default is None else prop_def(one.constraint, default_value=default)
    make = var_operand_def if one.variadic else operand_def if one.is_required else opt_operand_def
    return make(one.constraint)


def _assembly_format(spec: Spec) -> str:
    """The syntax, other attributes, and the types that nothing else determines."""
    words = spec.syntax.replace("^", " ").split()
    typed = sorted((name for name in spec.operands if spec.fields[name].is_typed), key=lambda n: words.index(f"${n}"))
    optional = [name for name in typed if not spec.fields[name].is_required]
    types = " `,`".join(f" type(${name})" for name in typed if name not in optional)
    types += "".join(f" (`,` type(${name})^)?" for name in optional)
    results = " `,`".join(f" type(${name})" for name in spec.results if spec.fields[name].is_typed)
    arrow = f" `->`{results}" if results else ""
    return f"{spec.syntax} attr-dict{' `:`' if types or arrow else ''}{types}{arrow}".strip()


def _prepare(cls: Any) -> None:
    """Put away what the definition of a class says: its fields, and what else there is to know of it."""
    body = dict[str, Any](cls.__dict__)
    if "__definition__" in body:
        return
    own = {name: value for name, value in body.items() if isinstance(value, Field)}
    told = {name: body[name] for name in _TOLD if name in body}
    for name in (*own, *told):
        delattr(cls, name)
        body.get("__annotations__", {}).pop(name, None)
    cls.__definition__ = own, told


def _spec(cls: Any) -> Spec:
    """The definition of a class, with those parts that it has from the families it belongs to."""
    own: dict[str, Field] = {}
    told: dict[str, Any] = {}
    families: list[Any] = [base for base in reversed(cls.mro()) if issubclass(base, Instruction)]
    for base in families[1:]:
        _prepare(base)
        own, told = own | base.__definition__[0], told | base.__definition__[1]
    meaning = getattr(cls, "meaning", None)
    return Spec(cls.name, own, meaning=meaning, **told)


def _document(cls: Any, spec: Spec) -> None:
    """Add the constraints to the documentation, before the example."""
    rules = " ".join(f"C{position}: {rule.text}." for position, rule in enumerate(spec.rules, 1))
    before, example, after = (cls.__doc__ or "").partition("Example:")
    cls.__doc__ = f"{before.rstrip()}\n\n    {rules}\n\n    {example}{after}".rstrip() if rules else cls.__doc__


C = TypeVar("C", bound=type[Instruction])


def instruction(cls: C) -> C:
    """Make the op class of a definition."""
    made: Any = cls
    spec = _spec(made)
    several = [one for one in spec.fields.values() if one.part == "operand" and (one.variadic or not one.is_required)]
    _document(made, spec)
    made.__instruction__ = spec
    made.traits = traits_def(*spec.effects)
    options: list[Any] = [AttrSizedOperandSegments(as_property=True)] if len(several) > 1 else []
    made.irdl_options = (*options, ParsePropInAttrDict()) if options or spec.attributes else ()
    if made.assembly_format is None:
        made.assembly_format = _assembly_format(spec)
    made.verify_ = _verify
    if made.__init__ is IRDLOperation.__init__:
        made.__init__ = made.fill
    for name, one in spec.fields.items():
        setattr(made, name, _irdl(one))  # those of a family first, as the builder takes them
    return irdl_op_definition(cls)


def spec_of(op: Instruction | type[Instruction]) -> Spec:
    """The definition of an instruction."""
    return vars(op if isinstance(op, type) else type(op))["__instruction__"]


__all__ = ["Element", "Instruction", "element_of", "instruction", "spec_of", "view_of"]
