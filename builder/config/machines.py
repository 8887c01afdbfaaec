"""The machines that a configuration names, each with the configuration of a build for it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.builder.config.build_config import BuildConfig


def names_in(text: str | None) -> list[str]:
    """The names of a list with commas, none of them twice."""
    return list(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def machines_of(config: BuildConfig) -> dict[str, BuildConfig]:
    """By the name of each processor and architecture the configuration for it; none where none is named."""
    cpus, gpus = names_in(config.cpu), names_in(config.gpu)
    return {name: config.replace(target="cpu", cpu=name, gpu=None) for name in cpus} | {
        name: config.replace(target="cuda", cpu=None, system=None, gpu=name) for name in gpus
    }
