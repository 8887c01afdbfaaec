"""The documents that are made or kept up to date by a program, by their path in the repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from mlirt.dialects import registry
from mlirt.tools.documentation.config_page import config_page
from mlirt.tools.documentation.dialect_page import dialect_page
from mlirt.tools.documentation.feature_page import PAGE as FEATURES
from mlirt.tools.documentation.feature_page import feature_page
from mlirt.tools.documentation.formats_page import formats_page
from mlirt.tools.documentation.living_page import LivingPage
from mlirt.tools.documentation.operator_page import operator_page
from mlirt.tools.documentation.pass_page import pass_page
from mlirt.tools.documentation.plan_page import plan_page
from mlirt.tools.documentation.torch_operator_page import torch_operator_page


def _dialect(name: str) -> str:
    return dialect_page(registry.load(name))


# Written from definitions alone.
GENERATED: Mapping[str, Callable[[], str]] = {
    **{f"docs/dialects/{name}.md": partial(_dialect, name) for name in registry.dialect_names()},
    "docs/build-config.md": config_page,
    "docs/formats.md": formats_page,
    "docs/passes.md": pass_page,
    "docs/plan-format.md": plan_page,
    "docs/onnx-operators.md": operator_page,
    "docs/torch-operators.md": torch_operator_page,
}

# Written by hand, with cells of a table that a program fills.
TABLES: Mapping[str, Callable[[str, Path], str]] = {FEATURES: feature_page}

# Written by hand, with code blocks that a program fills.
LIVING = (
    "README.md",
    "docs/start.md",
    "docs/deploy-a-model.md",
    "docs/notebooks.md",
    "docs/architecture.md",
    "docs/add-a-device.md",
    "docs/tools.md",
    "docs/errors.md",
    "docs/control-flow.md",
    "docs/int8.md",
    "docs/quantised-networks.md",
    "docs/network-api.md",
    "docs/migrate-from-tensorrt.md",
    "docs/requests.md",
    "docs/serve.md",
    "docs/c-library.md",
    "docs/build-farms.md",
    "docs/fast-math.md",
    "docs/research.md",
    "docs/write-a-kernel.md",
    "examples/research/README.md",
    "examples/research/convolution_as_product/README.md",
    "examples/research/equality_saturation/README.md",
    "examples/research/gated_product/README.md",
    "examples/research/rms_norm/README.md",
    "examples/research/squeeze_excitation/README.md",
)


def fresh_text(name: str, root: Path) -> str:
    """What a document should say today."""
    if name in GENERATED:
        return GENERATED[name]()
    if name in TABLES:
        return TABLES[name]((root / name).read_text(encoding="utf-8"), root)
    return LivingPage((root / name).read_text(encoding="utf-8"), root).refreshed()
