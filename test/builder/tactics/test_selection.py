"""Tactics are chosen by measured times, by a cache of them, or by a caller; without a device, as they are estimated."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from contractions import product_text
from fake_timer import FakeTimer, without_compiler
from lowered_network import parse_module
from onnx import helper
from onnx_models import Shape, model_of
from recurrent_models import fused_recurrent, recurrent_model
from xdsl.dialects.builtin import ModuleOp, StringAttr

from mlirt.builder.tactics.algorithm_selector import Algorithm, AlgorithmContext
from mlirt.builder.tactics.selection import Tuning, select_tactics
from mlirt.builder.tactics.sites import find_sites
from mlirt.builder.tactics.timing_cache import TimingCache
from mlirt.builder.tactics.trial import Subject, Trial
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.target import Target
from mlirt.errors import InvalidInputError
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_passes, run_phases
from mlirt.runtime.manifest import BufferArgument

_SIZES = ((512, 256), (256, 512), (512, 512))
_DYNAMIC = """
func.func @main(%x: tensor<?x64xf16, #trt.dims<["2*n", "64"]>>, %y: tensor<?xf16, #trt.dims<["n"]>>)
    -> tensor<?x96xf16, #trt.dims<["2*n", "96"]>> attributes {trt.typical_sizes = {n = 40 : i64}} {
  %w = trt.constant {value = dense<1.0> : tensor<64x96xf16>} : tensor<64x96xf16>
  %z = fused.matmul %x, %w : (tensor<?x64xf16, #trt.dims<["2*n", "64"]>>, tensor<64x96xf16>)
      -> tensor<?x96xf16, #trt.dims<["2*n", "96"]>> {
  ^bb0(%acc: f32):
    %s = arith.truncf %acc : f32 to f16
    fused.yield %s : f16
  }
  func.return %z : tensor<?x96xf16, #trt.dims<["2*n", "96"]>>
}
"""


def choose(tuning: Tuning, text: str = product_text(*_SIZES, "f32", (False, False))) -> list[str]:
    """The tactics that the products of a network are lowered by; without a choice, the one that is estimated best."""
    module, context = parse_module(text)
    defaults = {op: site.candidates[0].name for site in find_sites(module, context, Target("cuda")) for op in site.ops}
    select_tactics(module, context, Target("cuda"), tuning, _silent)
    return [_tactic(op) or defaults[op] for op in _products(module)]


def _silent(text: str, done: int, total: int) -> None: ...


def _products(module: ModuleOp) -> list[MatmulOp]:
    return [op for op in module.walk() if isinstance(op, MatmulOp)]


def _tactic(op: MatmulOp) -> str:
    name = op.attributes.get("fused.tactic")
    return name.data if isinstance(name, StringAttr) else ""


@pytest.fixture(autouse=True)
def _compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)


def test_without_a_device_lowering_follows_the_estimates() -> None:
    selector = Selector([])
    choose(Tuning(selector=selector))
    best = min((one for one in selector.offered if one.timing_msec > 0), key=lambda one: one.timing_msec)
    assert choose(Tuning()) == [best.name]


def allowing_the_library(tuning: Tuning, text: str) -> list[str]:
    """As `choose`, where cuBLASLt may be used."""
    module, context = parse_module(text)
    target = Target("cuda", features=frozenset({"cublas_lt"}))
    select_tactics(module, context, target, tuning, _silent)
    return [_tactic(op) for op in _products(module)]


def test_a_library_is_measured_beside_our_kernels_and_taken_where_it_is_fastest() -> None:
    text = product_text(*_SIZES, "f32", (False, False))
    timer = FakeTimer(lambda place: 1000.0 - 100 * place)
    assert allowing_the_library(Tuning(timer), text) == ["cuda_cublas_lt:second"]
    assert any(kernel.call is not None for plan in timer.plans for kernel in plan.manifest.kernels)
    assert allowing_the_library(Tuning(FakeTimer()), text) == [""]


def test_a_library_that_nobody_has_measured_is_not_taken() -> None:
    few_rows = product_text((2, 256), (512, 256), (2, 512), "f32", (False, True))
    module, context = parse_module(few_rows)
    target = Target("cuda", features=frozenset({"cublas_lt"}))
    (site,) = find_sites(module, context, target)
    assert [one.name for one in site.candidates] == ["generic", "cuda_cublas_lt:first", "cuda_cublas_lt:second"]
    selector = Selector([])
    allowing_the_library(Tuning(selector=selector), few_rows)
    assert {one.timing_msec for one in selector.offered} == {-1.0}
    timer = FakeTimer()
    allowing_the_library(Tuning(timer), few_rows)
    assert len(timer.plans) == 3


def first_is_best(place: int) -> float:
    """By far, so that it does not count how many launches each has."""
    return 10.0**place


def last_is_best(place: int) -> float:
    return 10.0**-place


def test_the_fastest_one_is_taken() -> None:
    selector = Selector([])
    first = choose(Tuning(FakeTimer(first_is_best), selector=selector))
    assert first == [selector.offered[0].name]
    assert choose(Tuning(FakeTimer(last_is_best))) == [selector.offered[-1].name]


def test_a_kernel_that_does_not_compile_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    selector = Selector([])
    choose(Tuning(FakeTimer(), selector=selector))
    assert any("32x32" not in one.name for one in selector.offered)
    # Of the kernels of 128 threads and more only those compile that add the parts of a sum, which all tiles have.
    without_compiler(monkeypatch, lambda source: source.threads >= 128 and "_sum_" not in source.name)
    (left,) = choose(Tuning(FakeTimer(), selector=selector))
    assert left in {one.name for one in selector.offered}
    assert all("32x32" in one.name for one in selector.offered)


def test_known_times_are_not_measured_again() -> None:
    """tensorrt-features.md#15.11."""
    cache, first, second = TimingCache(), FakeTimer(), FakeTimer()
    chosen = choose(Tuning(first, cache))
    again = TimingCache(cache.serialize())
    assert choose(Tuning(second, again)) == chosen
    assert first.plans
    assert not second.plans
    assert again.serialize() == cache.serialize()


