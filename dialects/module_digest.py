"""A digest of a whole module: of all that passes see, so that equal digests mean equal results of a compilation.

It is made from structure, not from text, in a fraction of the time in which a module is printed: the text of each
different attribute is written once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import cast

from xdsl.dialects.builtin import AnyDenseElement, ArrayAttr, DenseIntOrFPElementsAttr, StringAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, Region, SSAValue

from mlirt.dialects.ir_printer import IrPrinter


def module_digest(module: Operation) -> str:
    """Of ops in their order, operands, types, attributes, locations and the hints of values; weights by their keys."""
    writer = _Writer()
    writer.op(module)
    return writer.state.hexdigest()


class _Writer:
    def __init__(self) -> None:
        self.state = hashlib.blake2b(digest_size=20)
        self._values: dict[SSAValue, int] = {}
        self._numbers: dict[Attribute, int] = {}
        self._known: dict[int, tuple[Attribute, int]] = {}  # by id, which stays as long as the attribute is held here

    def op(self, op: Operation) -> None:
        operands = [self._value(value) for value in op.operands]
        results = self._defined(op.results)
        given = self._attributes(op.attributes), self._attributes(op.properties), self._attribute(op.location)
        self._put(f"{op.name} {operands} {results} {given} {len(op.successors)} {len(op.regions)}")
        for block in op.successors:
            self._put(f"^{self._defined(block.args)}")
        for region in op.regions:
            self._region(region)

    def _region(self, region: Region) -> None:
        for block in region.blocks:
            self._put(f"block {self._defined(block.args)}")
            for op in block.ops:
                self.op(op)
        self._put("end")

    def _put(self, text: str) -> None:
        self.state.update(text.encode("utf-8", "surrogatepass") + b"\n")

    def _value(self, value: SSAValue) -> int:
        return self._values.setdefault(value, len(self._values))

    def _defined(self, values: Iterable[SSAValue]) -> list[tuple[int, int, str | None]]:
        return [(self._value(value), self._attribute(value.type), value.name_hint) for value in values]

    def _attributes(self, given: Mapping[str, Attribute]) -> list[tuple[str, int]]:
        return [(name, self._attribute(value)) for name, value in given.items()]

    def _attribute(self, attribute: Attribute) -> int:
        """Its number; the first of its kind is written in full."""
        known = self._known.get(id(attribute))
        if known is not None:
            return known[1]
        number = self._numbers.get(attribute, -1)
        if number < 0:
            text = self._text(attribute)
            number = self._numbers[attribute] = len(self._numbers)
            self._put(f"#{number} {text}")
        self._known[id(attribute)] = attribute, number
        return number

    def _text(self, attribute: Attribute) -> str:
        """Of what is made of other attributes their numbers, which need no printer; else its text."""
        if isinstance(attribute, StringAttr):
            return repr(attribute.data)
        if isinstance(attribute, ArrayAttr):
            parts = cast("ArrayAttr[Attribute]", attribute)
            return f"array {[self._attribute(one) for one in parts]}"
        if isinstance(attribute, ParametrizedAttribute) and attribute.name != DenseIntOrFPElementsAttr.name:
            return f"{attribute.name} {[self._attribute(one) for one in attribute.parameters]}"
        return _printed(attribute)


def _printed(attribute: Attribute) -> str:
    stream = StringIO()
    printer = IrPrinter(stream=stream, print_debuginfo=True)
    if isinstance(attribute, DenseIntOrFPElementsAttr):  # bits, as some numbers have no text of their own
        dense = cast("DenseIntOrFPElementsAttr[AnyDenseElement]", attribute)
        stream.write(f"{dense.data.data.hex()} : ")
        printer.print_attribute(dense.type)
    else:
        printer.print_attribute(attribute)
    return stream.getvalue()
