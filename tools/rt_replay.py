"""rt-replay: keeps what networks become on their way to kernels, and shows which kernels a change of a pass changes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlirt.errors import InvalidInputError
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.output_files import check_output, write_output
from mlirt.tools.plugin_files import warn_on_standard_error
from mlirt.tools.research_flags import add_pass_plugin_flag, add_pipeline_edit_flag, pass_plugins
from mlirt.tools.tool_main import tool_main

if TYPE_CHECKING:
    from mlirt.tools.replay.record_file import Record

COMMANDS = {
    "record": "write the digests of all texts of networks: the IR after each phase, estimates of tactics, kernels",
    "compare": "print what differs between two records, or between a record and what is made now",
}


_FILES = (
    "record: ONNX models, IR text (.mlir), Python files with a table NETWORKS of functions that give models, or a "
    "record to be made again; compare: a record, and another one or else what is made of its networks now"
)
_SINCE = "compare: with what the compiler at a revision of the git repository makes of the networks of the record"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the result is the exit code: 0 where nothing changed, 1 for changes or an error."""
    return tool_main("rt-replay", argv, _parse_arguments, _work, lambda arguments: "rt-replay")


def _parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = FlagParser("rt-replay", __doc__)
    parser.add_argument(
        "command", choices=tuple(COMMANDS), help="; ".join(f"{name}: {what}" for name, what in COMMANDS.items())
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
    parser.add_argument("-o", dest="output", metavar="FILE", help="record: the file to write (default: that record)")
    parser.add_argument(
        "--target", metavar="TARGETS", help="record: what to build for, such as cpu,cuda:fp16 (default: cpu,cuda)"
    )
    parser.add_argument("--texts", action="store_true", help="record: keep the texts too, compressed")
    parser.add_argument("--since", metavar="REVISION", help=_SINCE)
    parser.add_argument("--ir", action="store_true", help="compare: show how the first phase that differs does")
    parser.add_argument(
        "--html", metavar="FILE", help="compare: write the texts side by side to a page, and print none"
    )
    add_pass_plugin_flag(parser.add_argument)
    add_pipeline_edit_flag(parser.add_argument)
    parser.add_argument("--verbose", action="store_true", help="print tracebacks of errors")
    arguments = parser.parse_args(argv)
    _check(arguments)
    return arguments


def _check(arguments: argparse.Namespace) -> None:
    given = {
        "-o": arguments.output,
        "--target": arguments.target,
        "--texts": arguments.texts,
        "--load-pass-plugin": arguments.load_pass_plugin,
        "--pipeline-edit": arguments.pipeline_edit,
        "--since": arguments.since,
        "--ir": arguments.ir,
        "--html": arguments.html,
    }
    of_compare = ("--since", "--ir", "--html")
    for flag, value in given.items():
        other = "compare" if flag in of_compare else "record"
        if value and other != arguments.command:
            raise InvalidInputError(f"{flag} is for rt-replay {other}")
    if arguments.command == "compare" and len(arguments.files) > (1 if arguments.since else 2):
        raise InvalidInputError("compare takes a record and another one, or one record with --since")


def _work(arguments: argparse.Namespace) -> int:
    if arguments.command == "record":
        return _record(arguments)
    return _compare(arguments)


def _record(arguments: argparse.Namespace) -> int:
    from mlirt.tools.replay.recording import check_builds

    again = arguments.files[0] if arguments.files[0].endswith(".json") else None
    output = arguments.output or again
    if output is None:
        raise InvalidInputError("record writes a file: add -o FILE.json")
    check_output(output)
    record = _asked(arguments, Path(output).parent) if again is None else _again(again, arguments, Path(output).parent)
    check_builds(record.builds)
    _made_now(record, Path(output).parent).write(output, with_texts=arguments.texts)
    return 0


def _asked(arguments: argparse.Namespace, folder: Path) -> Record:
    """What the flags name, without anything made of it; paths are from the folder of the record."""
    from mlirt.tools.replay.record_file import Record

    models = [_path_from(folder, file) for file in arguments.files]
    plugins = [_path_from(folder, file) for file in arguments.load_pass_plugin]
    return Record(models, str(arguments.target or "cpu,cuda").split(","), plugins, arguments.pipeline_edit)


def _again(path: str, arguments: argparse.Namespace, folder: Path) -> Record:
    """What a record is made of, with paths from the folder of the new one."""
    from mlirt.tools.replay.record_file import Record, read_record

    if len(arguments.files) > 1 or arguments.target or arguments.load_pass_plugin or arguments.pipeline_edit:
        raise InvalidInputError(f"{path} says what it is made of: give it alone")
    kept, place = read_record(path), Path(path).parent
    models, plugins = ([_path_from(folder, str(place / one)) for one in many] for many in (kept.models, kept.plugins))
    return Record(models, kept.builds, plugins, kept.edits)


def _path_from(folder: Path, file: str) -> str:
    """A path from the folder of the record, so that the two can be moved together."""
    return Path(os.path.relpath(file, folder)).as_posix()


def _made_now(record: Record, folder: Path) -> Record:
    from mlirt.tools.replay.recording import record_networks

    plugins = argparse.Namespace(load_pass_plugin=[str(folder / plugin) for plugin in record.plugins])
    with pass_plugins(plugins, warn_on_standard_error):
        return record_networks(record, folder)


def _compare(arguments: argparse.Namespace) -> int:
    from mlirt.tools.replay.comparison import changed_texts, changes, differences, summary
    from mlirt.tools.replay.record_file import read_record
    from mlirt.tools.replay.revision import record_of_revision

    check_output(arguments.html)
    path, *others = arguments.files
    old = record_of_revision(path, arguments.since) if arguments.since else read_record(path)
    new = read_record(others[0]) if others else _made_now(read_record(path), Path(path).parent)
    found = changes(old, new)
    line = summary(found, old, new)
    print("\n".join([*map(str, found), line]))
    kinds = ("phase", "estimates", "kernel") if arguments.ir else ("estimates", "kernel")
    texts = changed_texts(found, old, new, kinds)
    if arguments.html:
        from mlirt.tools.replay.side_by_side import side_by_side

        write_output(side_by_side(line, texts), arguments.html)
    else:
        for difference in differences(texts):
            print(difference)
    if found and not (old.texts and new.texts):
        print(
            f"for the texts: rt-replay compare {path} --since=HEAD, or records that were made with --texts",
            file=sys.stderr,
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
