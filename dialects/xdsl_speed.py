"""What xDSL 0.74.0 asks of every op and attribute, answered in less time; nothing that can be seen changes.

A build asks millions of times which class an op has, what its operands are, and whether the parameters of a new
attribute are of the right class. xDSL answers each time by way of abstract base classes, views and constraints: that
was a third of a build. `install` puts these in place, and those of `xdsl_operands` and `xdsl_construction`:

- `isinstance` of IR classes looks at the class, not at registered ones, of which xDSL has none: `_PlainClass`
- the identity of ops and values is that of Python's objects, and hashes of attributes are computed once
- values that come from the block that they are used in are not looked for further up: `_verify_isolation`
"""

from __future__ import annotations

from abc import ABCMeta

from xdsl.ir import Attribute, IRWithName, IRWithUses, Operation, SSAValue, Use
from xdsl.irdl import IRDLOperation
from xdsl.traits import IsolatedFromAbove

from mlirt.dialects import xdsl_construction, xdsl_operands
from mlirt.dialects.xdsl_hashes import remember_hashes
from mlirt.dialects.xdsl_operands import ops_from


class _PlainClass(ABCMeta):
    """The class of IR classes: abstract methods as before, instances by their class alone."""

    __instancecheck__ = type.__instancecheck__


def _make_plain(base: type) -> None:
    for one in (base, *base.__subclasses__()):
        if type(one) is ABCMeta:
            one.__class__ = _PlainClass
        if one is not base:
            _make_plain(one)


_xdsl_verify_isolation = IsolatedFromAbove.verify


def _verify_isolation(self: IsolatedFromAbove, op: Operation) -> None:
    """Most values come from the block that they are used in; xDSL climbs up to `op` from each of them."""
    regions = list(op.regions)
    while regions:
        for block in regions.pop().blocks:
            for inner in ops_from(block.first_op):
                for value in inner.operands:
                    owner = value.owner
                    if owner is not block and owner.parent is not block:
                        _xdsl_verify_isolation(self, op)
                        return
                if inner.regions:
                    regions += inner.regions


def install() -> None:
    """Put the quick ways in place; once is enough, more does no harm."""
    node: type = Operation.__mro__[1]  # the base class of ops, blocks and regions has no public name
    for base in (Attribute, node, IRWithUses, IRWithName):
        _make_plain(base)
    for base in (SSAValue, node, IRDLOperation, Use):
        setattr(base, "__hash__", object.__hash__)
        setattr(base, "__eq__", object.__eq__)
    remember_hashes(Attribute)
    IsolatedFromAbove.verify = _verify_isolation
    xdsl_operands.install()
    xdsl_construction.install()