def test_times_of_another_device_do_not_count() -> None:
    """tensorrt-features.md#15.10."""
    cache, other = TimingCache(), FakeTimer()
    choose(Tuning(FakeTimer(), cache))
    other.device = "another device"
    choose(Tuning(other, cache))
    assert other.plans
    assert len(cache.places()) == 2


def test_equal_ops_are_measured_once() -> None:
    """tensorrt-features.md#15.11."""
    text = product_text((64, 64), (64, 64), (64, 64), "f16", (False, False))
    start, end = text.index("%y = fused"), text.index("func.return")
    second = text[start:end].replace("%y =", "%z =").replace("%x, %w", "%y, %w")
    doubled = text[:end] + second + text[end:].replace("%y", "%z")
    once, twice = FakeTimer(), FakeTimer()
    (tactic,) = choose(Tuning(once), text)
    assert choose(Tuning(twice), doubled) == [tactic, tactic]
    assert len(once.plans) == len(twice.plans)


def test_a_selector_reads_the_same_cache() -> None:
    """tensorrt-features.md#15.11: TensorRT measures again for a selector; here it is shown what is known."""
    cache, again = TimingCache(), FakeTimer()
    choose(Tuning(FakeTimer(), cache))
    selector = Selector([])
    choose(Tuning(again, cache, selector))
    assert not again.plans
    assert all(one.timing_msec > 0 for one in selector.offered)


def test_a_tactic_is_measured_in_so_many_runs_at_once() -> None:
    """tensorrt-features.md#15.16."""
    once, often = FakeTimer(), FakeTimer()
    choose(Tuning(once, calls=1))
    choose(Tuning(often, calls=5))
    launches = [[len(plan.manifest.launches) for plan in timer.plans] for timer in (once, often)]
    assert launches[1] == [5 * count for count in launches[0]]


def test_dynamic_sizes_are_measured_at_their_typical_value() -> None:
    timer = FakeTimer()
    assert choose(Tuning(timer), _DYNAMIC)[0]
    assert list(timer.shapes[0]) == [(80, 64), (40,)]


def test_weights_that_no_cache_holds_are_measured_so() -> None:
    weights = "%w = trt.constant {value = dense<0.5> : tensor<256x512xf32>} : tensor<256x512xf32>"
    text = product_text(*_SIZES, "f32", (False, False)).replace('%w: tensor<256x512xf32> {trt.name = "w"}, ', "")
    text = text.replace("%y = fused", f"{weights}\n      %y = fused")
    warm, cold, cache = FakeTimer(), FakeTimer(), TimingCache()
    cold.cache_bytes = 1 << 18
    choose(Tuning(warm, cache), text)
    choose(Tuning(cold, cache), text)
    assert (len(warm.plans[0].weights), len(cold.plans[0].weights)) == (1, 10)
    manifest = cold.plans[0].manifest
    used = {arg.buffer for launch in manifest.launches for arg in launch.args if isinstance(arg, BufferArgument)}
    assert sum(manifest.buffers[buffer].kind == "weight" for buffer in used) == 10


class Selector:
    """Allows what it is told to, and remembers what it hears."""

    def __init__(self, wanted: Sequence[int]) -> None:
        self.wanted = wanted
        self.offered: list[Algorithm] = []
        self.taken: list[tuple[AlgorithmContext, Algorithm]] = []

    def select_algorithms(self, context: AlgorithmContext, choices: Sequence[Algorithm]) -> Sequence[int]:
        self.offered = list(choices)
        return self.wanted

    def report_algorithms(self, contexts: Sequence[AlgorithmContext], choices: Sequence[Algorithm]) -> None:
        self.taken = list(zip(contexts, choices, strict=True))


