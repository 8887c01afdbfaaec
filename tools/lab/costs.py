"""What IR costs before anything runs: the launches, the bytes that they read and write, and an estimate of the time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mlirt.builder.tactics.sites import find_sites
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.fused.slices import is_shown
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import dims, is_tensor, stored_bytes
from mlirt.dialects.typical_sizes import typical


@dataclass(frozen=True)
class Costs:
    """Launches, the bytes that all of them read and write, floating-point operations, estimated microseconds."""

    launches: int
    bytes: int
    operations: int
    microseconds: float


@dataclass(frozen=True)
class Machine:
    """Bytes and operations of a microsecond, and the microseconds of a launch: what data sheets say of a machine."""

    bytes: float
    operations: float
    launch: float


_BYTES_PER_THREAD = 10e3
_CLOCK = 3e3  # cycles of a microsecond
_BOTH = 2  # a multiplication and an addition


def machine_of(target: Target, precision: str) -> Machine:
    """The machine that kernels for a target run on, as far as is known of it; of a CPU a usual server core is assumed.

    Estimates tell two pipelines apart, on the same machine. They do not predict a time.
    """
    if target.kind == "cuda":
        gpu = target.gpu
        products = gpu.tensor_products if "fp16" in precision else gpu.float_products
        return Machine(gpu.memory_gb_s * 1e3, _BOTH * products * gpu.processors * gpu.clock_mhz, 2.0)
    operations = target.threads * _CLOCK * _BOTH * target.cpu.multiplies * target.vector_bits / 32
    return Machine(target.threads * _BYTES_PER_THREAD, operations, 1.5)


def costs_of(
    module: ModuleOp, launches: int, ctx: RtContext, target: Target, precision: str, sizes: Mapping[str, int]
) -> Costs:
    """The costs of a network after the phase `layout`, with these sizes of symbols; it has so many launches in the end.

    A launch takes what its tactic estimates, on a GPU; else the longer of its bytes and its operations at the speed of
    the machine, and a constant.
    """
    machine = machine_of(target, precision)
    estimates = _tactics_estimates(module, ctx, target)
    traffic = operations = 0
    time = 0.0
    for op in _launched(module):
        moved, computed = bytes_of(op, sizes), operations_of(op, sizes)
        traffic, operations = traffic + moved, operations + computed
        roof = machine.launch + max(moved / machine.bytes, computed / machine.operations)
        time += estimates.get(op, roof)
    return Costs(launches, traffic, operations, time)


def bytes_of(op: Operation, sizes: Mapping[str, int]) -> int:
    """Every operand and every result of a launch once; one that is read twice counts once."""
    values = dict.fromkeys((*op.operands, *op.results))
    return sum(_size(stored_bytes(value.type), sizes) for value in values if is_tensor(value.type))


def operations_of(op: Operation, sizes: Mapping[str, int]) -> int:
    """The products and sums of a contraction; 0 for launches that memory bounds."""
    if isinstance(op, MatmulOp):
        depth = dims(op.lhs.type)[-2 if op.transpose_lhs.value.data else -1]
        return 2 * _size(product((*dims(op.results[0].type), depth)), sizes)
    if isinstance(op, PackedMatmulOp):
        return 2 * _size(product((*dims(op.output.type), op.depth)), sizes)
    if isinstance(op, ConvolutionOp):
        side = op.input if op.transposed.value.data else op.results[0]
        return 2 * _size(product((*dims(side.type), *dims(op.kernel.type)[1:])), sizes)
    if isinstance(op, AttentionOp):
        return 2 * _size(product((*op.batch, op.queries, op.keys, op.depth + op.columns)), sizes)
    return 0


def _launched(module: ModuleOp) -> Iterator[FusedOp]:
    """The fused ops that something is launched for, those in branches and loops once."""
    for op in module.walk():
        if isinstance(op, FusedOp) and not isinstance(op, ViewOp) and not is_shown(op):
            yield op


def _tactics_estimates(module: ModuleOp, ctx: RtContext, target: Target) -> dict[Operation, float]:
    """What the tactics that lowering would take say of their time, by op; few of those for a CPU say anything."""
    if target.kind != "cuda":
        return {}
    found: dict[Operation, float] = {}
    for site in find_sites(module, ctx, target, 1):
        cost = 0.0 if site.free else site.candidates[0].cost if site.candidates else None
        if cost is not None and cost != float("inf"):
            found.update(dict.fromkeys(site.ops, cost))
    return found


def _size(dim: Dim, sizes: Mapping[str, int]) -> int:
    return typical(dim, sizes)
