"""The body of a `pdl.rewrite`: the ops that it makes, with the names and places of those that they replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.context import Context
from xdsl.dialects import pdl
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, OptOperandDef, VarOperandDef
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.diagnostics import VerificationError
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.verification import first_lines, verify
from mlirt.errors import InvalidInputError
from mlirt.passes.rules import Match
from mlirt.passes.rules.rule import Outcome


class Untranslatable(Exception):
    """PDL that means nothing here; `op` is where."""

    def __init__(self, op: Operation, message: str) -> None:
        self.op = op
        super().__init__(message)


class Rewrite:
    """A function that rewrites as the body says; `where` is what errors call the pattern."""

    def __init__(self, rewrite: pdl.RewriteOp, names: dict[SSAValue, str], ctx: Context, where: str) -> None:
        self.body, self.names, self.ctx, self.where = list(rewrite.body.block.ops), names, ctx, where
        self.__name__ = where
        self._check(rewrite)

    def _check(self, rewrite: pdl.RewriteOp) -> None:
        for op in self.body:
            if not isinstance(op, _ALLOWED):
                raise Untranslatable(op, f"{op.name} is not supported in a rewrite")
            if isinstance(op, pdl.ReplaceOp) and op.op_value is not rewrite.root:
                raise Untranslatable(op, "only the root can be replaced")
        if not any(isinstance(op, pdl.ReplaceOp) for op in self.body):
            raise Untranslatable(rewrite, "expected pdl.replace of the root in the rewrite")

    def __call__(self, m: Match) -> Outcome:
        known: dict[SSAValue, Any] = {value: self._known(value, m) for value in self.names}
        outcome: Outcome = None
        try:
            for op in self.body:
                if isinstance(op, pdl.ReplaceOp):
                    outcome = _replacement(op, known)
                elif not isinstance(op, pdl.EraseOp):
                    known[op.results[0]] = self._evaluated(op, known, m)
        except (VerifyException, VerificationError, ValueError, IndexError) as error:
            reason = first_lines(error)
            raise InvalidInputError(
                f"pass apply-pdl: {self.where}: what it makes of {name_of(m.root)} is wrong: {reason}"
            ) from error
        return outcome

    def _known(self, value: SSAValue, m: Match) -> Any:
        """What a value of the pattern is: given there, or what has matched."""
        owner = value.owner
        if isinstance(owner, pdl.ResultOp):
            return self._known(owner.parent_, m).results[owner.index.value.data]
        given = owner.value if isinstance(owner, pdl.AttributeOp) else None
        given = owner.constantType if isinstance(owner, pdl.TypeOp) else given
        return m.captured(self.names[value]) if given is None else given

    def _evaluated(self, op: Operation, known: dict[SSAValue, Any], m: Match) -> Any:
        if isinstance(op, pdl.AttributeOp):
            return op.value
        if isinstance(op, pdl.TypeOp):
            return op.constantType
        if isinstance(op, pdl.ResultOp):
            return _value(known, op.parent_).results[op.index.value.data]
        assert isinstance(op, pdl.OperationOp)
        made = m.insert(self._made(op, known), *_replaced(m))
        verify(made)
        return made

    def _made(self, op: pdl.OperationOp, known: dict[SSAValue, Any]) -> Operation:
        assert op.opName is not None
        kind = self.ctx.get_op(op.opName.data)
        operands = [_value(known, one) for one in op.operand_values]
        names = [one.data for one in op.attributeValueNames]
        given = dict(zip(names, (_value(known, one) for one in op.attribute_values), strict=True))
        types = [_value(known, one) for one in op.type_values]
        if not issubclass(kind, IRDLOperation):
            return kind.create(operands=operands, attributes=given, result_types=types)
        definition = kind.get_irdl_definition()
        properties = {name: one for name, one in given.items() if name in definition.properties}
        attributes = {name: one for name, one in given.items() if name not in definition.properties}
        if not types and issubclass(kind, TensorOp):
            made: IRDLOperation = kind.build_inferred(_grouped(kind, operands), properties)
        else:
            grouped: list[Attribute | Sequence[Attribute]] = list(types)
            made = kind.build(operands=_grouped(kind, operands), properties=properties, result_types=grouped)
        made.attributes.update(attributes)
        return made


_ALLOWED = (pdl.AttributeOp, pdl.TypeOp, pdl.ResultOp, pdl.OperationOp, pdl.ReplaceOp, pdl.EraseOp)


def _value(known: dict[SSAValue, Any], value: SSAValue) -> Any:
    return known[value]


def _replacement(op: pdl.ReplaceOp, known: dict[SSAValue, Any]) -> Outcome:
    if op.repl_operation is not None:
        return _value(known, op.repl_operation)
    return [_value(known, one) for one in op.repl_values]


def _replaced(m: Match) -> list[Operation]:
    """The layers whose names the new ones take over: the root, and those that only matched ops read."""
    matched = (*m.shared, *m.ops)
    inside = set(matched)
    return [
        one
        for one in matched
        if not isinstance(one, ConstantOp)
        and (one is m.root or all(use.operation in inside for value in one.results for use in value.uses))
    ]


def _grouped(kind: type[IRDLOperation], operands: Sequence[SSAValue]) -> list[SSAValue | Sequence[SSAValue] | None]:
    """Operands as the op's definition has them: those that may be absent are taken from left to right."""
    definitions = [one for _, one in kind.get_irdl_definition().operands]
    spare = len(operands) - sum(not isinstance(one, VarOperandDef) for one in definitions)
    left, grouped = list(operands), list[SSAValue | Sequence[SSAValue] | None]()
    for one in definitions:
        if isinstance(one, OptOperandDef):
            takes = bool(left) and spare > 0
            spare -= takes
            grouped.append(left.pop(0) if takes else None)
        elif isinstance(one, VarOperandDef):
            grouped.append([left.pop(0) for _ in range(max(0, spare))])
        elif left:
            grouped.append(left.pop(0))
    return [*grouped, *left]
