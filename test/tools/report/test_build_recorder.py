"""What the report's recorder keeps of a build: the passes, the tactics with their times, what came from caches."""

from __future__ import annotations

import pytest
from contractions import product_text
from fake_timer import FakeTimer, without_compiler
from lowered_network import parse_module

from mlirt.builder.plan_cache import TAKEN
from mlirt.builder.tactics.selection import Tuning, select_tactics
from mlirt.dialects.target import Target
from mlirt.passes.remarks import recording
from mlirt.tools.report.build_recorder import BuildRecorder


def test_measured_tactics_stand_beside_their_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)
    module, context = parse_module(product_text((512, 256), (256, 512), (512, 512), "f32", (False, False)))
    recorder = BuildRecorder(target="cuda")
    with recording(recorder):
        tuning = Tuning(FakeTimer(lambda place: 9.0 - place))
        select_tactics(module, context, Target("cuda"), tuning, lambda text, done, total: None)
    with recorder.running("convert-fused-to-kernel", module, context):
        pass
    (choice,) = recorder.tactics
    assert len(choice.measured) > 1
    assert choice.chosen == min(choice.measured, key=choice.measured.__getitem__)
    estimates = dict(choice.estimates)
    assert set(choice.measured) <= set(estimates)
    text = choice.text(choice.chosen, estimates[choice.chosen])
    assert text == f"estimated {estimates[choice.chosen]:.1f} µs, measured {choice.measured[choice.chosen]:.1f} µs"


def test_spans_follow_one_another_and_name_what_was_compiled() -> None:
    module, context = parse_module(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"
    )
    recorder = BuildRecorder()
    recorder.progress("optimising the network", 0, 1)
    for name in ("verify-legality", "name-dimensions", "verify-legality"):
        with recorder.running(name, module, context):
            pass
    recorder.progress("compiling kernels", 3, 4)
    recorder.progress("compiling kernels (matmul_1a)", 4, 4)
    recorder.close()
    steps = [("reading the network", "build"), ("optimising the network", "build"), ("verify-legality", "import")]
    steps += [("name-dimensions", "cleanup"), ("verify-legality", "cleanup"), ("compiling kernels", "build")]
    assert [(span.what, span.phase) for span in recorder.spans] == steps
    assert all(a.end <= b.start + 1e-9 for a, b in zip(recorder.spans, recorder.spans[1:], strict=False))
    assert recorder.compiled == ["matmul_1a"]
    assert recorder.before is not None
    assert [node.kind for node in recorder.before.nodes] == ["input", "output"]


def test_a_plan_from_the_cache() -> None:
    recorder = BuildRecorder()
    recorder.progress(TAKEN, 0, 1)
    recorder.close()
    assert recorder.facts().is_cached
