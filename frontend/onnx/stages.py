"""Cuts a model into stages that run one after the other, each on a device of its own (pipeline parallelism).

Stage k computes the nodes between two cuts of the graph, which are chosen so that the stages' weights are of about one
size and few tensors pass from one to the next. What a later stage needs of an earlier one is that one's output and
its own input, by the same name. Sums on shapes and masks that many nodes share are not passed on but computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, shape_inference

from mlirt.errors import InvalidInputError, UnsupportedError
from mlirt.frontend.onnx.model_reader import Model, ModelSource, read_model

MAX_REPEATED_NODES = 64
"""How many nodes are computed again at most, rather than one tensor passed on."""
MAX_REPEATED_BYTES = 1 << 10
"""Of the weights that such nodes read."""
_SLACK = 0.2
"""How far a cut may be from where the weights are divided equally, as a part of a stage."""
_MAX_INFERRED_BYTES = 1 << 10
"""Values of larger initializers say nothing about shapes."""


def split_model(source: ModelSource | Model, count: int, state: Mapping[str, str] | None = None) -> list[Model]:
    """`count` models, in the order in which they run.

    state: inputs with the outputs that they are in the next run; both come to one stage. Raises `InvalidInputError` for
    a count that the graph does not have, `UnsupportedError` where the rank of a tensor that is passed on is not known.
    """
    model = read_model(source)
    splitter = _Splitter(model, dict(state or {}))
    if not 1 <= count <= len(splitter.nodes):
        raise InvalidInputError(f"stages={count}: the model has {len(splitter.nodes)} nodes; give a number up to that")
    return splitter.stages(splitter.cuts(count))


class _Splitter:
    def __init__(self, model: Model, state: dict[str, str]) -> None:
        self.model, self.graph, self.state = model, model.proto.graph, state
        self.nodes = list(self.graph.node)
        self.reads = [frozenset(_reads(node)) for node in self.nodes]
        self.producer = {name: place for place, node in enumerate(self.nodes) for name in node.output if name}
        self.weights = {one.name: place for place, one in enumerate(self.graph.initializer)}
        self.sizes = [self._bytes(place, one) for place, one in enumerate(self.graph.initializer)]
        self.inputs = [one for one in self.graph.input if one.name not in self.weights]
        self.readers: dict[str, list[int]] = {}
        for place, reads in enumerate(self.reads):
            for name in reads:
                self.readers.setdefault(name, []).append(place)
        self.repeated = {name for name in self.producer if self._is_repeated(name)}
        _check_state(state, {one.name for one in self.inputs}, {one.name for one in self.graph.output})

    def _bytes(self, place: int, tensor: TensorProto) -> int:
        if place in self.model.stored:
            return len(self.model.stored[place])
        external = {entry.key: entry.value for entry in tensor.external_data}
        return int(external.get("length") or tensor.ByteSize())

    def _is_repeated(self, name: str) -> bool:
        """Whether few nodes compute a tensor from the graph's inputs, and read small weights alone, and no state."""
        found: set[int] = set()
        pending, size = [name], 0
        while pending:
            one = pending.pop()
            if one in self.weights:
                size += self.sizes[self.weights[one]]
            elif one in self.producer and self.producer[one] not in found:
                found.add(self.producer[one])
                pending += self.reads[self.producer[one]]
            if one in self.state or len(found) > MAX_REPEATED_NODES or size > MAX_REPEATED_BYTES:
                return False
        return True

    def cuts(self, count: int) -> list[int]:
        """The number of the first node of each stage but the first."""
        sums = self._sums_of_weights()
        part, found, least = sums[-1] / count, list[int](), 0
        for number in range(1, count):
            places = range(least + 1, len(self.nodes) - (count - number) + 1)
            off = {place: abs(sums[place - 1] - part * number) for place in places}
            near = [place for place in places if off[place] <= _SLACK * part] or [min(places, key=off.__getitem__)]
            least = min(near, key=lambda place: (self._tears(place), self._passed(place), off[place]))
            found.append(least)
        return found

    def _sums_of_weights(self) -> list[int]:
        """The bytes of the weights that each node and those before it read."""
        seen: set[str] = set()
        sums: list[int] = []
        for reads in self.reads:
            own = (reads & self.weights.keys()) - seen
            seen |= own
            sums.append((sums[-1] if sums else 0) + 1 + sum(self.sizes[self.weights[name]] for name in own))
        return sums

    def _tears(self, cut: int) -> bool:
        """Whether a state is read on one side of a cut and made on the other."""
        ends = ((self.readers.get(given, []), self.producer.get(made, 0)) for given, made in self.state.items())
        return any((place < cut) != (made < cut) for readers, made in ends for place in readers)

    def _passed(self, cut: int) -> int:
        """How many tensors are made before a cut and read behind it."""
        return sum(
            self.producer[name] < cut <= self.readers[name][-1]
            for name in self.readers.keys() & self.producer.keys() - self.repeated
        )

    def stages(self, cuts: Sequence[int]) -> list[Model]:
        """From the last to the first, as what a stage reads of others is what they have to give."""
        later: set[str] = set()
        found: list[tuple[list[int], list[str], list[str]]] = []
        for start, end in reversed(list(pairwise([0, *cuts, len(self.nodes)]))):
            own = range(start, end)
            made = [one.name for one in self.graph.output if self.producer.get(one.name, 0) in own]
            made += sorted(name for name in later if self.producer[name] in own and name not in made)
            members, given = self._needed(start, made)
            later |= given & self.producer.keys()
            found.append((members, sorted(given), made))
        types = self._types(later)
        return [self._model(number, *stage, types) for number, stage in enumerate(reversed(found))]

    def _needed(self, start: int, made: Sequence[str]) -> tuple[list[int], set[str]]:
        """The nodes that compute tensors, and what these read that is not made from number `start` on."""
        members, given, pending = set[int](), set[str](), list(made)
        while pending:
            name = pending.pop()
            place = self.producer.get(name)
            if place is None or (place < start and name not in self.repeated):
                given |= {name} - self.weights.keys()
            elif place not in members:
                members.add(place)
                pending += self.reads[place]
        return sorted(members), given

    def _types(self, names: set[str]) -> dict[str, ValueInfoProto]:
        """The types of tensors that pass from stage to stage, by ONNX's own inference."""
        known = {one.name: one for one in (*self.inputs, *self.graph.output)}
        if names - known.keys():
            inferred = shape_inference.infer_shapes(self._skeleton(), data_prop=True)
            known = {one.name: one for one in inferred.graph.value_info} | known
        for name in sorted(names):
            if name not in known or not known[name].type.tensor_type.HasField("shape"):
                node = self.nodes[self.producer[name]]
                raise UnsupportedError(
                    f"node {node.name!r} ({node.op_type}): its output {name!r} passes from one stage to the next, and "
                    "its number of dimensions is not known; write it into the model's value_info"
                )
        return known

    def _skeleton(self) -> ModelProto:
        """The model with inputs in place of large weights."""
        proto = ModelProto(ir_version=self.model.proto.ir_version, opset_import=self.model.proto.opset_import)
        proto.functions.extend(self.model.proto.functions)
        proto.graph.name = self.graph.name
        proto.graph.node.extend(self.nodes)
        proto.graph.output.extend(self.graph.output)
        proto.graph.value_info.extend(self.graph.value_info)
        proto.graph.input.extend(self.inputs)
        for place, tensor in enumerate(self.graph.initializer):
            if self.sizes[place] <= _MAX_INFERRED_BYTES:
                proto.graph.initializer.append(tensor)
            else:
                proto.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        return proto

    def _model(
        self,
        number: int,
        members: Sequence[int],
        given: Sequence[str],
        made: Sequence[str],
        types: Mapping[str, ValueInfoProto],
    ) -> Model:
        proto = ModelProto(ir_version=self.model.proto.ir_version, opset_import=self.model.proto.opset_import)
        proto.functions.extend(self.model.proto.functions)
        graph = proto.graph
        graph.name = f"{self.graph.name}, stage {number}"
        graph.node.extend(self.nodes[place] for place in members)
        graph.input.extend(one for one in self.inputs if one.name in given)
        graph.input.extend(types[name] for name in given if name in self.producer)
        graph.output.extend(types[name] for name in made)
        used = frozenset(made).union(*(self.reads[place] for place in members))
        stored: dict[int, memoryview] = {}
        for place, tensor in enumerate(self.graph.initializer):
            if tensor.name in used:
                if place in self.model.stored:
                    stored[len(graph.initializer)] = self.model.stored[place]
                graph.initializer.append(tensor)
        return Model(proto, stored, self.model.folder)


def _check_state(state: Mapping[str, str], inputs: set[str], outputs: set[str]) -> None:
    for given, made in state.items():
        for what, name, names in (("input", given, inputs), ("output", made, outputs)):
            if name not in names:
                raise InvalidInputError(f"state: the model has no {what} {name!r}; it has {sorted(names)}")


def _reads(node: NodeProto) -> Iterator[str]:
    """The tensors that a node reads, with those that graphs within it read from around them."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            yield from _captured(graph)


def _captured(graph: GraphProto) -> set[str]:
    own = {one.name for one in (*graph.input, *graph.initializer)}
    own.update(name for node in graph.node for name in node.output)
    read = {name for node in graph.node for name in _reads(node)} | {one.name for one in graph.output}
    return read - own
