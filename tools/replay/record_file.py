"""A record: for each network, phase, kernel and layer the digest of a text; the texts themselves where they were asked
for.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from mlirt.atomic_file import write_file
from mlirt.errors import InvalidInputError

FORM = 1
_ABOUT = "rt-replay compare THIS_FILE tells what changed, rt-replay record THIS_FILE records it again"


@dataclass
class Record:
    """What networks become: `networks` has for each build of each network the digest of each of its texts by its label.

    `models` are paths from the folder of the record, `builds` such as `cpu` or `cuda:fp16`.
    """

    models: list[str]
    builds: list[str]
    plugins: list[str] = field(default_factory=list[str])
    edits: list[str] = field(default_factory=list[str])
    networks: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    texts: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, network: str, texts: Mapping[str, str]) -> None:
        """Keep what a network becomes: texts by their labels."""
        digests = {label: digest_of(text) for label, text in texts.items()}
        self.networks[network] = digests
        self.texts |= {digests[label]: text for label, text in texts.items()}

    def write(self, path: str, *, with_texts: bool) -> None:
        """Write the record: a line of JSON for each digest, so that a difference of two versions can be read."""
        kept: dict[str, Any] = {
            "about": _ABOUT,
            "form": FORM,
            "models": self.models,
            "builds": self.builds,
            "plugins": self.plugins,
            "edits": self.edits,
            "networks": self.networks,
        }
        if with_texts:
            kept["texts"] = _packed(self.texts)
        write_file(path, [f"{json.dumps(kept, indent=1, ensure_ascii=False)}\n".encode()])


def digest_of(text: str) -> str:
    """16 letters: 64 bits tell texts apart that nobody makes equal on purpose."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def read_record(path: str) -> Record:
    """The record in a file; raises `InvalidInputError` for a file that cannot be read or is none."""
    try:
        kept: object = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot read the file: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInputError(f"{path} is no record: expected the JSON that rt-replay record writes") from error
    if not isinstance(kept, dict) or "networks" not in kept:
        raise InvalidInputError(f"{path} is no record: expected the JSON that rt-replay record writes")
    known = cast("dict[str, Any]", kept)
    if known.get("form") != FORM:
        raise InvalidInputError(f"{path}: records of form {known.get('form')} cannot be read, those of {FORM} can")
    texts = _unpacked(path, known["texts"]) if "texts" in known else {}
    return Record(known["models"], known["builds"], known["plugins"], known["edits"], known["networks"], texts)


def _packed(texts: Mapping[str, str]) -> str:
    """All texts as one, as they are much alike."""
    return base64.b85encode(lzma.compress(json.dumps(texts, ensure_ascii=False).encode(), preset=9)).decode()


def _unpacked(path: str, packed: str) -> dict[str, str]:
    try:
        texts: dict[str, str] = json.loads(lzma.decompress(base64.b85decode(packed)))
    except (ValueError, lzma.LZMAError) as error:
        raise InvalidInputError(f"{path}: its texts are damaged; record it again") from error
    wrong = [digest for digest, text in texts.items() if digest_of(text) != digest]
    if wrong:
        raise InvalidInputError(f"{path}: the text of {wrong[0]} has another digest; record it again")
    return texts
