"""rt-opt: runs any pipeline of passes on IR text or an ONNX model and shows what each of them does."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from mlirt.atomic_file import is_special, write_file
from mlirt.dialects.context import RtContext
from mlirt.dialects.diagnostics import VerificationError
from mlirt.dialects.dominance import dominance_errors
from mlirt.dialects.fast_math import read_rights
from mlirt.dialects.quantization_notes import notes_in
from mlirt.dialects.source_parser import SourceMap
from mlirt.dialects.verification import verification_errors
from mlirt.dialects.xdsl_compat import module_text
from mlirt.errors import InvalidInputError, MlirtError
from mlirt.passes import registry
from mlirt.passes.pass_levels import LevelWarnings
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_passes, run_phases
from mlirt.passes.pipeline_edits import Pipeline
from mlirt.passes.pipeline_text import parse_pipeline
from mlirt.passes.remarks import Remarks, recording
from mlirt.tools.diagnostic import Diagnostic, diagnostic_of
from mlirt.tools.input_files import InputFile, chunks, load_network, load_text, new_context
from mlirt.tools.ir_dumps import IrDumps
from mlirt.tools.kernel_text import kernel_text
from mlirt.tools.output_files import check_folder, check_output, write_output, write_page
from mlirt.tools.plugin_files import run_plugin_files, warn_on_standard_error
from mlirt.tools.research_flags import asked_remarks, pass_plugins, report_remarks
from mlirt.tools.rt_opt_arguments import parse_arguments, pass_help, pass_list
from mlirt.tools.tool_main import tool_main

if TYPE_CHECKING:
    from mlirt.tools.pass_view.history import PassHistory


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; the result is the exit code: 0, or 1 for an error."""
    return tool_main("rt-opt", argv, parse_arguments, lambda arguments: _Driver(arguments).run(), _subject)


def _subject(arguments: argparse.Namespace) -> str:
    """What an error is about: the input once it is read, the call before."""
    return InputFile(arguments.input).name if getattr(arguments, "is_reading", False) else "rt-opt"


_NOTHING_TO_RUN = "expected a function without arguments, or --input=NAME=random:0 for one with arguments"


