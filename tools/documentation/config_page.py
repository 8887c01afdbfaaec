"""The page of all settings of a build, from the fields of `BuildConfig` and what stands below each of them."""

from __future__ import annotations

from mlirt.builder.config.build_config import BuildConfig, default_of, settings
from mlirt.builder.config.setting import Setting, setting_of
from mlirt.tools.documentation.docstring_text import to_markdown
from mlirt.tools.documentation.field_texts import field_texts

_HEAD = """\
# The settings of a build

`mlirt.BuildConfig` is all that can be said of a build beside the model, as one value. Settings are keywords of
`mlirt.compile` as well, which go before those of `config=`:

```python
config = mlirt.BuildConfig(target="cpu", profiles={"image": [(1, 3, 8, 8), (4, 3, 8, 8), (8, 3, 8, 8)]})
engine = mlirt.compile("small.onnx", config=config, threads=2)
config.replace(precision="int8", calibration="small.calib").save("small.json")
```

The value does not change; `replace` gives another one, and equal settings are equal values. Each setting is checked
when the value is made: `InvalidInputError` names the one that does not fit, and the name that was meant by an unknown
one. `mlirt.calibrate`, `mlirt.sensitivity` and `mlirt.check_range` take `config=` too, the back ends for PyTorch and
ONNX (`torch.compile(backend="mlirt", options={"config": config})`, `mlirt.onnx_backend.prepare(model, config=config)`)
as well. `rt-exec --config=FILE` reads a file of JSON or, if its name ends in `.toml`, of TOML; flags that are given go
before it. TensorRT's `IBuilderConfig` becomes one when a network is built.

Arrays are objects of `dtype`, `shape` and `values` in files. What a file cannot hold is marked ¹; what the plan does
not follow from is marked ².

| setting | default | unit |
|---|---|---|
"""


def config_page() -> str:
    """The whole page."""
    rows = [_row(one.name, default_of(one), setting_of(one)) for one in settings()]
    sections = [f"## {name}\n\n{to_markdown(text)}" for name, text in described_settings().items()]
    return _HEAD + "\n".join(rows) + "\n\n" + "\n\n".join(sections) + "\n"


def described_settings() -> dict[str, str]:
    """What stands below each setting in the source, by its name."""
    return field_texts(BuildConfig)


def _row(name: str, default: object, of: Setting) -> str:
    marks = "¹" * (not of.is_stored) + "²" * (of.key == "apart")
    return f"| [`{name}`](#{name}){marks} | `{default!r}` | {of.unit} |"
