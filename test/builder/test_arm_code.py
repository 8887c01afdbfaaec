"""Code for 64-bit Arm, made on any machine: instructions for int8, registers, atomics and the pause of workers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, ValueInfoProto, helper
from onnx_models import Array, model_of, numbers

from mlirt.builder.device_choice import asking
from mlirt.builder.host import cpu_target
from mlirt.builder.machine_texts import machine_text
from mlirt.dialects.context import RtContext
from mlirt.dialects.device_files import cpu_device
from mlirt.dialects.kernel.tile_products import TileDotAddOp, TileMultiplyAddOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.frontend.onnx.importer import import_model
from mlirt.kernels.matmul.cpu.tile_choice import tile_cycles
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.runtime.llvm_binding import llvm


def quantized_convolution(channels: int = 16, window: int = 3) -> ModelProto:
    """An int8 convolution whose input and output are float32."""
    scale: dict[str, Array] = {
        "sx": np.array(0.02, "f"),
        "sw": np.array(0.01, "f"),
        "sy": np.array(0.05, "f"),
        "z": np.array(128, "u1"),
    }
    weights = np.random.default_rng(0).integers(-127, 128, (32, channels, window, window), np.int8)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw"], ["e"]),
        helper.make_node("Conv", ["d", "e"], ["c"], pads=[window // 2] * 4),
        helper.make_node("QuantizeLinear", ["c", "sy", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "sy", "z"], ["y"]),
    ]
    return model_of(nodes, {"x": ("float32", (1, channels, 14, 14))}, ["y"], {"w": weights, **scale})


def quantized_points() -> ModelProto:
    """Eleven blocks of channels: four at a time, and some that are left."""
    return quantized_convolution(44, 1)


def int8_alone() -> ModelProto:
    """One by single points, whose input and output are uint8."""
    model = quantized_convolution(16, 1)
    nodes = model.graph.node
    del nodes[-1], nodes[0]
    nodes[0].input[0] = "x"
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
    model.graph.output[0].CopyFrom(ValueInfoProto(name="r"))
    return model


def product() -> ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model_of([node], {"x": ("float32", (64, 96))}, ["y"], {"w": numbers(96, 96)})


NETWORKS = {"int8": quantized_convolution, "int8 alone": int8_alone, "product": product}


@cache
def assembly(network: str, cpu: str) -> str:
    """The machine code of the kernels of a network as text."""
    context = RtContext()
    with asking(None, cpu):
        module = import_model(NETWORKS[network](), context)
        run_phases(module, context, options=PipelineOptions("cpu", "int8", TargetMachine.of(cpu_target())))
        return machine_text(module, "asm")


def instructions(text: str) -> Counter[str]:
    return Counter(re.findall(r"^\t([a-z]\w*)", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("cpu", "having", "lacking"),
    [
        ("neoverse-v1", {"sudot"}, {"sdot", "smull"}),
        ("neoverse-v2", {"sudot"}, {"sdot"}),
        ("apple-m2", {"sudot"}, {"sdot"}),
        ("neoverse-n1", {"sdot"}, {"usdot", "sudot"}),
        ("cortex-a57", {"smlal", "smlal2"}, {"sdot", "usdot", "sudot"}),
    ],
)
def test_int8_products_are_the_best_instruction_that_there_is(cpu: str, having: set[str], lacking: set[str]) -> None:
    found = instructions(assembly("int8", cpu))
    assert found.keys() >= having
    assert not found.keys() & lacking


def test_int8_products_without_sums_in_a_lane_take_one_instruction_for_four() -> None:
    """Cortex-A57: 16-bit numbers are multiplied by a lane of others; less than half of the loop prepares them."""
    blocks = re.split(r"\n(?=\.L\w+:)", assembly("int8", "cortex-a57"))
    loop = max(blocks, key=lambda block: block.count("smlal"))
    found = instructions(loop.split("\tb.ne")[0])
    assert found["smlal"] + found["smlal2"] > 0.6 * found.total()
    assert len(re.findall(r"smlal2?\t.*\.h\[\d\]", loop)) == found["smlal"] + found["smlal2"]
    assert "[sp" not in loop.split("\tb.ne")[0]


def test_the_accumulators_of_a_product_are_in_registers() -> None:
    """The inner loop is multiplications by a lane for the most part, on half of the registers, and spills nothing."""
    blocks = re.split(r"\n(?=\.L\w+:)", assembly("product", "neoverse-v2"))
    loop = max(blocks, key=lambda block: block.count("fmla"))
    found = instructions(loop)
    assert found["fmla"] > 0.7 * found.total()
    assert len(set(re.findall(r"fmla\tv(\d+)\.4s", loop))) >= 16
    assert len(re.findall(r"fmla\t.*\.s\[\d\]", loop)) == found["fmla"]
    assert "[sp" not in loop


def test_steps_of_few_words_are_several_at_a_time() -> None:
    """A block of four channels is one word: the columns of a window are a step, which asks for a line of weights."""
    blocks = re.split(r"\n(?=\.L\w+:)", assembly("int8", "neoverse-v2"))
    loop = max(blocks, key=lambda block: block.count("dot\t")).split("\tb.ne")[0]
    found = instructions(loop)
    products = sum(count for name, count in found.items() if name.endswith("dot"))
    assert products > 0.5 * found.total()
    assert products == 3 * 16
    assert found["prfm"] + found["prfum"] < 2


def quantized_product() -> ModelProto:
    """An int8 product of which neither length is whole words or vectors."""
    scale: dict[str, Array] = {"sx": np.array(0.02, "f"), "sw": np.array(0.01, "f"), "z": np.array(117, "u1")}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw"], ["e"]),
        helper.make_node("MatMul", ["d", "e"], ["y"]),
    ]
    weights = np.random.default_rng(1).integers(-128, 128, (39, 21), np.int8)
    return model_of(nodes, {"x": ("float32", (5, 9, 39))}, ["y"], {"w": weights, **scale})


@pytest.mark.parametrize("network", [quantized_convolution, quantized_points, quantized_product])
def test_products_of_numbers_that_are_made_signed_are_the_same(network: Callable[[], ModelProto]) -> None:
    """SDOT has no unsigned numbers: sums start with what that takes off. On x86 a step is one word of a block."""
    model = network()
    shape = [one.dim_value for one in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(2).normal(size=shape).astype("f")
    found: dict[str, Array] = {}
    for cpu in ("neoverse-n1", "neoverse-v1", "neoverse-v2", "x86-64-v2"):
        context = RtContext()
        with asking(None, cpu):
            module = import_model(model, context)
            options = PipelineOptions("cpu", "int8", TargetMachine.of(cpu_target()))
            run_phases(module, context, None, "memory", options)
        offsets = {op.offset.value.data for op in module.walk() if isinstance(op, TileDotAddOp)}
        assert offsets == {128 if cpu == "neoverse-n1" else 0}
        (found[cpu],) = run_plan(module, context, {"x": x}).values()
    assert len(np.unique(found["neoverse-n1"])) > 20
    np.testing.assert_array_equal(found["neoverse-n1"], found["x86-64-v2"])
    np.testing.assert_array_equal(found["neoverse-v1"], found["x86-64-v2"])
    np.testing.assert_array_equal(found["neoverse-v2"], found["x86-64-v2"])


def test_what_makes_numbers_signed_is_little() -> None:
    blocks = re.split(r"\n(?=\.L\w+:)", assembly("int8", "neoverse-n1"))
    loop = max(blocks, key=lambda block: block.count("sdot\t")).split("\tb.ne")[0]
    found = instructions(loop)
    assert found["sdot"] == 3 * 16
    assert found["sdot"] > 0.55 * found.total()


@pytest.mark.parametrize(("cpu", "having"), [("neoverse-v2", {"sqxtn", "sqxtun"}), ("neoverse-v1", {"fmax", "fmin"})])
def test_limits_are_one_instruction(cpu: str, having: set[str]) -> None:
    """NEON's instructions that narrow saturate; SVE's for the larger and the smaller number give NaN: nothing is
    compared.
    """
    found = instructions(assembly("int8", cpu))
    assert found.keys() >= having
    assert not found.keys() & {"fcmgt", "fcmlt", "bsl", "bit", "bif"}


def test_rows_of_results_are_stored_together() -> None:
    """Four registers of numbers become one of int8; words of four of them are loaded and stored by turns."""
    found = instructions(assembly("int8 alone", "neoverse-v2"))
    assert found.keys() >= {"sqxtn2", "sqxtun2", "st4", "ld4"}


@pytest.mark.parametrize("rows", [7, 64, 196])
def test_tiles_are_those_of_32_registers(rows: int) -> None:
    shape = next(iter(tile_cycles(rows, 256, cpu_device("cpu-neoverse-v2"), 1)))
    assert 16 < shape.rows * shape.vectors + shape.vectors + 2 <= 32


@pytest.mark.parametrize(("features", "single"), [((), False), (("lse",), True)])
def test_workers_meet_by_atomic_instructions_and_pause(features: tuple[str, ...], single: bool) -> None:
    from mlirt.builder.spmd_main import main_features, main_object

    binding = llvm()
    binding.initialize_all_targets()
    assert main_features({"lse", "neon", "dotprod"}) == ("lse",)
    code = main_object("aarch64-unknown-linux-gnu", features)
    words = np.frombuffer(code[: len(code) // 4 * 4], np.uint32)
    assert (words == 0xD5033FDF).sum() > 0  # isb
    swaps = (words & 0xFFE0FC00) == 0xF8E00000  # ldaddal of 64 bits
    exclusive = (words & 0xFFFFFC00) == 0xC85FFC00  # ldaxr of 64 bits
    assert bool(swaps.any()) == single
    assert bool(exclusive.any()) != single


def innermost(text: str, product: str) -> str:
    """The loop with most of some products."""
    blocks = re.split(r"\n(?=\.L\w+:)", text)
    return re.split(r"\tb\.|\tcbn?z", max(blocks, key=lambda block: block.count(product)))[0]


@pytest.mark.parametrize(
    ("network", "product", "lanes"), [("product", "fmla\tz", r"\.s\[\d\]"), ("int8", "sudot\tz", r"\.b\[\d\]")]
)
def test_sve_multiplies_by_one_of_four_lanes(network: str, product: str, lanes: str) -> None:
    """Vectors of 256 bits are registers, which nothing keeps in memory; numbers that lie side by side come at once."""
    loop = innermost(assembly(network, "neoverse-v1"), product)
    found = instructions(loop)
    name = product.split("\t")[0]
    assert found[name] > 0.5 * found.total()
    assert len(re.findall(rf"{name}\t.*{lanes}", loop)) == found[name]
    assert found["ld1rqw"] + found["ld1rd"] > 0
    assert found["ld1rw"] == found["whilelo"] == 0
    assert "[sp" not in loop


def kernel_text(lines: list[str], cpu: str, element: str = "float32") -> str:
    """The machine code of a kernel with these lines in a loop over vectors of eight elements."""
    from mlirt.builder.numba_cpu import kernel_texts

    source = [
        "from mlirt.builder.numba_cpu_intrinsics import *\n\n",
        "@inlined",
        "def put(vector, i, j, y, at):",
        "    store(y, at + i * 8, vector)\n\n",
        "def kernel(params, worker, workers):",
        f"    x, y = const_{element}_pointer(params[0]), {element}_pointer(params[1])",
        "    n, step = params[2], params[3]",
        "    for i in range(0, n, 8):",
        *(f"        {line}" for line in lines),
    ]
    with asking(None, cpu):
        return kernel_texts({"kernel": "\n".join(source) + "\n"}, cpu_target(), "asm")["kernel"]


def by_elements(text: str) -> list[str]:
    """Instructions that take a vector apart, or put one together, by way of single lanes or of the stack."""
    lane = r"\t(?:mov|dup)\tz\d+\.[bhsd], z\d+\.[bhsd]\[|\tfcvtz[su]\t[wx]|\t(?:str|stp)\t[swbh]\d+.*\[sp"
    return re.findall(lane, text)


@pytest.mark.parametrize(
    "lines",
    [
        ["store(y, i, float32(int32(load(x, i, 8))))"],
        ["store(y, i, float32(uint8(load(x, i, 8))))"],
        ["store(y, i, float32(int8(load(x, i, 8))))"],
        ["store(y, i, float32(int32(float64(load(x, i, 8)))))"],
        ["store(y, i, load_steps(x, i, 2, 8))"],
        ["store(y, i, load_steps_first(x, i, 3, 8, n))"],
        ["store(y, i, gather(x, i, step, 8))"],
        ["store_first(y, i, load_first(x, i, 8, n), n)"],
        ["tile_for_each(tile_load_transposed(x, i, step, 8), put, (y, i))"],
        ["store(y, i, splat(sum_of_lanes(load(x, i, 8)), 8))"],
        ["store(y, i, float16(load(x, i, 8)))"],
    ],
)
def test_nothing_takes_vectors_of_sve_apart(lines: list[str]) -> None:
    """LLVM would put some shuffles and conversions together from single elements, in memory."""
    text = kernel_text(lines, "neoverse-v1")
    assert re.search(r"\tz\d", text)
    assert not by_elements(text)


def half_product(rows: int, depth: int = 512, columns: int = 256) -> ModelProto:
    """A product in half precision; its weights are large enough to be worth storing as halves."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    weights = (numbers(depth, columns) / np.float32(16)).astype(np.float16)
    return model_of([node], {"x": ("float16", (rows, depth))}, ["y"], {"w": weights})


