"""Which formulas are those of a simple, an LSTM or a GRU cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlirt.dialects.trt.activation import ActivationKind
from mlirt.dialects.trt.rnn import RnnCell
from mlirt.passes.control_flow.cell_formulas import (
    Activated,
    Atom,
    Formula,
    Invariant,
    Matrix,
    NotACellError,
    Product,
    SliceOfIteration,
    State,
    activations_in,
    rows_and_columns,
)

Function = tuple[ActivationKind, float, float]
Input = tuple[SliceOfIteration | Product, float]
Bias = tuple[Invariant | None, float]


@dataclass
class Gate:
    """What is added up for a gate, each with a coefficient: a bias without a value is the number itself."""

    inputs: list[Input] = field(default_factory=list[Input])
    recurrent: list[tuple[Matrix, float]] = field(default_factory=list[tuple[Matrix, float]])
    biases: list[Bias] = field(default_factory=list[Bias])
    recurrent_biases: list[Bias] = field(default_factory=list[Bias])
    """Those that a reset gate multiplies with the hidden state's product."""

    def negated(self) -> Gate:
        return Gate(
            [(value, -number) for value, number in self.inputs],
            [(value, -number) for value, number in self.recurrent],
            [(value, -number) for value, number in self.biases],
            [(value, -number) for value, number in self.recurrent_biases],
        )


@dataclass
class Cell:
    """A cell: its gates in the order of `trt.rnn`, and where the loop carries its states."""

    kind: RnnCell
    hidden: State
    gates: list[Gate]
    functions: list[Function]
    memory: State | None = None
    linear_before_reset: bool = False
    input_forget: bool = False

    @property
    def size(self) -> int:
        return self.hidden.width

    def slices(self) -> list[SliceOfIteration]:
        """The slices of sequences that its gates read."""
        found: dict[SliceOfIteration, None] = {}
        for gate in self.gates:
            for value, _ in gate.inputs:
                found |= dict.fromkeys(_slices_in(value))
        return list(found)


def cell_of(hidden: State, following: Formula, others: Mapping[State, Formula]) -> Cell:
    """The cell whose hidden state becomes `following`; `others` are the other states and what they become.

    Raises `NotACellError` where it is none.
    """
    terms = following.coefficients()
    if len(terms) == 1:
        ((atoms, number),) = terms.items()
        active = [atom for atom in atoms if isinstance(atom, Activated)]
        if number == 1 and len(active) == len(atoms) == 1:
            return Cell(RnnCell.SIMPLE, hidden, [_gate(active[0].inner, hidden)], [active[0].function])
        if number == 1 and len(active) == len(atoms) == 2:
            return _lstm(hidden, active, others)
    if len(terms) == 3:
        return _gru(hidden, terms)
    raise NotACellError("its next state is no sum of a cell")


def _lstm(hidden: State, active: Sequence[Activated], others: Mapping[State, Formula]) -> Cell:
    """h = f(o) k(c)."""
    for out, shown in (active, active[::-1]):
        for memory, following in others.items():
            if memory.width == hidden.width and shown.inner == following:
                return _lstm_of(hidden, memory, out, shown.function, following)
    raise NotACellError("its next state is a product with no cell state in it")


def _lstm_of(hidden: State, memory: State, out: Activated, shown: Function, following: Formula) -> Cell:
    """c = f(f) c + f(i) g(c~), or (1 - f(i)) c + f(i) g(c~)."""
    terms = following.coefficients()
    added = [list(atoms) for atoms in terms if memory not in atoms]
    if len(added) != 1 or len(added[0]) != 2 or terms[frozenset(added[0])] != 1:
        raise NotACellError("its cell state is not what is kept and what is added")
    for into, new in (added[0], added[0][::-1]):
        if not isinstance(into, Activated) or not isinstance(new, Activated) or into.function != out.function:
            continue
        is_coupled = terms == {
            frozenset({memory}): 1.0,
            frozenset({memory, into}): -1.0,
            frozenset({into, new}): 1.0,
        }
        keep = into if is_coupled else _kept(terms, memory)
        if keep is None or keep.function != out.function:
            continue
        gates = [_gate(one.inner, hidden) for one in (into, out, keep, new)]
        functions = [out.function, new.function, shown]
        return Cell(RnnCell.LSTM, hidden, gates, functions, memory, input_forget=is_coupled)
    raise NotACellError("its gates have different activations")


def _kept(terms: Mapping[frozenset[Atom], float], memory: State) -> Activated | None:
    """The gate that the cell state is multiplied by, where that is all of it."""
    kept = [(atoms, number) for atoms, number in terms.items() if memory in atoms]
    if len(terms) != 2 or len(kept) != 1 or kept[0][1] != 1 or len(kept[0][0]) != 2:
        return None
    return next(iter(activations_in(kept)), None)


