"""The machines that a configuration names, each with the configuration of a build for it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.builder.config.build_config import BuildConfig


def names_in(text: str | None) -> list[str]:
    """The names of a list with commas, none of them twice."""
    return list(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def machine_names(config: BuildConfig) -> list[str]:
    """Of all machines that a configuration names."""
    return [*(name for name, _, _ in _processors(config)), *names_in(config.gpu)]


def machines_of(config: BuildConfig) -> dict[str, BuildConfig]:
    """By the name of each processor (with its operating system, where several are named) and architecture the
    configuration for it; none where none is named.
    """
    found = {
        name: config.replace(target="cpu", cpu=cpu, system=system, gpu=None)
        for name, cpu, system in _processors(config)
    }
    gpus = names_in(config.gpu)
    return found | {name: config.replace(target="cuda", cpu=None, system=None, gpu=name) for name in gpus}


def _processors(config: BuildConfig) -> list[tuple[str, str, str | None]]:
    """Name, processor and operating system of each machine without a GPU; the host's where systems are named alone."""
    cpus, systems = names_in(config.cpu), names_in(config.system)
    if len(systems) < 2:
        return [(cpu, cpu, config.system) for cpu in cpus]
    return [(f"{cpu} {system}", cpu, system) for system in systems for cpu in cpus or ["host"]]
