"""Keys of builds: digests of all that a plan follows from, for builder/plan_cache.py.

There are two for each build. That of the network is made from the IR that the passes begin with, its weights and the
options. That of the model is made from the bytes of the file and the configuration of the build, so that a model that
has been built before is not even imported. Both hold the compiler's own sources, the versions of the packages it works
with, and the machine that it builds for. A build that depends on anything else has no key.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirt.builder.assemblers.choice import assembler_versions
from mlirt.builder.config.build_config import settings
from mlirt.builder.config.setting import setting_of
from mlirt.builder.gpu_code import ARCHITECTURES, SWITCH
from mlirt.builder.host import architectures_of_build, cpu_target, cuda_target, gpu_is_here
from mlirt.builder.kernel_cache import key_of, versions
from mlirt.builder.model_kinds import is_ir
from mlirt.dialects.pass_plugins import active
from mlirt.runtime.host_cpu import host_triple
from mlirt.tensorrt.plugins.registry import get_plugin_registry
from mlirt.version import __version__

if TYPE_CHECKING:
    import onnx
    from xdsl.dialects.builtin import ModuleOp

    from mlirt.builder.build import BuildOptions
    from mlirt.builder.config.build_config import BuildConfig
    from mlirt.builder.inner_outputs import InnerOutputs
    from mlirt.builder.model_network import ModelSource
    from mlirt.builder.tactics.selection import Tuning
    from mlirt.dialects.context import RtContext

_PACKAGES = ("xdsl", "numpy", "onnx", "ml-dtypes", "protobuf", "numba", "llvmlite")
_CUDA_PACKAGES = ("numba-cuda", "nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-nvjitlink")
_EXTERNAL_DATA = b"\n\x08location"
"""How the name of a file beside the model is introduced in it."""


def network_key(module: ModuleOp, ctx: RtContext, target: str, options: BuildOptions) -> str | None:
    """The key of a network that is about to be built; None where its plan follows from more than can be digested.

    That are plugins and changed pipelines, whose code is the user's, tactics that are measured or chosen by the caller,
    texts of phases or remarks that somebody wants, and engines that are for this process alone.
    """
    from mlirt.dialects.kernel.plugin import PluginOp as KernelPluginOp
    from mlirt.dialects.module_digest import module_digest
    from mlirt.dialects.plugin_call import PluginCall
    from mlirt.passes.remarks import recorder

    if options.temporary or options.dump_phases is not None or not _is_repeatable(target, options.tuning):
        return None
    if active() or options.pipeline.edits or recorder() is not None:
        return None
    if any(isinstance(op, PluginCall | KernelPluginOp) for op in module.walk()):
        return None
    how = [f"{field.name}={getattr(options, field.name)!r}" for field in fields(options) if field.name not in _NO_PART]
    tuning = options.tuning
    chosen = f"{tuning.workspace} {sorted(tuning.sources)} {tuning.replay}"
    weights = "\n".join(f"{key} {digest}" for key, digest in ctx.weights.digests())
    return key_of("network", module_digest(module), weights, *how, chosen, _compiler(target, options.precision))


_NO_PART = frozenset({"progress", "dump_phases", "tuning", "temporary", "kept_as", "pipeline", "frees_weights"})
"""The options that the plan does not follow from, and `tuning`, of which only some has a part."""


def _is_repeatable(target: str, tuning: Tuning) -> bool:
    """Whether nothing is measured, asked or checked on the way."""
    if tuning.selector is not None:
        return False
    return tuning.timer is None and (target == "cpu" or not _checks_machine_code())


def _checks_machine_code() -> bool:
    return os.environ.get(SWITCH, "0") not in ("", "0")


def model_key(
    model: ModelSource, target: str, config: BuildConfig, name: str = "", inner: InnerOutputs | None = None
) -> str | None:
    """The key of a model with its configuration, the name of the network and its inner outputs.

    None where its plan follows from more than those: from files beside the model, from plugins (a registered one could
    stand for any of its nodes), from what `network_key` says; and where it is IR, whose weights lie elsewhere.
    """
    changed = {one.name: setting_of(one).key for one in settings() if one.name in config.changes()}
    if target not in ("cpu", "cuda") or "prevents" in changed.values() or active() or is_ir(model):
        return None
    if target == "cuda" and (_checks_machine_code() or (not config.heuristic and gpu_is_here())):
        return None
    content = None if get_plugin_registry().all_creators else _content_digest(model)
    if content is None:
        return None
    shown = {one: _shown(getattr(config, one)) for one, part in changed.items() if part == "part"}
    return key_of("model", content, repr((shown, name, inner)), _compiler(target, config.precision))


def _shown(value: object) -> object:
    """An argument as something whose `repr` tells all of it."""
    if isinstance(value, np.ndarray):
        from mlirt.dialects.weights import digest_of

        return digest_of(cast("np.ndarray[Any, np.dtype[Any]]", value))
    if isinstance(value, Mapping):
        return {name: _shown(one) for name, one in cast("Mapping[str, object]", value).items()}
    return [_shown(one) for one in cast("list[object]", value)] if isinstance(value, list | tuple) else value


def _content_digest(model: ModelSource) -> str | None:
    if isinstance(model, bytes):
        return _digest(model)
    if not isinstance(model, str | os.PathLike):
        return _digest_of_proto(model)
    try:
        with Path(model).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _digest(content)
    except (OSError, ValueError):
        return None  # whoever reads it says what is wrong


def _digest_of_proto(model: onnx.ModelProto) -> str | None:
    from google.protobuf.message import EncodeError

    try:
        return _digest(model.SerializeToString(deterministic=True))
    except (EncodeError, ValueError):  # there are no more than 2 GiB in one piece
        return None


def _digest(content: bytes | mmap.mmap) -> str | None:
    if content.find(_EXTERNAL_DATA) >= 0:
        return None
    return hashlib.blake2b(content, digest_size=20).hexdigest()


def _compiler(target: str, precision: str) -> str:
    """Who builds, and for which machine."""
    packages = versions(*_PACKAGES, *(_CUDA_PACKAGES if target == "cuda" else ()))
    machine = cpu_target() if target == "cpu" else cuda_target(precision)
    device = machine.cpu if target == "cpu" else machine.gpu
    shown = f"{machine.vector_bits} {sorted(machine.features)} {sorted(machine.special)} {machine.arch} {device!r}"
    triple = machine.triple or host_triple()
    if target == "cuda":
        packages = f"{packages} {assembler_versions()}"
    code = architectures_of_build(ARCHITECTURES) if target == "cuda" else triple
    return f"{__version__} {own_sources()} {packages} {target} {shown} {machine.threads} {triple} {code}"


@cache
def own_sources() -> str:
    """A digest of all files of this package: when the compiler changes, its old plans do not count."""
    state = hashlib.blake2b(digest_size=20)
    root = Path(__file__).parents[1]
    for folder, inner, files in os.walk(root, followlinks=True):
        inner[:] = sorted(name for name in inner if name != "__pycache__")
        for name in sorted(files):
            if not name.endswith((".pyc", ".pyo")):
                path = Path(folder, name)
                state.update(f"{path.relative_to(root)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return state.hexdigest()