@dataclass
class _Driver:
    arguments: argparse.Namespace
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    run_count: int = 0
    text: str = ""
    remarks: Remarks | None = None
    history: PassHistory | None = None

    def run(self) -> int:
        with pass_plugins(self.arguments, warn_on_standard_error):
            return self._run()

    def _run(self) -> int:
        if self.arguments.list_passes or self.arguments.help_pass:
            print(pass_help(self.arguments.help_pass) if self.arguments.help_pass else pass_list(), end="")
            return 0
        check_output(self.arguments.output)
        run_plugin_files(self.arguments)
        options = self._pipeline_options()
        self.remarks = asked_remarks(self.arguments)
        check_output(self.arguments.remarks_output)
        self._watch(options)
        self.arguments.is_reading = True
        file = InputFile(self.arguments.input)
        problems: list[str] = []
        outputs: list[str] = []
        for text in [""] if file.is_onnx else chunks(file.read_text(), self.arguments.split_input_file):
            self.diagnostics = []
            self.text = text
            output = self._run_chunk(file, text, options)
            outputs += [] if output is None else [output]
            if self.arguments.verify_diagnostics:
                from mlirt.tools.expected_diagnostics import mismatches

                self._take_remarks()
                problems += mismatches(text, self.diagnostics, file.name)
            else:
                problems += map(str, self.diagnostics)
        if self.arguments.run and not self.run_count and not problems:
            problems.append(f"{file.name}: error: nothing to run: {_NOTHING_TO_RUN}")
        for problem in problems:
            print(problem, file=sys.stderr)
        if self.history is not None:
            write_page(self.arguments.html, file.name, self.history, problems)
        if self.arguments.timing:
            _print_times(options)
        if self.remarks is not None:
            report_remarks(self.remarks, self.arguments, lambda line: print(line, file=sys.stderr))
        if not problems or self.arguments.split_input_file:
            write_output("// -----\n".join(outputs), self.arguments.output)
        return 1 if problems else 0

    def _watch(self, options: PipelineOptions) -> None:
        """Let what each pass changes and says be kept for the page of --html."""
        if self.arguments.html:
            from mlirt.tools.pass_view.history import PassHistory

            check_folder(self.arguments.html, "html")
            self.remarks = Remarks() if self.remarks is None else self.remarks
            self.history = PassHistory(self.remarks)
            options.instruments = [*options.instruments, self.history]

    def _run_chunk(self, file: InputFile, text: str, options: PipelineOptions) -> str | None:
        """The output of a chunk; None, and a diagnostic, where it fails."""
        source: SourceMap | None = None
        try:
            ctx = new_context(self.arguments.allow_unregistered_dialect)
            if file.is_onnx:
                module = load_network(ctx, file)
            else:
                file.load_weights(ctx, self.arguments.weights)
                module, source = load_text(ctx, text, file)
            if not self._is_valid(module, source, file):
                return None
            with recording(self.remarks):
                self._locate(module, source, file)
                self._apply(module, ctx, options)
            if self.arguments.print_quantization_report:
                _print_notes(module)
            if not self._runs(module, ctx, source, file):
                return None
            self._write_weights(module, ctx)
            return self._emit(module)
        except MlirtError as error:
            self.diagnostics.append(diagnostic_of(error, file.name, source))
            if self.arguments.verbose:
                traceback.print_exc()
            return None

    def _take_remarks(self) -> None:
        """Let the remarks of a chunk be compared with its annotations, in place of being printed."""
        if self.remarks is not None and self.arguments.remarks:
            from mlirt.tools.remark_places import diagnostic_of_remark

            self.diagnostics += [diagnostic_of_remark(remark) for remark in self.remarks.remarks]
            self.remarks.remarks = []

    def _is_valid(self, module: ModuleOp, source: SourceMap | None, file: InputFile) -> bool:
        """Report every op that does not verify; uses before definitions only where all else is right."""
        errors: list[VerificationError] = list(verification_errors(module)) or list(dominance_errors(module))
        self.diagnostics += [diagnostic_of(error, file.name, source) for error in errors]
        return not errors

    def _locate(self, module: ModuleOp, source: SourceMap | None, file: InputFile) -> None:
        if self.remarks is not None:
            from mlirt.tools.remark_places import places_of

            self.remarks.locate = places_of(module, source) if source is not None else lambda op: file.name
            self.remarks.forget_ops()

    def _apply(self, module: ModuleOp, ctx: RtContext, options: PipelineOptions) -> None:
        arguments = self.arguments
        if arguments.passes:
            run_passes(module, ctx, arguments.passes, options)
        if _runs_phases(arguments):
            run_phases(module, ctx, arguments.first, arguments.to, options)

    def _runs(self, module: ModuleOp, ctx: RtContext, source: SourceMap | None, file: InputFile) -> bool:
        """Whether the functions of the module do what they say, where that was asked for."""
        if not self.arguments.run:
            return True
        if self.arguments.input_arrays or self.arguments.run_output or self.arguments.function:
            self.run_count += 1
            self._run_on_inputs(module, ctx)
            return True
        from mlirt.tools.run_functions import has_tests, run_functions

        if not has_tests(module):
            return True
        self.run_count += 1
        errors = list(run_functions(module, ctx, self.arguments.run))
        self.diagnostics += [diagnostic_of(error, file.name, source) for error in errors]
        return not errors

    def _run_on_inputs(self, module: ModuleOp, ctx: RtContext) -> None:
        from mlirt.tools.run_on_inputs import output_summary, run_on_inputs
        from mlirt.tools.tensor_files import outputs_file

        outputs = run_on_inputs(module, ctx, self.arguments, "" if _changes(self.arguments) else self.text)
        if self.arguments.run_output:
            write_file(self.arguments.run_output, [outputs_file(outputs, self.arguments.run_output)])
        else:
            print("\n".join(output_summary(outputs)), file=sys.stderr)

    def _write_weights(self, module: ModuleOp, ctx: RtContext) -> None:
        """Put the weights beside the output, where the next run looks for them, as far as they are known here."""
        output = self.arguments.output
        if (
            output in (None, "-")
            or is_special(output)
            or self.arguments.emit != "mlir"
            or self.arguments.split_input_file
        ):
            return
        from mlirt.dialects.weights_file import weights_in, write_weights

        if weights_in(module).keys() <= ctx.weights.keys():
            write_weights(module, ctx, Path(output).with_suffix(".safetensors"))

    def _emit(self, module: ModuleOp) -> str:
        if self.arguments.emit != "mlir":
            from mlirt.builder.device_choice import asking

            with asking(self.arguments.device, self.arguments.cpu):
                return kernel_text(module, self.arguments.emit)
        return module_text(module, generic=self.arguments.print_op_generic, debuginfo=self.arguments.print_debuginfo)

    def _machine(self) -> TargetMachine:
        """What kernels are chosen for, and which fast math is granted."""
        return replace(self._named_machine(), fast_math=read_rights(self.arguments.fast_math))

    def _named_machine(self) -> TargetMachine:
        """The processor that is named, else a device, else the usual machine."""
        arguments = self.arguments
        if not arguments.cpu:
            return TargetMachine.for_device(arguments.target, arguments.device)
        if arguments.target != "cpu":
            raise InvalidInputError(f"--cpu={arguments.cpu} is for --target=cpu, not {arguments.target}")
        from mlirt.builder.device_choice import asking
        from mlirt.builder.host import cpu_target

        with asking(arguments.device, arguments.cpu):
            return TargetMachine.of(cpu_target())

    def _pipeline_options(self) -> PipelineOptions:
        arguments = self.arguments
        for name in (*arguments.print_ir_before, *arguments.print_ir_after):
            registry.load(name)  # a misspelt name would print nothing
        if arguments.passes is not None:
            parse_pipeline(arguments.passes)
        pipeline = self._pipeline()
        dumps = IrDumps(
            frozenset(arguments.print_ir_before),
            frozenset(arguments.print_ir_after),
            arguments.print_ir_after_all,
            arguments.print_ir_after_change,
            arguments.print_debuginfo,
            arguments.print_op_generic,
        )
        return PipelineOptions(
            target=arguments.target,
            precision=arguments.precision,
            machine=self._machine(),
            verify_each=arguments.verify_each,
            instruments=[LevelWarnings(warn_on_standard_error), *([dumps] if dumps.is_wanted() else [])],
            dump_folder=Path(arguments.dump_phases) if arguments.dump_phases else None,
            dump_locations=arguments.print_debuginfo,
            pipeline=pipeline,
            pass_limit=arguments.pass_limit,
        )

    def _pipeline(self) -> Pipeline:
        """The pipeline of the phases, checked before anything is read."""
        arguments = self.arguments
        pipeline = Pipeline.parse(arguments.pipeline_edit)
        if pipeline.edits and not _runs_phases(arguments):
            raise InvalidInputError("--pipeline-edit changes the compiler's phases, and none run: add --to=PHASE")
        pipeline.check(arguments.target, arguments.precision, arguments.first, arguments.to)
        if arguments.dump_pass_pipeline:
            print(arguments.passes or "", file=sys.stderr, end="\n" if arguments.passes else "")
            machine = self._machine()
            between = (arguments.first, arguments.to, arguments.target, arguments.precision, machine)
            for phase, specs in pipeline.between(*between) if _runs_phases(arguments) else ():
                print(f"{phase.name}: {','.join(specs)}", file=sys.stderr)
        return pipeline


