"""What notebooks show: engines, calibrations, modules, and the launches as a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from example_network import example_network

import mlirt
from mlirt.builder.calibration.calibration import Calibration
from mlirt.builder.reference_engine import ReferenceEngine
from mlirt.notebook import load_ipython_extension, module_html
from mlirt.runtime.engine import Engine

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def engine() -> Engine:
    found = mlirt.compile(example_network(), target="cpu")
    assert isinstance(found, Engine)
    return found


def test_each_launch_input_and_output_is_a_box(engine: Engine, tmp_path: Path) -> None:
    drawing = mlirt.draw(engine)
    root = ElementTree.fromstring(drawing.svg)
    titles = [one.text for one in root.iter(f"{SVG}title")][1:]
    assert len(titles) == len(engine.layers) + 2
    assert titles[0] == "image float32[n, 3, 8, 8]"
    assert "conv2 + norm2 + add2 + relu2" in titles
    assert len(list(root.iter(f"{SVG}polyline"))) >= len(engine.layers) + 1
    drawing.save(tmp_path / "small.svg")
    assert (tmp_path / "small.svg").read_text(encoding="utf-8") == drawing._repr_svg_()  # pyright: ignore[reportPrivateUsage]


def test_other_shapes_and_what_cannot_be_drawn(engine: Engine) -> None:
    assert mlirt.draw(engine, {"image": (7, 3, 8, 8)}).svg == mlirt.draw(engine).svg
    with pytest.raises(mlirt.InvalidInputError, match="no input 'picture'"):
        mlirt.draw(engine, {"picture": (1,)})
    with pytest.raises(mlirt.InvalidInputError, match="no plan to draw"):
        mlirt.draw(mlirt.compile(example_network(), target="reference"))


def test_an_engine_shows_its_inputs_and_outputs(engine: Engine) -> None:
    text = engine._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert f"Engine small for cpu, {len(engine.layers)} layers" in text
    assert "n x 3 x 8 x 8" in text
    assert "scores" in text
    assert "<script" not in text


def test_a_profile_of_an_engine_has_families(engine: Engine) -> None:
    feeds = {"image": np.zeros((1, 3, 8, 8), np.float32)}
    records = engine.profile(feeds, runs=3).records()
    assert [record["layer"] for record in records] == [str(layer["name"]) for layer in engine.layers]
    assert {"convolution", "matmul"} <= {record["family"] for record in records}
    with pytest.raises(mlirt.InvalidInputError, match="at least 1"):
        engine.profile(feeds, runs=0)


def test_a_calibration_shows_its_widest_ranges() -> None:
    calibration = Calibration("entropy", {f"t{number}": number / 127 for number in range(25)})
    text = calibration._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "Calibration by entropy: the error of the outputs in int8 was not measured" in text
    assert text.index(">t24<") < text.index(">t23<")
    assert ">t2<" not in text
    assert "5 more tensors" in text


def test_a_module_shows_its_ops_and_text() -> None:
    engine = mlirt.compile(example_network(), target="reference")
    assert isinstance(engine, ReferenceEngine)
    text = module_html(engine.module)
    assert ">trt.convolution</td>" in text
    assert "tensor&lt;" in text
    known: dict[tuple[str, str], object] = {}

    def for_type_by_name(module: str, name: str, show: object) -> None:
        known[module, name] = show

    formatter = SimpleNamespace(for_type_by_name=for_type_by_name)
    shell = SimpleNamespace(display_formatter=SimpleNamespace(formatters={"text/html": formatter}))
    load_ipython_extension(shell)
    assert known == {(type(engine.module).__module__, "ModuleOp"): module_html}
