"""Graphs in which the device itself decides about branches and loops: conditional nodes of the CUDA driver.

A small kernel reads the byte that decides and sets the condition of a node, whose body is a graph of its own. Drivers
before CUDA 12.4 lack the calls; there the host decides.
"""

import ctypes
from collections.abc import Callable, Collection, Sequence
from ctypes import POINTER, addressof, byref, c_int, c_int32, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from mlirt.runtime.program import Branch, Loop, Place, Program, Step, parts

if TYPE_CHECKING:
    from mlirt.runtime.driver_interface import Driver

Handle = int
# Puts something on a stream.
Queue = Callable[[Handle], None]

_CONDITIONAL_NODE, _IF, _WHILE, _ASSIGN_DEFAULT, _RELAXED_CAPTURE = 13, 0, 1, 1, 2


class GraphMaker(Protocol):
    """What a driver must offer to make such graphs."""

    def new_graph(self) -> Handle: ...
    def destroy(self, graph: Handle) -> None: ...
    def instantiate(self, graph: Handle) -> Handle: ...
    def capture(self, graph: Handle, after: Sequence[Handle], stream: Handle, queues: Sequence[Queue]) -> list[Handle]:
        """Add what `queues` put on the stream, behind the nodes `after`; returns the last nodes."""
        ...

    def new_condition(self, graph: Handle) -> Handle:
        """A condition that is false when the graph starts."""
        ...

    def add_conditional(
        self, graph: Handle, after: Sequence[Handle], condition: Handle, *, loop: bool
    ) -> tuple[int, int]:
        """Add a node that runs its body where, or as long as, the condition holds; returns the node and the body."""
        ...


def is_device_only(step: Step, hosted: Collection[int] = ()) -> bool:
    """Whether nothing in a step needs the host: launches that it does not make, branches and loops, but no check."""
    if isinstance(step, int):
        return step not in hosted
    return isinstance(step, Branch | Loop) and all(is_device_only(one, hosted) for part in parts(step) for one in part)


def setting(driver: "Driver", function: Handle, condition: Handle, address: int, holds: bool) -> Queue:
    """What launches the kernel `function`, which sets a condition to whether the byte at an address is not 0, or is."""
    values = [c_uint64(condition), c_uint64(address), c_int32(holds)]
    pointers = (c_void_p * len(values))(*[addressof(value) for value in values])
    alive = (pointers, values)  # as long as somebody may put the kernel on a stream
    return lambda stream: driver.launch(function, (1, 1, 1), (32, 1, 1), 0, stream, alive[0])


@dataclass
class DeviceGraph:
    """Builds the graph of steps that need no host.

    `queue` gives what launches a step's kernel (None: nothing to launch), `setter` what sets a condition to whether the
    byte at a place is not 0 (or, with False, is 0).
    """

    maker: GraphMaker
    stream: Handle
    queue: Callable[[int], Queue | None]
    setter: Callable[[Handle, Place, bool], Queue]
    root: Handle = field(init=False)

    def build(self, steps: Program) -> Handle:
        """The executable graph."""
        self.root = self.maker.new_graph()
        try:
            self._chain(self.root, steps, [])
            return self.maker.instantiate(self.root)
        finally:
            self.maker.destroy(self.root)

    def _chain(self, graph: Handle, steps: Program, last: Sequence[Queue]) -> None:
        """Fill a graph with steps, one after the other, and with `last` behind them."""
        waiting: list[Queue] = []
        after: list[Handle] = []
        for step in _flat(steps):
            if isinstance(step, int):
                queue = self.queue(step)
                waiting += [] if queue is None else [queue]
            elif isinstance(step, Branch):
                sides = [(step.then, True), (step.otherwise, False)]
                chosen = [(side, self.maker.new_condition(self.root), holds) for side, holds in sides if side]
                waiting += [self.setter(condition, step.condition, holds) for _, condition, holds in chosen]
                after = self._flush(graph, waiting, after)
                for side, condition, _ in chosen:
                    node, body = self.maker.add_conditional(graph, after, condition, loop=False)
                    self._chain(body, side, [])
                    after = [node]
            elif isinstance(step, Loop):
                condition = self.maker.new_condition(self.root)
                decide = self.setter(condition, step.condition, True)
                waiting.append(decide)
                after = self._flush(graph, waiting, after)
                node, body = self.maker.add_conditional(graph, after, condition, loop=True)
                self._chain(body, (*step.body, *step.before), [decide])
                after = [node]
        self._flush(graph, [*waiting, *last], after)

    def _flush(self, graph: Handle, waiting: list[Queue], after: list[Handle]) -> list[Handle]:
        if not waiting:
            return after
        nodes = self.maker.capture(graph, after, self.stream, tuple(waiting))
        waiting.clear()
        return nodes