def _changes(arguments: argparse.Namespace) -> bool:
    return bool(arguments.passes) or _runs_phases(arguments)


def _runs_phases(arguments: argparse.Namespace) -> bool:
    return bool(arguments.to or arguments.first or arguments.dump_phases)


def _print_notes(module: ModuleOp) -> None:
    """A table on standard error: each layer around which the network quantises, and what became of it."""
    notes = notes_in(module)
    width = max(map(len, notes), default=0)
    for layer, note in notes.items():
        print(f"{layer:{width}}  {note}", file=sys.stderr)
    if not notes:
        print("no layer is quantised, or the phase quantization did not run (see --to)", file=sys.stderr)


def _print_times(options: PipelineOptions) -> None:
    """A table on standard error: CPU and wall milliseconds of each pass, in the order in which they ran."""
    total = sum(passed.cpu for passed in options.times)
    print(f"{'cpu ms':>10} {'wall ms':>10} {'':>6}  pass", file=sys.stderr)
    for passed in options.times:
        share = passed.cpu / (total or 1.0)
        print(f"{passed.cpu * 1e3:10.2f} {passed.wall * 1e3:10.2f} {share:6.1%}  {passed.pass_name}", file=sys.stderr)
    print(f"{total * 1e3:10.2f} {sum(p.wall for p in options.times) * 1e3:10.2f} {1:6.1%}  total", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
