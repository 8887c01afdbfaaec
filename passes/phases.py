"""The whole compiler on one page: its phases, their passes with a reason for their place, what is legal after each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mlirt.dialects.target import TargetMachine
from mlirt.errors import InvalidInputError
from mlirt.passes import registry


@dataclass(frozen=True)
class Step:
    """One pass at its place.

    `target`, `precision` and `without` restrict it to one target, to precisions that permit one, to those that do not;
    `right` to builds whose fast math grants it.
    """

    spec: str
    reason: str
    target: str | None = None
    precision: str | None = None
    without: str | None = None
    right: str | None = None

    @property
    def pass_name(self) -> str:
        return self.spec.partition("{")[0]


@dataclass(frozen=True)
class Phase:
    """A phase of the pipeline. After it only ops that `legal` names may be left: `dialect` or `dialect.op`."""

    name: str
    purpose: str
    steps: tuple[Step, ...]
    legal: frozenset[str]


BRIDGES = frozenset({"tensor.extract", "tensor.from_elements", "arith.constant", "arith.index_cast"})
NETWORK = BRIDGES | frozenset({"builtin", "func", "check", "trt", "scf"})
CHECKS = frozenset({"trt.define_size", "trt.require", "trt.require_lengths"})
SCALARS = frozenset({"arith", "math", "kernel.remf"})
FUSED = CHECKS | BRIDGES | SCALARS | frozenset({"builtin", "func", "check", "trt.constant", "fused", "scf"})
LOOPS = frozenset({"builtin", "func", "trt.constant", "plan", "kernel", "scf", "arith", "math", "memref"})

PHASES = (
    Phase("import", "the network as it was trained", (), NETWORK),
    Phase(
        "cleanup",
        "the same network with less in it",
        (
            Step("name-dimensions", "sizes of the inputs have names before shapes are computed with them"),
            Step("infer-nesting", "a network only says where loops and conditionals begin and end"),
            Step("convert-loops-to-scf", "inner loops are closed before what is around them"),
            Step("convert-conditionals-to-scf", "branches hold the loops in them by now"),
            Step("unify-dimensions", "sizes that must be equal are one before anything is decided about them"),
            Step("require-lengths{inputs_only=true}", "later passes remove layers that a run must check lengths for"),
            Step(
                "convert-precision{to=f32}",
                "a CPU computes half precision by way of float32, so it does so whichever precision is asked for",
                "cpu",
            ),
            Step(
                "convert-precision{to=f32}",
                "a network in half precision keeps the accuracy of float32, unless half precision is permitted",
                "cuda",
                without="fp16",
            ),
            Step("canonicalize", "identities and no-ops are erased, so that later patterns need not look through them"),
            Step("fold-constants", "what only depends on weights is computed once, here"),
            Step(
                "define-data-dependent-sizes", "what is known is folded; what only a run tells has a name from here on"
            ),
            Step("propagate-shapes", "folded shape operands make dimensions known"),
            Step("unify-dimensions", "known dimensions bring new equations between those of the inputs"),
            Step("fold-known-branches", "a condition may be constant by now"),
            Step("broadcast-operands", "equations are solved, and what follows need not look for lengths of 1"),
            Step("note-size-program", "what sizes follow from is whole numbers in the network's own terms"),
            Step("require-lengths", "equations are solved, and no layer has left its branch yet"),
            Step("hoist-broadcasts", "lengths have been noted where they meet; what is repeated early fuses"),
            Step(
                "simplify-carried-values",
                "weights that exporters carry through loops are constants of the iterations again",
            ),
            Step("hoist-loop-invariants", "loop-invariant code motion, before cells are looked for"),
            Step("recognize-recurrent-loops", "loop-invariant weights have left the loop, and cells are still whole"),
            Step("unroll-loops", "slices at a constant counter are plain, and iterations fuse with each other"),
            Step("hoist-input-products", "one product of a whole sequence is faster than one for each step"),
            Step("forward-collected-slices", "products in front of the loop leave nothing to collect in it"),
            Step("simplify-carried-values", "states that are results of layers in front of the loop are erased"),
            Step("fuse-loops", "loops with the same trip count share one counter"),
            Step("convert-if-to-select", "tiny branches fuse with what is around them"),
            Step("simplify-shuffles", "transposes and reshapes meet and cancel once their shapes are known"),
            Step("hoist-row-transposes", "what two shuffles do around a product is one shuffle by now"),
            Step("fold-constants", "what moved in front of a constant is computed too"),
            Step("fold-requirements", "conditions that are ever known when the engine is built are known by now"),
            Step("dce", "an unused layer must not count as the second reader of another one"),
            Step(
                "move-scale-before-bias",
                "products too take a scale into their weights, but only their own",
                right="reassociate",
            ),
            Step(
                "fold-scale-into-convolution",
                "batch normalization becomes weights while convolutions are still layers",
                right="reassociate",
            ),
            Step("fuse-padding-convolution", "explicit zero padding becomes the convolution's own"),
            Step(
                "fold-pooling-into-convolution",
                "means of results are results of larger windows, scales and all",
                right="reassociate",
            ),
            Step(
                "move-sums-before-products",
                "scales and paddings are in the weights, whose columns are added",
                right="reassociate",
            ),
            Step(
                "simplify-algebra{fast_math={fast_math} target={target}{device}}",
                "weights have all that is moved into them anyway, and layers still have their own names",
            ),
            Step("fuse-sibling-convolutions", "convolutions of one input become one, before each grows an epilogue"),
            Step("convert-patches-to-product", "weights have all factors; moves may meet other moves", "cuda"),
            Step("canonicalize", "moved and folded layers leave new identities"),
            Step("cse", "equal layers run once"),
            Step("remove-dead-loops", "loops whose results are unused are dead code"),
            Step("dce", "dead code elimination of layers"),
            Step("insert-scales", "ranges belong to the tensors that are left"),
        ),
        NETWORK,
    ),
    Phase(
        "quantization",
        "what the network quantises is computed with integers, before other layers are joined",
        (
            Step("use-rational-activations", "what is rounded behind them must not depend on the target"),
            Step("propagate-quantization", "layers that only move or compare numbers do so with the integers"),
            Step("fold-constants", "integers of weights move when the engine is built"),
            Step("cse", "what several layers quantised alike is quantised once"),
            Step("remove-redundant-scales", "conversions that now meet cancel"),
            Step("quantize-lone-weights", "layers between int8 tensors can be int8 layers once their weights are"),
            Step("expand-quantized-deconvolution", "convolutions have int8 kernels, and deconvolutions none"),
            Step("fuse-quantized-convolution", "convolutions take the scales around them as one factor"),
            Step("fuse-quantized-products", "matrix products take the scales around them as one factor too"),
            Step("fuse-packed-products", "what no integer product took; weights stay as few bits as they have", "cpu"),
            Step(
                "fuse-packed-products{most_rows=8 floats=true}",
                "what no integer product took; more rows have faster products once the weights are numbers",
                "cuda",
            ),
            Step("fuse-float8-products", "8-bit floats are multiplied as they are, where a machine does so", "cuda"),
            Step("fuse-quantized-pointwise", "sums and products round as integer kernels do, while scales are known"),
            Step("fuse-quantized-pooling", "sums of int8 are exact, while scales are known"),
            Step("explain-quantization", "layers that compute in int8 are known by now, and so is why others do not"),
            Step("use-unsigned-activations", "the int8 dot products of CPUs (VNNI) take uint8 times int8", "cpu"),
            Step("fold-constants{scales=true}", "scales and weights that no int8 layer took are numbers", "cpu"),
            Step("fold-constants{scales=true packed=true}", "scales that no int8 layer took are numbers", "cuda"),
            Step("fold-scale-into-convolution", "int8 layers take batch normalization too", right="reassociate"),
            Step("cse", "equal multipliers and zero points are shared"),
            Step("dce", "dead code elimination of conversions"),
        ),
        NETWORK,
    ),
    Phase(
        "fusion",
        "what runs together: one op for one launch",
        (
            Step(
                "convert-precision{to=f16}",
                "half precision once the weights are final, and before layers lose their types to scalar bodies",
                "cuda",
                "fp16",
            ),
            Step("simplify-cumulative", "running totals take halves as they are, now that formats are decided", "cuda"),
            Step(
                "simplify-cumulative{rows_in_halves=false}",
                "running totals take halves as they are, but for those that a scalar loop makes",
                "cpu",
            ),
            Step("expand-topk", "elements have the format that is compared; parts and their maxima are layers", "cuda"),
            Step("convert-run-number-to-input", "fused ops have no state, so that a run's number comes from outside"),
            Step("verify-precisions", "formats are decided, and layers still have their own names"),
            Step("expand-counted-loops", "the counter is a tensor like others, whose arithmetic is compiled as theirs"),
            Step("convert-trt-to-fused", "every layer becomes a family with a scalar body"),
            Step("convert-topk-to-reduction", "bodies in front of a search for a place may join it", "cuda"),
            Step("eliminate-dead-layers", "views that undo each other are erased before they hide a producer"),
            Step("fuse-joined-parts", "rotations by position are one body, before views hide their parts"),
            Step("sink-views", "reshapes let the scalar bodies behind them pass"),
            Step("fold-joined-slices", "what is unfolded is read by those behind it, as one access"),
            Step("regroup-scores", "masks of windows are part of a product's epilogue, and attention is found"),
            Step("fuse-row-moves", "rows are gathered once, before pointwise layers take the slices apart"),
            Step("fuse-pointwise", "chains of pointwise layers become one body, so that an epilogue is found whole"),
            Step("fuse-convolution-activation", "a convolution takes the activation of its only reader"),
            Step("fuse-convolution-elementwise", "a convolution takes the residual addition and what follows it"),
            Step(
                "split-gated-products",
                "a gated unit's halves are in the body that reads them, and products have what is added to each column",
                "cuda",
            ),
            Step("fuse-convolution-elementwise", "the second half of a gated unit reads the first one", "cuda"),
            Step(
                "fuse-attention",
                "products around a softmax, once the first has its scale and mask as epilogue",
                "cuda",
                "fp16",
            ),
            Step(
                "fuse-attention{elements=float32 multiple={lanes}}",
                "products around a softmax, once the first has its scale and mask as epilogue",
                "cpu",
            ),
            Step(
                "fold-causal-mask", "hidden keys are skipped, as long as the mask is seen to be one of queries and keys"
            ),
            Step("fold-moves-into-attention{target={target}{exact}}", "heads are read and written where they lie"),
            Step("split-joined-heads", "what is left of moves are keys that several heads share"),
            Step("fold-moves-into-attention{target={target}{exact}}", "shared keys are read where they lie"),
            Step(
                "fuse-attention-biases",
                "terms by rows and columns, once views and transposes of the bias itself are gone",
                "cuda",
                "fp16",
            ),
            Step(
                "fuse-attention-elementwise",
                "what reads attention and is no move is in its way to the next product: most often a rounding to int8",
                "cuda",
            ),
            Step(
                "fuse-sibling-products",
                "queries, keys and values are one product, once attention finds its columns in any tensor",
                "cpu",
            ),
            Step(
                "fuse-sibling-products{few_rows=true}",
                "queries, keys and values are one product, once attention finds its columns in any tensor",
                "cuda",
            ),
            Step("fuse-softmax-topk", "only what no attention has taken", "cpu"),
            Step("eliminate-dead-layers", "dead code elimination of what fusion left without a reader"),
            Step("fuse-windows", "poolings in a row, before one of them goes into a reduction", "cuda"),
            Step(
                "fuse-convolution-totals{arch={arch}{device}}",
                "sums over all pixels, perhaps of a pooling that a reduction would take else",
                "cuda",
                "fp16",
            ),
            Step(
                "fuse-window-reduction",
                "a pooling that only a reduction reads, once both have all that was fused to them",
                "cuda",
            ),
            Step(
                "fuse-convolution-pooling{by_warps=true arch={arch}{device}}",
                "poolings that no reduction has taken, once convolutions have all that is done to their sums",
                "cuda",
                "fp16",
            ),
            Step(
                "fuse-row-reductions{on_device}",
                "a normalisation is one launch, once its parts have their final form",
                "cuda",
            ),
            Step(
                "fuse-row-elementwise{most_work=12}",
                "what no attention has taken; long bodies are faster over all elements at once",
                "cpu",
            ),
            Step(
                "fuse-row-elementwise",
                "what no attention has taken, and normalisations that are one launch by now",
                "cuda",
            ),
            Step(
                "fuse-rows-reduction",
                "reductions of what a softmax or a normalisation makes, with all that was fused to it",
                "cuda",
            ),
            Step(
                "fuse-row-results",
                "what is left that reads a normalisation beside others",
                "cuda",
            ),
            Step(
                "convert-softmax-to-normalization",
                "rows that no block can hold are kept by clusters, with all that was fused to them",
                "cuda",
            ),
            Step("cse", "equal launches and constants are shared"),
            Step("nest-concatenations", "tensors are joined once, and those that are new have one reader"),
            Step(
                "eliminate-concatenation{views=true}",
                "producers write into the joined buffer, once it is known who reads them",
                "cpu",
            ),
            Step(
                "eliminate-concatenation",
                "producers write into the joined buffer, once it is known who reads them",
                "cuda",
            ),
        ),
        FUSED,
    ),
    Phase(
        "layout",
        "how each tensor lies in memory",
        (
            Step(
                "expand-deconvolution{lanes={lanes}}",
                "convolutions have fast kernels, and layouts that fit them",
                "cpu",
            ),
            Step("expand-deconvolution", "matrix units read floats in convolutions alone", "cuda", "tf32"),
            Step(
                "expand-deconvolution{only_direct=true}",
                "convolutions have fast kernels; where results interleave, others write all of them in one launch",
                "cuda",
            ),
            Step("expand-volume-convolution", "blocks are for images: slices of volumes become images", "cpu"),
            Step("eliminate-dead-layers", "nothing is left of volumes whose readers take their slices", "cpu"),
            Step("expand-convolution-rank", "blocks are for images: signals become images of height 1", "cpu"),
            Step("merge-convolution-groups{lanes={lanes}}", "a block of channels must not have several groups", "cpu"),
            Step("fuse-channel-shuffles", "vectors of channels are gathered at once, where they lie in blocks", "cpu"),
            Step(
                "fold-gather-into-convolution",
                "weights are in any order for nothing, once groups are merged",
                "cpu",
            ),
            Step("merge-convolution-groups{lanes=0}", "a tile of matrix units has more channels than a group", "cuda"),
            Step("convert-io-formats", "layouts of callers, before those that layers prefer, as both may cancel"),
            Step(
                "assign-layouts{target=cpu lanes={lanes}}",
                "blocked channels and halos suit vectors; last, as fusion must not see them",
                "cpu",
            ),
            Step("fuse-block-conversion", "what follows may read blocks where it reorders images anyway", "cpu"),
            Step(
                "fuse-convolution-move", "convolutions write blocks in any order, and it is known who reads them", "cpu"
            ),
            Step(
                "fuse-convolution-pooling{in_blocks=true}",
                "kernels for blocks hold whole windows; what became of a convolution is known only now",
                "cpu",
            ),
            Step("fuse-windows", "poolings in a row that no convolution has taken", "cpu"),
            Step(
                "fuse-input-conversion{arch={arch}}",
                "convolutions and products have their final form, and orders follow from how they read",
                "cuda",
                "fp16",
            ),
            Step(
                "assign-layouts{target=cuda{machine}}",
                "convolutions read their channels in 16-byte vectors; last, as fusion must not see memory orders",
                "cuda",
            ),
            Step("verify-direct-io", "each tensor has its layout by now"),
            Step(
                "split-normalizations{on_device}",
                "once it is known which rows lie across memory, and before their reductions are split",
                "cuda",
            ),
            Step("split-reductions{on_device}", "once it is known which reductions walk across memory", "cuda"),
            Step(
                "fold-padding-value",
                "the device pads with zeros; once it is known which images have their channels innermost",
                "cuda",
            ),
            Step(
                "strength-reduce-conversions",
                "bytes become floats and back by additions, in bodies that no other pass has to recognise any more",
                "cuda",
            ),
        ),
        FUSED,
    ),
    Phase(
        "lowering",
        "how a machine does each launch",
        (
            Step(
                "permit-half-products{vector_bits={vector_bits}{machine}}",
                "a processor may multiply halves; products have their final operands, and layers still have names",
                "cpu",
                "fp16",
            ),
            Step(
                "convert-fused-to-kernel{target={target} vector_bits={vector_bits} threads={threads}{machine}{device}}",
                "each family picks the first tactic that applies",
            ),
            Step(
                "map-parallel-to-workers{vector_bits={vector_bits}}",
                "loop nests become vector code split over the workers",
                "cpu",
            ),
            Step("map-parallel-to-threads{on_device}", "loop nests become blocks and threads", "cuda"),
            Step(
                "run-loops-in-one-block",
                "iterations of small kernels need no launches, once their grids are known",
                "cuda",
            ),
            Step("start-launches-early", "every kernel that is left to do so waits in its first line", "cuda"),
            Step("canonicalize-kernels", "last, as the passes before it leave numbers and copies of equal ops"),
        ),
        LOOPS,
    ),
    Phase(
        "memory",
        "where each buffer lives and for how long",
        (
            Step("gather-sequential-launches", "once it is known which launches have work for one worker only", "cpu"),
            Step("join-independent-launches", "the order is final, and memory must not be shared by what meets", "cpu"),
            Step("plan-memory", "lifetimes are final once no launch is added or moved"),
            Step("verify-memory-plan", "buffers that live together never overlap, every one is aligned"),
        ),
        LOOPS,
    ),
)

TARGETS = ("cpu", "cuda")
PRECISIONS = ("fp32", "tf32", "fp16", "int8", "int8+fp16")
FLOAT_BITS = 32


def phase_names() -> tuple[str, ...]:
    return tuple(phase.name for phase in PHASES)


def find_phase(name: str) -> Phase:
    """The phase of a name; raises `InvalidInputError` for an unknown one."""
    for phase in PHASES:
        if phase.name == name:
            return phase
    from difflib import get_close_matches  # for mistakes alone

    close = "".join(f"; did you mean {one}?" for one in get_close_matches(name, phase_names(), 1))
    raise InvalidInputError(f"there is no phase {name!r}: expected one of {', '.join(phase_names())}{close}")


def specs_of(
    phase: Phase, target: str, precision: str = "fp32", machine: TargetMachine = TargetMachine()
) -> tuple[str, ...]:
    """The pipeline text of each pass of a phase on a target, closed by the check of its border."""
    if target not in TARGETS or precision not in PRECISIONS:
        raise InvalidInputError(f"there is no pipeline for {target} {precision}: expected {TARGETS} and {PRECISIONS}")
    values = {"target": target, "vector_bits": machine.vector_bits, "threads": machine.threads, "arch": machine.arch}
    values["lanes"] = machine.vector_bits // FLOAT_BITS
    given = sorted({*machine.features, "tf32"} if precision == "tf32" else machine.features)
    having = f" features={','.join(given)}" if given else ""
    values["machine"] = f" arch={machine.arch}{having}" if target == "cuda" else having
    values["device"] = f" device={_quoted(machine.device)}" if machine.device else ""
    values["fast_math"] = ",".join(machine.fast_math) or "none"
    values["exact"] = "" if "reassociate" in machine.fast_math else " exact=true"
    values["on_device"] = f"{{device={_quoted(machine.device)}}}" if machine.device else ""
    chosen = [
        _filled(step.spec, values)
        for step in phase.steps
        if step.target in (None, target)
        and (step.precision is None or step.precision in precision.split("+"))
        and step.without not in precision.split("+")
        and (step.right is None or step.right in machine.fast_math)
        and registry.exists(step.pass_name)
    ]
    return (*chosen, f"verify-legality{{phase={phase.name}}}")


def _quoted(text: str) -> str:
    """A word of a pipeline."""
    return text if re.fullmatch(r"[\w.+=/-]+", text) else f'"{text}"'


def _filled(spec: str, values: Mapping[str, object]) -> str:
    for name, value in values.items():
        spec = spec.replace(f"{{{name}}}", str(value))
    return spec


def pipeline_for(
    target: str,
    precision: str = "fp32",
    first: str | None = None,
    last: str | None = None,
    machine: TargetMachine = TargetMachine(),
) -> tuple[tuple[Phase, tuple[str, ...]], ...]:
    """The phases from `first` to `last`, both included, each with the pipeline text of its passes."""
    names = phase_names()
    start = 0 if first is None else names.index(find_phase(first).name)
    stop = len(names) if last is None else names.index(find_phase(last).name) + 1
    if start >= stop:
        raise InvalidInputError(
            f"phase {first} comes after phase {last}: expected one of {', '.join(names[start:])} as the last"
        )
    return tuple((phase, specs_of(phase, target, precision, machine)) for phase in PHASES[start:stop])
