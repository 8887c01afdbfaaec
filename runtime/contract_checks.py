"""Holds a plan's kernels to the contracts in its file: the same code and signature, sealed launches as they were."""

import json
from collections.abc import Mapping
from typing import cast

from mlirt.errors import PlanError
from mlirt.runtime.extents import Contract, read_contracts, seal_of
from mlirt.runtime.manifest import Kernel, Manifest


def check_contracts(
    manifest: Manifest, record: Mapping[str, object], section: bytes
) -> tuple[Mapping[str, Contract], frozenset[int]]:
    """The contracts by symbol, and the launches that are as they were made.

    A `PlanError` names a kernel without a contract, or another launch of a kernel of which nothing is proved.
    """
    contracts = read_contracts(section)
    for kernel in manifest.kernels:
        if kernel.plugin is None and kernel.call is None:
            _check_kernel(kernel, contracts.kernels.get(kernel.symbol))
    sealed: set[int] = set()
    for i, launch in enumerate(manifest.launches):
        kernel = manifest.kernels[launch.kernel]
        contract = contracts.kernels.get(kernel.symbol)
        is_proved = contract is not None and not contract.unproved
        if seal_of(record, i) in contracts.sealed:
            sealed.add(i)
        elif kernel.plugin is None and (kernel.call is not None or not is_proved):
            where = f"launches[{i}] ({launch.layer[:80]})"
            raise PlanError(f"plan manifest: {where}: its numbers are not those that it was made with")
    return contracts.kernels, frozenset(sealed)


def _check_kernel(kernel: Kernel, contract: Contract | None) -> None:
    if contract is None:
        raise PlanError(f"plan manifest: kernel {kernel.name[:80]!r}: nothing says what it touches")
    signature = (kernel.args, kernel.block, kernel.shared_bytes, kernel.cluster)
    if signature != (contract.args, contract.block, contract.shared_bytes, contract.cluster):
        raise PlanError(f"plan manifest: kernel {kernel.name[:80]!r}: its code has another signature")
    if not contract.objects.issuperset(kernel.objects.values()):
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
        "signed": [i for i, kind in enumerate(args) if kind in ("i64", "i32")],
        "numbers": [],
        "conditions": [],
        "extents": [],
        "unproved": [i for i, kind in enumerate(args) if kind == "ptr"],
    }


def sealed_contracts(manifest: Mapping[str, object]) -> bytes:
    """The section for a plan without contracts: each launch may have the numbers that it has, and no others."""
    kernels = cast("list[dict[str, object]]", manifest["kernels"])
    own = [kernel for kernel in kernels if kernel.get("plugin") is None and kernel.get("library") is None]
    launches = range(len(cast("list[object]", manifest["launches"])))
    return contracts_section(
        {str(kernel["symbol"]): contract_record(kernel) for kernel in own}, [seal_of(manifest, i) for i in launches]
    )


def contracts_section(kernels: Mapping[str, object], sealed: list[str]) -> bytes:
    """The bytes of the section."""
    whole = {"kernels": kernels, "sealed": sorted(set(sealed))}
    return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()