@pytest.mark.parametrize("timer", [None, FakeTimer()], ids=["estimated", "measured"])
def test_a_selector_decides(timer: FakeTimer | None) -> None:
    selector = Selector([2])
    (tactic,) = choose(Tuning(timer, selector=selector))
    assert tactic == selector.offered[2].name
    ((context, algorithm),) = selector.taken
    assert algorithm.name == tactic
    assert context.outputs == ("tensor<512x512xf32>",)
    split = next(one for one in selector.offered if "p" in one.name.partition(":")[2])
    assert split.workspace_size > 0
    assert all(one.timing_msec > 0 for one in selector.offered if one.name != "generic")


def test_an_empty_selection_allows_all_and_a_wrong_one_is_an_error() -> None:
    assert choose(Tuning(FakeTimer(), selector=Selector([]))) == choose(Tuning(FakeTimer()))
    with pytest.raises(InvalidInputError, match=r"the algorithm selector chose number 99 of \d+ algorithms"):
        choose(Tuning(FakeTimer(), selector=Selector([99])))


def test_a_selector_is_shown_no_tactic_that_declines_the_layer() -> None:
    """A pointwise layer without repeated operands has a tactic for repeated ones among its files."""
    node = helper.make_node("Add", ["x", "y"], ["z"], name="add")
    shapes: dict[str, tuple[str, Shape]] = {"x": ("float32", (8, 100)), "y": ("float32", (8, 100))}
    context = RtContext()
    module = import_model(model_of([node], shapes, ["z"]), context)
    run_phases(module, context, last="layout", options=PipelineOptions("cuda"))
    (site,) = find_sites(module, context, Target("cuda"))
    selector = Selector([])
    select_tactics(module, context, Target("cuda"), Tuning(selector=selector), _silent)
    shown = [one.name for one in selector.offered]
    assert set(shown) < {one.name for one in site.candidates}
    for name in shown:
        copy = module.clone()
        for op in copy.walk():
            if isinstance(op, FusedOp):
                op.attributes["fused.tactic"] = StringAttr(name)
        run_phases(copy, context, first="lowering", options=PipelineOptions("cuda"))


_CONVERSION = """
func.func @main(%x: tensor<96x128xf32> {trt.name = "x"}) -> (tensor<96x128xf16> {trt.name = "y"}) {
  %y = fused.pointwise %x {access = [#fused.access<["d0", "d1"]>]} : (tensor<96x128xf32>) -> tensor<96x128xf16> {
  ^bb0(%0: f32):
    %1 = arith.truncf %0 : f32 to f16
    fused.yield %1 : f16
  }
  func.return %y : tensor<96x128xf16>
}
"""


@pytest.mark.parametrize(("wanted", "workspace"), [([], None), ([0], None), ([], 1 << 20)])
def test_a_tactic_that_does_not_lower_a_layer_is_not_offered(wanted: list[int], workspace: int | None) -> None:
    """Tactics without estimates are candidates whether they apply or not."""
    module, context = parse_module(_CONVERSION)
    (site,) = find_sites(module, context, Target("cuda"))
    assert [one.name for one in site.candidates] == ["repeated", "cuda_interleaved", "cuda_transposed", "generic"]
    selector = Selector(wanted)
    select_tactics(module, context, Target("cuda"), Tuning(selector=selector, workspace=workspace), _silent)
    assert [one.name for one in selector.offered] == ["generic"]
    run_passes(module, context, "convert-fused-to-kernel{target=cuda}")


def test_of_those_without_a_time_the_first_that_lowering_tries_is_taken() -> None:
    few_rows = product_text((2, 256), (512, 256), (2, 512), "f32", (False, True))
    assert allowing_the_library(Tuning(selector=Selector([2, 0, 1])), few_rows) == [""]
    assert allowing_the_library(Tuning(selector=Selector([2, 1])), few_rows) == ["cuda_cublas_lt:first"]


def test_an_op_with_a_region_that_is_empty() -> None:
    module, context = fused_recurrent(recurrent_model("LSTM", hidden=64)[0])
    select_tactics(module, context, Target("cuda"), Tuning(FakeTimer(lambda place: 4 - place)), _silent)
    (layer,) = [op for op in module.walk() if isinstance(op, RnnOp)]
    assert isinstance(chosen := layer.attributes["fused.tactic"], StringAttr)
    assert chosen.data.startswith(("cuda_persistent:", "cuda_one_block:"))


def test_only_what_is_taken_is_lowered_while_nobody_asks_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    original = Subject.trial

    def trial(self: Subject, name: str) -> Trial | None:
        tried.append(name)
        return original(self, name)

    monkeypatch.setattr(Subject, "trial", trial)
    selector = Selector([2])
    (tactic,) = choose(Tuning(None, selector=selector))
    estimated = {one.name for one in selector.offered if one.timing_msec >= 0}
    assert [name for name in tried if name in estimated] == [tactic]
    assert len(estimated) > 5
    before = len(tried)
    assert selector.offered[0].workspace_size == selector.offered[0].workspace_size >= 0
    assert tried[before:] == [selector.offered[0].name]
