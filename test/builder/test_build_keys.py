"""Which builds have keys: those whose plan follows from what a key is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import one_node, write_model
from repeat_plugin import RepeatCreator

from mlirt.builder.build import BuildOptions
from mlirt.builder.build_keys import model_key, network_key, own_sources
from mlirt.builder.config.build_config import BuildConfig, settings
from mlirt.builder.config.setting import setting_of
from mlirt.builder.inner_outputs import InnerOutputs
from mlirt.builder.profiles import Profile
from mlirt.builder.tactics.selection import Tuning
from mlirt.dialects.context import RtContext
from mlirt.dialects.pass_plugins import using
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline_edits import Pipeline
from mlirt.passes.remarks import Remarks, recording
from mlirt.tensorrt.plugins.registry import get_plugin_registry

OPTIONS = BuildOptions()
CONFIG = BuildConfig(heuristic=True)


def _model() -> onnx.ModelProto:
    return one_node("Relu", [np.ones((2, 3), np.float32)])[0]


def _network_key(options: BuildOptions = OPTIONS, target: str = "cpu") -> str | None:
    ctx = RtContext()
    return network_key(import_model(_model(), ctx), ctx, target, options)


def _watch(text: str, done: int, total: int) -> None:
    """Somebody watches."""


def test_a_key_is_the_same_for_the_same_build() -> None:
    assert _network_key() is not None
    assert _network_key() == _network_key(replace(OPTIONS, progress=_watch, kept_as=["other"]))


@pytest.mark.parametrize(
    "options",
    [
        replace(OPTIONS, precision="fp16"),
        replace(OPTIONS, name="other"),
        replace(OPTIONS, first="fusion"),
        replace(OPTIONS, architectures=["sm_90a"]),
        replace(OPTIONS, refittable=True),
        replace(OPTIONS, profiles=[{"x": Profile((1,), (2,), (3,))}]),
        replace(OPTIONS, tuning=Tuning(replay=["generic"])),
    ],
)
def test_options_are_in_it(options: BuildOptions) -> None:
    assert _network_key(options) not in (None, _network_key())


def test_every_option_is_in_it_or_said_to_be_none() -> None:
    """An option that is added belongs to the key by itself."""
    for name in ("precision", "name", "first", "architectures", "refittable", "profiles"):
        assert _network_key(replace(OPTIONS, **{name: "something else"})) != _network_key()


def test_what_depends_on_more_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_CHECK_MACHINE_CODE", "0")
    assert _network_key(replace(OPTIONS, temporary=True)) is None
    assert _network_key(replace(OPTIONS, dump_phases=tmp_path)) is None
    assert _network_key(target="cuda") is not None
    asked = replace(OPTIONS, tuning=Tuning(selector=object()))  # pyright: ignore[reportArgumentType]
    assert _network_key(asked, "cuda") is None
    monkeypatch.setenv("MLIRT_CHECK_MACHINE_CODE", "1")
    assert _network_key(target="cuda") is None


def test_changed_pipelines_remarks_and_plugins_have_none(tmp_path: Path) -> None:
    """Whoever changes passes, or wants to hear of them, has a build of his own."""
    edited = Pipeline.default().without("cse")
    assert _network_key(replace(OPTIONS, pipeline=edited)) is None
    with recording(Remarks()):
        assert _network_key() is None
    (tmp_path / "plugin.py").write_text("")
    with using([tmp_path / "plugin.py"]):
        assert _network_key() is None
        assert model_key(_model(), "cpu", CONFIG) is None
    assert model_key(tmp_path / "network.mlir", "cpu", CONFIG) is None


def test_models_by_their_bytes() -> None:
    found = model_key(_model(), "cpu", CONFIG)
    assert found is not None
    assert found == model_key(_model().SerializeToString(deterministic=True), "cpu", CONFIG)
    assert found != model_key(one_node("Tanh", [np.ones((2, 3), np.float32)])[0], "cpu", CONFIG)
    assert found != model_key(_model(), "cpu", CONFIG.replace(constants={"x": np.ones((2, 3), np.float32)}))
    assert model_key(_model(), "reference", CONFIG) is None
    more = CONFIG.replace(precision="int8")
    for name in ("calibration", "dump_phases", "timing_cache", "algorithm_selector", "remarks", "plugins"):
        assert model_key(_model(), "cpu", more.replace(**{name: "something"})) is None
    assert model_key(_model(), "cpu", CONFIG.replace(pipeline=["without=cse"])) is None


def test_arrays_among_the_arguments_count_with_all_their_elements() -> None:
    zeros = np.zeros(5000, np.float32)
    other = zeros.copy()
    other[2500] = 1
    keys = {model_key(_model(), "cpu", CONFIG.replace(constants={"x": array})) for array in (zeros, other)}
    assert len(keys) == 2


def test_a_model_with_files_beside_it_has_none(tmp_path: Path) -> None:
    save: Callable[..., None] = getattr(onnx, "save_model")
    model, _ = one_node("MatMul", [np.ones((2, 3), np.float32), np.ones((3, 300), np.float32)], constants=[1])
    path = tmp_path / "model.onnx"
    write_model(model, path)
    assert model_key(path, "cpu", CONFIG) is not None
    save(model, str(path), save_as_external_data=True, location="weights", size_threshold=16)
    assert model_key(path, "cpu", CONFIG) is None
    assert model_key(tmp_path / "nowhere.onnx", "cpu", CONFIG) is None


def test_a_registered_plugin_could_stand_for_any_node() -> None:
    creator = RepeatCreator()
    assert get_plugin_registry().register_creator(creator, "keys")
    try:
        assert model_key(_model(), "cpu", CONFIG) is None
    finally:
        get_plugin_registry().deregister_creator(creator)


def test_the_compiler_knows_its_own_files() -> None:
    assert len(own_sources()) == 40
    own_sources.cache_clear()
    assert own_sources() == own_sources()


def test_every_setting_says_its_part_in_the_key() -> None:
    """A setting is in the key unless it says otherwise; these say that the plan does not follow from them."""
    apart = {one.name for one in settings() if setting_of(one).key == "apart"}
    assert apart == {"progress", "spin_ms", "shape_cache_mb", "threads", "streams"}
    first = model_key(_model(), "cpu", CONFIG)
    other = CONFIG.replace(progress=_watch, spin_ms=1, shape_cache_mb=2, threads=3, streams=4, target="cpu")
    assert model_key(_model(), "cpu", other) == first
    for changed in ({"obey_layer_precisions": True}, {"profiles": {"x": [[1], [2], [3]]}}, {"workspace": 5}):
        assert model_key(_model(), "cpu", CONFIG.replace(**changed)) not in (None, first)
    assert model_key(_model(), "cpu", CONFIG, "other") not in (None, first)
    assert model_key(_model(), "cpu", CONFIG, "", InnerOutputs(("a",))) not in (None, first)
