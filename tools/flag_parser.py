"""Reads flags: what is wrong with them is an error of one line, as that of any other input."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from mlirt.errors import InvalidInputError, MissingPackageError

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")


class SentenceFormatter(argparse.HelpFormatter):
    """Writes what flags do as sentences: a capital letter, unless an example begins it, and a period."""

    def _expand_help(self, action: argparse.Action) -> str:
        text = super()._expand_help(action)
        first = text.split(" ")[0].rstrip(",;")
        start = text[:1].upper() if first.isalpha() and first.islower() else text[:1]
        return f"{start}{text[1:]}" + "." * (not text.endswith("."))


class _PrintCompletion(argparse.Action):
    """Prints what shtab writes for the parser."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> NoReturn:
        try:
            import shtab
        except ModuleNotFoundError as error:
            raise MissingPackageError(
                "--print-completion needs the package shtab, which is not installed here: pip install shtab",
                name=error.name,
            ) from error
        print(shtab.complete(parser, values))
        parser.exit()


class FlagParser(argparse.ArgumentParser):
    """Raises `InvalidInputError` for flags that are wrong; names of flags are never cut short."""

    def __init__(
        self,
        prog: str,
        description: str | None,
        formatter_class: type[argparse.HelpFormatter] = SentenceFormatter,
    ) -> None:
        super().__init__(prog=prog, description=description, formatter_class=formatter_class, allow_abbrev=False)
        self.add_argument(
            "--print-completion",
            action=_PrintCompletion,
            choices=("bash", "zsh", "tcsh"),
            default=argparse.SUPPRESS,
            help="print a script that completes the flags, for eval (needs the package shtab), and stop",
        )

    def given(self, argv: Sequence[str]) -> frozenset[str]:
        """The flags that are told, by the names of their values; the others have their defaults."""
        defaults = {action: action.default for action in self._actions}
        for action in defaults:
            action.default = argparse.SUPPRESS
        try:
            return frozenset(vars(self.parse_args(argv)))
        finally:
            for action, default in defaults.items():
                action.default = default

    def error(self, message: str) -> NoReturn:
        raise InvalidInputError(f"{message}{self._near(message)} ({self.prog} --help lists the flags)")

    def _near(self, message: str) -> str:
        """The flag that was meant by an unknown one, or the choice by another word, if it can be told."""
        from difflib import get_close_matches  # for mistakes alone: tools start without it

        choice = _CHOICE.search(message)
        if choice is not None:
            close = get_close_matches(choice[1], re.findall(r"'([^']*)'", choice[2]), 1)
            return "".join(f"; did you mean {word}?" for word in close)
        unknown = message.removeprefix("unrecognized arguments: ").split()[0].split("=")[0]
        flags = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
        close = get_close_matches(unknown, flags, 1) if unknown.startswith("--") else []
        return "".join(f"; did you mean {flag}?" for flag in close)
