"""Networks of torchvision, timm and transformers that no case of `torch_module_cases` names, as these list them."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch_module_cases import BATCH, GROUPS, SEQUENCE, ModuleCase, image, tokens
from torch_wrapped_modules import Named, with_operators

MAX_WEIGHTS = 12_000_000


def unseen(group: str) -> Iterator[ModuleCase]:
    """The other networks of a package: one of each family of timm's, every small one of torchvision's."""
    named = {case.name for case in GROUPS[group]()} if group in _LISTS else set[str]()
    for case in _LISTS.get(group, lambda: iter(()))():
        if case.name not in named:
            yield case


def _of_torchvision() -> Iterator[ModuleCase]:
    with_operators()
    import torchvision.models as models

    for name in models.list_models(module=models):
        if models.get_model_weights(name).DEFAULT.meta["num_params"] <= MAX_WEIGHTS:
            size = 224 if name.startswith(("vit", "swin", "maxvit")) else 96
            yield ModuleCase(name, lambda name=name: models.get_model(name), image(size), BATCH)


def _of_timm() -> Iterator[ModuleCase]:
    """The smallest network of each file of timm's."""
    with_operators()
    import timm
    import torch

    for family in sorted(set(timm.list_modules())):
        smallest: tuple[int, str, int] | None = None
        for name in timm.list_models(module=family)[:6]:
            with torch.device("meta"):
                try:
                    model: Any = timm.create_model(name)
                except Exception:
                    continue
            count = sum(one.numel() for one in model.parameters())
            size = int(model.default_cfg.get("input_size", (3, 224, 224))[-1])
            if smallest is None or count < smallest[0]:
                smallest = (count, name, size)
        if smallest is not None and smallest[0] <= MAX_WEIGHTS:
            _, name, size = smallest
            yield ModuleCase(name, lambda name=name: timm.create_model(name), image(size), BATCH)


def _of_transformers() -> Iterator[ModuleCase]:
    """Every configuration of a network that takes tokens, with its sizes set to small ones where it has them."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    small: dict[str, Any] = {
        "vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 128, "head_dim": 8,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "use_cache": False,
    }  # fmt: skip

    def make(kind: str, names: str | tuple[str, ...]) -> Any:
        config = transformers.AutoConfig.for_model(kind)
        known = {key: value for key, value in small.items() if hasattr(config, key)}
        model = getattr(transformers, names if isinstance(names, str) else names[0])
        made = model(type(config)(**known))
        if sum(one.numel() for one in made.parameters()) > MAX_WEIGHTS:
            raise ValueError("large")
        return Named(made, "last_hidden_state")

    for kind, names in MODEL_MAPPING_NAMES.items():
        yield ModuleCase(kind, lambda kind=kind, names=names: make(kind, names), tokens(), SEQUENCE)


_LISTS = {"torchvision": _of_torchvision, "timm": _of_timm, "transformers": _of_transformers}
