"""Two graphs of which the run takes one, as a branch in the network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.regions import condition_of
from mlirt.dialects.symbolic import Dim, sym, symbols
from mlirt.dialects.tensor_types import Tensor, element_of, tensor
from mlirt.dialects.trt.define_size import DefineSizeOp
from mlirt.dialects.trt.require import RequireOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.importing.dimension_names import identifier
from mlirt.frontend.importing.layers import expand, reshape, scalar_like
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.assumptions import RankConflict
from mlirt.frontend.onnx.node import Node


@dataclass
class Arm:
    """One side: its ops, its results, and the names that it gave to sizes that only the run tells."""

    block: Block
    results: list[Value]
    own_names: frozenset[str]


def branch(net: Network, node: Node, condition: Value, arms: Sequence[Callable[[], Sequence[Value]]]) -> list[Value]:
    """The results of the first function's ops where the condition holds, else of the second's.

    Lengths that differ become sizes that only the run tells; ranks and element types must be equal.
    """
    taken, other = _read_both(net, node, arms)
    types = [_joined(net, node, k, *pair) for k, pair in enumerate(_pairs(node, taken, other))]
    then, otherwise = (_closed(net, arm, types) for arm in (taken, other))
    ops, holds = condition_of(net.ssa(scalar_of(net, condition)))
    made = scf.IfOp(holds, types, then, otherwise)
    for op in (*ops, made):
        net.append_at(op)
    return [Value(type_, ssa) for type_, ssa in zip(types, made.results, strict=True)]


def scalar_of(net: Network, value: Value) -> Value:
    """A tensor of one element without dimensions."""
    return reshape(net, value, [])


def assume(net: Network, node: Node, condition: Value, side: bool) -> None:
    """Let the run check that a condition is what the network was read with."""
    holds = scalar_of(net, condition)
    fits = holds if side else net.emit("unary", [holds], kind="not")
    message = f"{node.label}: these inputs take the side of the branch that the engine was not built for"
    net.append_at(RequireOp(net.ssa(fits), message))


def _read_both(net: Network, node: Node, arms: Sequence[Callable[[], Sequence[Value]]]) -> tuple[Arm, Arm]:
    """Both sides; one that makes no sense for the shapes at hand ends the run, should it be taken."""
    read: list[Arm | InvalidModelError] = []
    for arm in arms:
        try:
            read.append(_read(net, arm))
        except InvalidModelError as error:
            read.append(error)
    first, second = read
    if isinstance(first, Arm):
        return first, second if isinstance(second, Arm) else _refusing(net, first, second)
    if isinstance(second, Arm):
        return _refusing(net, second, first), second
    raise first


def _refusing(net: Network, like: Arm, error: InvalidModelError) -> Arm:
    """A side that ends the run with an error, and for the types' sake has results."""
    net.mismatches += 1

    def refuse() -> list[Value]:
        never = net.constant(np.array(False))
        net.append_at(RequireOp(net.ssa(never), str(error)))
        return [expand(net, scalar_like(net, 0, value), value.dims) for value in like.results]

    return _read(net, refuse)


def _read(net: Network, arm: Callable[[], Sequence[Value]]) -> Arm:
    block, count = Block(), len(net.fresh_names)
    try:
        with net.inside(block):
            results = list(arm())
            for value in results:
                net.ssa(value)
    except InvalidModelError:
        block.drop_all_references()  # what has been read of it must not count as a use
        raise
    return Arm(block, results, frozenset(net.fresh_names[count:]))


def _pairs(node: Node, taken: Arm, other: Arm) -> list[tuple[tuple[Arm, Value], tuple[Arm, Value]]]:
    if len(taken.results) != len(other.results):
        raise node.invalid(f"its branches have {len(taken.results)} and {len(other.results)} outputs")
    return [((taken, a), (other, b)) for a, b in zip(taken.results, other.results, strict=True)]


def _joined(net: Network, node: Node, k: int, first: tuple[Arm, Value], second: tuple[Arm, Value]) -> Tensor:
    """The type that both sides' results have, with new names for lengths that differ."""
    left, right = first[1], second[1]
    if left.element != right.element:
        raise node.invalid(f"output {k} is {left.element_name} in one branch and {right.element_name} in the other")
    if left.rank != right.rank:
        refusal = node.unsupported(
            f"output {k} has {left.rank} dimensions in one branch and {right.rank} in the other; a tensor's number "
            "of dimensions must not depend on the data"
        )
        raise RankConflict(node.name, refusal)

    def joined(a: Dim, b: Dim) -> Dim:
        is_common = a == b and not symbols(a) & (first[0].own_names | second[0].own_names)
        return a if is_common else sym(net.fresh_name(f"{identifier(node.name)}_d"))

    return tensor(left.element, [joined(a, b) for a, b in zip(left.dims, right.dims, strict=True)])


def _closed(net: Network, arm: Arm, types: Sequence[Tensor]) -> Region:
    """The region of one side, which says what the sizes of the results are and ends with them."""
    from mlirt.dialects.tensor_types import dims

    results: list[SSAValue] = [net.ssa(value) for value in arm.results]
    with net.inside(arm.block):
        for value, type_ in zip(arm.results, types, strict=True):
            assert element_of(type_) == value.element
            for own, joined in zip(value.dims, dims(type_), strict=True):
                if own != joined:
                    net.append_at(DefineSizeOp(str(joined), None, own))
        net.append_at(scf.YieldOp(*results))
    return Region(arm.block)