def half_text(model: ModelProto, cpu: str, precision: str = "fp16") -> str:
    context = RtContext()
    with asking(None, cpu):
        module = import_model(model, context)
        run_phases(module, context, options=PipelineOptions("cpu", precision, TargetMachine.of(cpu_target())))
        return machine_text(module, "asm")


@pytest.mark.parametrize("model", [half_product(1), half_product(30)], ids=["row", "rows"])
def test_products_of_halves_are_added_to_float32(model: ModelProto) -> None:
    """Weights stay halves in registers: nothing widens them; what they multiply is rounded once for four steps."""
    loop = innermost(half_text(model, "neoverse-v2"), "fmlal")
    found = instructions(loop)
    products = found["fmlal"] + found["fmlal2"]
    assert products > 0.65 * found.total()
    assert len(re.findall(r"fmlal2?\tv\d+\.4s, v\d+\.4h, v\d+\.h\[\d\]", loop)) == products
    assert not found.keys() & {"fmla", "fcvtl", "fcvtl2"}
    assert 4 * found["fcvtn"] < products
    assert "[sp" not in loop


@pytest.mark.parametrize(
    ("cpu", "precision", "rows"),
    [
        ("neoverse-v2", "fp32", 30),
        ("neoverse-n1", "fp16", 30),
        ("neoverse-v1", "fp16", 30),
        ("neoverse-v2", "fp16", 64),
    ],
)
def test_products_keep_float32_where_halves_are_not_granted_or_do_not_pay(cpu: str, precision: str, rows: int) -> None:
    found = instructions(half_text(half_product(rows), cpu, precision))
    assert not found.keys() & {"fmlal", "fmlal2", "fmlalb", "fmlalt"}
    assert found["fmla"]