def _flat(steps: Program) -> list[Step]:
    """The steps with what comes before a loop's first decision in front of the loop."""
    found: list[Step] = []
    for step in steps:
        found += [*_flat(step.before), step] if isinstance(step, Loop) else [step]
    return found


class _Conditional(ctypes.Structure):
    _fields_ = [
        ("handle", c_uint64),
        ("type", c_int),
        ("size", c_uint),
        ("bodies", POINTER(c_void_p)),
        ("context", c_void_p),
    ]


class _NodeUnion(ctypes.Union):
    _fields_ = [("reserved", ctypes.c_longlong * 29), ("conditional", _Conditional)]


class _NodeParams(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("reserved0", c_int * 3),
        ("of", _NodeUnion),
        ("reserved2", ctypes.c_longlong),
    ]


_CALLS: dict[str, Sequence[Any]] = {
    "cuGraphCreate": [POINTER(c_void_p), c_uint],
    "cuGraphConditionalHandleCreate": [POINTER(c_uint64), c_void_p, c_void_p, c_uint, c_uint],
    "cuGraphAddNode_v2": [POINTER(c_void_p), c_void_p, POINTER(c_void_p), c_void_p, c_size_t, POINTER(_NodeParams)],
    "cuStreamBeginCaptureToGraph": [c_void_p, c_void_p, POINTER(c_void_p), c_void_p, c_size_t, c_int],
    "cuStreamGetCaptureInfo_v2": [
        *(
            c_void_p,
            POINTER(c_int),
            POINTER(c_uint64),
            POINTER(c_void_p),
            POINTER(POINTER(c_void_p)),
            POINTER(c_size_t),
        ),
    ],
}


class DriverGraphs:
    """Conditional graphs by libcuda; `check(call, status)` raises for a status that is an error."""

    def __init__(self, library: Any, context: c_void_p, check: Callable[[str, int], None]) -> None:
        self._cuda, self._context, self._check = library, context, check

    @staticmethod
    def offered(library: Any) -> bool:
        """Whether the driver has the calls; gives them their argument types."""
        if not all(hasattr(library, name) for name in _CALLS):
            return False
        for name, types in _CALLS.items():
            getattr(library, name).argtypes, getattr(library, name).restype = types, c_int
        return True

    def new_graph(self) -> Handle:
        graph = c_void_p()
        self._check("cuGraphCreate", self._cuda.cuGraphCreate(byref(graph), 0))
        return graph.value or 0

    def destroy(self, graph: Handle) -> None:
        self._check("cuGraphDestroy", self._cuda.cuGraphDestroy(graph))

    def instantiate(self, graph: Handle) -> Handle:
        executable = c_void_p()
        status = self._cuda.cuGraphInstantiateWithFlags(byref(executable), graph, 0)
        self._check("cuGraphInstantiateWithFlags", status)
        return executable.value or 0

    def capture(self, graph: Handle, after: Sequence[Handle], stream: Handle, queues: Sequence[Queue]) -> list[Handle]:
        needed = (c_void_p * max(len(after), 1))(*after)
        status = self._cuda.cuStreamBeginCaptureToGraph(stream, graph, needed, None, len(after), _RELAXED_CAPTURE)
        self._check("cuStreamBeginCaptureToGraph", status)
        try:
            for queue in queues:
                queue(stream)
            return self._last_nodes(stream)
        finally:
            ended = c_void_p()
            self._check("cuStreamEndCapture", self._cuda.cuStreamEndCapture(stream, byref(ended)))

    def _last_nodes(self, stream: Handle) -> list[Handle]:
        state, number, graph, count = c_int(), c_uint64(), c_void_p(), c_size_t()
        nodes = POINTER(c_void_p)()
        status = self._cuda.cuStreamGetCaptureInfo_v2(
            stream, byref(state), byref(number), byref(graph), byref(nodes), byref(count)
        )
        self._check("cuStreamGetCaptureInfo", status)
        return [int(nodes[k] or 0) for k in range(count.value)]

    def new_condition(self, graph: Handle) -> Handle:
        handle = c_uint64()
        status = self._cuda.cuGraphConditionalHandleCreate(byref(handle), graph, self._context, 0, _ASSIGN_DEFAULT)
        self._check("cuGraphConditionalHandleCreate", status)
        return handle.value

    def add_conditional(
        self, graph: Handle, after: Sequence[Handle], condition: Handle, *, loop: bool
    ) -> tuple[int, int]:
        params, node = _NodeParams(), c_void_p()
        params.type = _CONDITIONAL_NODE
        wanted = params.of.conditional
        wanted.handle, wanted.type, wanted.size = condition, _WHILE if loop else _IF, 1
        wanted.context = self._context
        needed = (c_void_p * max(len(after), 1))(*after)
        status = self._cuda.cuGraphAddNode_v2(byref(node), graph, needed, None, len(after), byref(params))
        self._check("cuGraphAddNode", status)
        return node.value or 0, params.of.conditional.bodies[0] or 0
