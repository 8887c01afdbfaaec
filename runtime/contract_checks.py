"""Holds a plan's kernels to the contracts in its file: the same code and signature; what is not proved, as it was."""

import json
from collections.abc import Mapping, Sequence
from typing import cast

from mlirt.errors import PlanError
from mlirt.runtime.extents import Contract, Seals, read_contracts
from mlirt.runtime.manifest import Kernel, Manifest

NOTHING_PROVED: Mapping[str, object] = {"signed": [], "constants": [], "numbers": [], "conditions": [], "extents": []}


def check_contracts(
    manifest: Manifest, record: Mapping[str, object], section: bytes
) -> tuple[Mapping[str, tuple[Contract, ...]], frozenset[int]]:
    """The contracts by symbol, and the launches that are as the compiler has written them.

    A `PlanError` names a kernel without a contract, or a launch that is not as it was made although it has to be: of a
    library, or of a kernel that a part of its arguments has no extents of.
    """
    contracts = read_contracts(section)
    for kernel in manifest.kernels:
        if kernel.plugin is None and kernel.call is None:
            _check_kernel(kernel, contracts.kernels.get(kernel.symbol, ()))
    seals, sealed = Seals(record), set[int]()
    for i, launch in enumerate(manifest.launches):
        if seals.of(i) in contracts.sealed:
            sealed.add(i)
            continue
        kernel = manifest.kernels[launch.kernel]
        found = contracts.kernels.get(kernel.symbol, ())
        is_proved = bool(found) and not any(one.unproved for one in found)
        if kernel.plugin is None and (kernel.call is not None or not is_proved):
            where = f"launches[{i}] ({launch.layer[:80]})"
            raise PlanError(f"plan manifest: {where}: its numbers are not those that it was made with")
    return contracts.kernels, frozenset(sealed)


def _check_kernel(kernel: Kernel, contracts: Sequence[Contract]) -> None:
    if not contracts:
        raise PlanError(f"plan manifest: kernel {kernel.name[:80]!r}: nothing says what it touches")
    signature = (kernel.args, kernel.block, kernel.shared_bytes, kernel.cluster)
    if any(signature != (one.args, one.block, one.shared_bytes, one.cluster) for one in contracts):
        raise PlanError(f"plan manifest: kernel {kernel.name[:80]!r}: its code has another signature")
    if not all(one.objects.issuperset(kernel.objects.values()) for one in contracts):
        raise PlanError(f"plan manifest: kernel {kernel.name[:80]!r}: its code is in another section")


def contract_record(kernel: Mapping[str, object]) -> dict[str, object]:
    """The contract of a kernel of which only its record in a manifest is known: nothing is proved."""
    objects = kernel.get("object", {})
    args = list(cast("list[str]", kernel["args"]))
    return {
        "objects": [objects] if isinstance(objects, str) else sorted(cast("dict[str, str]", objects).values()),
        "args": args,
        "block": list(cast("list[int]", kernel.get("block", [1, 1, 1]))),
        "shared_bytes": kernel.get("shared_bytes", 0),
        "cluster": kernel.get("cluster", 1),
        **NOTHING_PROVED,
        "signed": [i for i, kind in enumerate(args) if kind in ("i64", "i32")],
        "unproved": [i for i, kind in enumerate(args) if kind == "ptr"],
    }


def sealed_contracts(manifest: Mapping[str, object]) -> bytes:
    """The section for a plan without contracts: each launch may have the numbers that it has, and no others."""
    kernels = cast("list[dict[str, object]]", manifest["kernels"])
    own = [kernel for kernel in kernels if kernel.get("plugin") is None and kernel.get("library") is None]
    launches = range(len(cast("list[object]", manifest["launches"])))
    seals = Seals(manifest)
    return contracts_section(
        {str(kernel["symbol"]): [contract_record(kernel)] for kernel in own}, [seals.of(i) for i in launches]
    )


def contracts_section(kernels: Mapping[str, Sequence[object]], sealed: list[str]) -> bytes:
    """The bytes of the section."""
    whole = {"kernels": kernels, "sealed": sorted(set(sealed))}
    return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()