def test_elementwise_layers_between_halves_are_arithmetic_of_halves() -> None:
    """One operation on halves, rounded, is the same as in float32; where there are two the first is not rounded."""
    ends = {"x": ("float16", (4096,)), "z": ("float16", (4096,))}
    single = model_of([helper.make_node("Add", ["x", "z"], ["y"])], ends, ["y"])
    found = half_text(single, "neoverse-n1", "fp32")
    assert re.search(r"fadd\tv\d+\.[48]h", found)
    assert "fcvtl" not in found
    assert not re.search(r"fadd\tv\d+\.[48]h", half_text(single, "cortex-a57", "fp32"))
    nodes = [helper.make_node("Add", ["x", "z"], ["a"]), helper.make_node("Mul", ["a", "z"], ["y"])]
    both = half_text(model_of(nodes, ends, ["y"]), "neoverse-n1", "fp32")
    assert not re.search(r"f(add|mul)\tv\d+\.[48]h", both)


@pytest.mark.parametrize(("rows", "depth", "columns"), [(5, 1039, 21), (1, 2050, 17), (31, 130, 131)])
def test_rounded_factors_and_sums_in_float32_are_what_kernels_mean(rows: int, depth: int, columns: int) -> None:
    model = half_product(rows, depth, columns)
    x = numbers(rows, depth, seed=3).astype(np.float16)
    context = RtContext()
    with asking(None, "neoverse-v2"):
        module = import_model(model, context)
        run_phases(module, context, None, "memory", PipelineOptions("cpu", "fp16", TargetMachine.of(cpu_target())))
    assert any(isinstance(op, TileMultiplyAddOp) and op.halves for op in module.walk())
    (found,) = run_plan(module, context, {"x": x}).values()
    weights = (numbers(depth, columns) / np.float32(16)).astype(np.float16)
    wanted = x.astype("f8") @ weights.astype("f8")
    np.testing.assert_allclose(found.astype("f8"), wanted, rtol=1e-3, atol=1e-3 * float(np.abs(wanted).max()))
