"""A profile is a list of pairs, records for tables, and a table of a notebook."""

from __future__ import annotations

from mlirt.runtime.layer_times import LayerTime, Profile

RUNS = [[("a", 1.0), ("b", 3.0)], [("a", 2.0), ("b", 6.0)], [("a", 9.0), ("b", 4.0)]]
LAYERS = ({"family": "matmul", "kernel": "matmul_1"}, {"family": "pointwise", "kernel": "pointwise_2"})


def test_pairs_are_medians() -> None:
    profile = Profile(RUNS)
    assert profile == [("a", 2.0), ("b", 4.0)]
    assert [layer for layer, _ in profile] == ["a", "b"]
    assert profile[1] == LayerTime("b", 4.0)
    assert profile.milliseconds == 6.0


def test_records() -> None:
    first, second = Profile(RUNS, LAYERS).records()
    assert first == {
        "launch": 0,
        "layer": "a",
        "family": "matmul",
        "kernel": "matmul_1",
        "milliseconds": 2.0,
        "least": 1.0,
        "greatest": 9.0,
        "share": 2 / 6,
    }
    assert (second["launch"], second["family"], second["share"]) == (1, "pointwise", 4 / 6)


def test_records_without_layers_and_without_time() -> None:
    assert [record["family"] for record in Profile(RUNS, LAYERS[:1]).records()] == ["matmul", ""]
    assert Profile([[("a", 0.0)]]).records()[0]["share"] == 0.0
    assert Profile([[]]).records() == []


def test_a_notebook_s_table_escapes_names() -> None:
    text = Profile([[("<b> & c", 1.5)]])._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert "&lt;b&gt; &amp; c" in text
    assert "<b>" not in text
    assert "1.5000 ms in 1 launches" in text