def _gru(hidden: State, terms: Mapping[frozenset[Atom], float]) -> Cell:
    """h = (1 - z) n + z h; or z n + (1 - z) h, of which the update gate is 1 - z, the sigmoid of the negative sum."""
    active = activations_in(list(terms.items()))
    for update, new in (active, active[::-1]) if len(active) == 2 else ():
        usual = {frozenset({new}): 1.0, frozenset({new, update}): -1.0, frozenset({hidden, update}): 1.0}
        turned = {frozenset({hidden}): 1.0, frozenset({hidden, update}): -1.0, frozenset({new, update}): 1.0}
        if terms not in (usual, turned):
            continue
        if terms == turned and update.kind is not ActivationKind.SIGMOID:
            raise NotACellError("what it keeps of its state is no sigmoid")
        gate = _gate(update.inner, hidden)
        inner, reset = _inner_gate(new.inner, hidden)
        if reset.function != update.function:
            raise NotACellError("its gates have different activations")
        if any(bias is not None and rows_and_columns(bias.value)[0] != 1 for bias, _ in inner.recurrent_biases):
            raise NotACellError("its reset gate multiplies a bias for each sequence")
        is_linear = not any(reset in one.factors for one in _products(new.inner))
        gates = [gate if terms == usual else gate.negated(), _gate(reset.inner, hidden), inner]
        functions = [update.function, new.function]
        return Cell(RnnCell.GRU, hidden, gates, functions, linear_before_reset=is_linear)
    raise NotACellError("its next state is no mixture of the state and a new one")


def _inner_gate(formula: Formula, hidden: State) -> tuple[Gate, Activated]:
    """The gate of a GRU's new state, and its reset gate, which multiplies the state or the product with it."""
    resets = dict.fromkeys(
        atom
        for atoms, _ in formula.terms
        for atom in (*atoms, *(one for product in atoms if isinstance(product, Product) for one in product.factors))
        if isinstance(atom, Activated)
    )
    if len(resets) != 1:
        raise NotACellError("its new state has no reset gate")
    (reset,) = resets
    gate, is_linear, is_before = Gate(), False, False
    for atoms, number in formula.terms:
        rest = atoms - {reset}
        if rest != atoms:
            _add(gate, rest, number, frozenset({hidden}), gate.recurrent_biases)
            is_linear = True
        else:
            before = frozenset({hidden, reset})
            _add(gate, atoms, number, before, gate.biases)
            is_before |= any(isinstance(atom, Product) and atom.factors == before for atom in atoms)
    if is_linear == is_before:
        raise NotACellError("its reset gate is at two places")
    if is_linear and any(matrix_input for matrix_input in _hidden_inputs(formula, reset)):
        raise NotACellError("its reset gate multiplies an input")
    return _complete(gate), reset


def _hidden_inputs(formula: Formula, reset: Activated) -> list[Atom]:
    """Inputs of the iteration that a reset gate multiplies."""
    inside = [atom for atoms, _ in formula.terms if reset in atoms for atom in atoms]
    return [
        atom
        for atom in inside
        if isinstance(atom, SliceOfIteration) or (isinstance(atom, Product) and _slices_in(atom))
    ]


def _products(formula: Formula) -> list[Product]:
    return [atom for atoms, _ in formula.terms for atom in atoms if isinstance(atom, Product)]


def _gate(formula: Formula, hidden: State) -> Gate:
    gate = Gate()
    for atoms, number in formula.terms:
        _add(gate, atoms, number, frozenset({hidden}), gate.biases)
    return _complete(gate)


def _complete(gate: Gate) -> Gate:
    if not gate.inputs or not gate.recurrent:
        raise NotACellError("a gate lacks the input or the state")
    return gate


def _add(gate: Gate, atoms: frozenset[Atom], number: float, state: frozenset[Atom], biases: list[Bias]) -> None:
    """Add a term to a gate, `state` being what its recurrent weights multiply."""
    if not atoms:
        biases.append((None, number))
        return
    atom = next(iter(atoms))
    if len(atoms) > 1:
        raise NotACellError("a gate has a product of what changes")
    if isinstance(atom, Product) and atom.factors == state:
        gate.recurrent.append((atom.matrix, number))
    elif isinstance(atom, SliceOfIteration) or (isinstance(atom, Product) and _slices_in(atom)):
        gate.inputs.append((atom, number))
    elif isinstance(atom, Invariant):
        biases.append((atom, number))
    else:
        raise NotACellError("a gate reads something else than the input and the state")


def _slices_in(value: SliceOfIteration | Product) -> list[SliceOfIteration]:
    """The slice that is an input, or that a matrix multiplies."""
    if isinstance(value, SliceOfIteration):
        return [value]
    found = [atom for atom in value.factors if isinstance(atom, SliceOfIteration)]
    return found if len(value.factors) == 1 else []
