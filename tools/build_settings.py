"""What rt-exec's flags say of libraries, pools of memory and previews: what counts, and what changes nothing here."""

from __future__ import annotations

from argparse import Namespace

from mlirt.builder.tactics.tactic_sources import USED, sources_of_flag

_NO_LIBRARIES = "disableExternalTacticSourcesForCore0805"


def measured_libraries(arguments: Namespace) -> tuple[str, ...]:
    """The libraries whose kernels are measured beside mlirt's own: none where the preview feature forbids them."""
    if arguments.preview.get(_NO_LIBRARIES):
        return ()
    return tuple(name for name in _asked(arguments) if name in USED)


def settings_without_effect(arguments: Namespace) -> list[str]:
    """A line for each setting that changes nothing."""
    lines = [
        f"--tacticSources=+{name} has no effect: its kernels are mlirt's own."
        for name in _asked(arguments)
        if name not in USED
    ]
    lines += [
        f"--memPoolSize={name} has no effect: there is no DLA." for name in arguments.memPoolSize if name != "workspace"
    ]
    for name, on in arguments.preview.items():
        if name != _NO_LIBRARIES:
            lines.append(f"--preview={'+' if on else '-'}{name} has no effect: shapes are always dynamic this way.")
    return lines


def _asked(arguments: Namespace) -> tuple[str, ...]:
    return sources_of_flag(arguments.tacticSources) if arguments.tacticSources else ()
