"""`morello-run`: compile one function of a module, run it, and check or time it."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from morello_mlir.errors import CompileError, InputError, MorelloError

from . import _cli
from ._progress import measuring

PROGRAM = "morello-run"

_EPILOG = """\
An args file (npz) holds arg0, arg1, ...; an expect file holds ret0, ... for results, or argK for what memref argument K
must hold afterwards. bf16 as uint16 bits, i1 as uint8, index as int64, scalars as arrays of rank 0.

exit status: 0 right, 1 wrong result or a program that does not compile, 2 unusable input, 130 interrupted.
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Compile one function of an MLIR module for this machine, run it, and check or time it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("--version", action="version", version=_cli.version_line(PROGRAM))
    p.add_argument("file", metavar="FILE", help="the module: MLIR text or bytecode (- for stdin), or an ONNX model")
    p.add_argument("--entry", metavar="NAME", help="the function to run (default: the only public one)")
    p.add_argument(
        "--args", default="random", metavar="random|zeros|ones|FILE.npz", help="its arguments (default: random)"
    )
    p.add_argument("--expect", metavar="FILE.npz", help="compare the results with these")
    p.add_argument("--rtol", type=_tolerance, metavar="X", help="relative tolerance (default: by dtype)")
    p.add_argument("--atol", type=_tolerance, metavar="X", help="absolute tolerance (default: by dtype)")
    p.add_argument("--seed", type=_seed, default=0, metavar="N", help="of random arguments (default: 0)")
    p.add_argument(
        "--check", action="store_true", help="compare with the plain loops that upstream makes of the module"
    )
    p.add_argument("--bench", action="store_true", help="time the function, warm, in several rounds")
    p.add_argument("--profile", action="store_true", help="say where the time goes: goals, what upstream lowered, ...")
    p.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="how many threads the code may use (default: MORELLO_NUM_THREADS, else all cores)",
    )
    p.add_argument("--target", default="host", metavar="NAME", help="host, avx2, avx512, or a CPU by LLVM's name")
    p.add_argument(
        "--top-k", type=int, metavar="N", help="list the N cheapest schedules (--measure: choose among them)"
    )
    p.add_argument(
        "--measure", action="store_true", help="time the cheapest schedules on this machine and take the fastest"
    )
    p.add_argument("--no-morello", action="store_true", help="leave everything to upstream's passes")
    p.add_argument(
        "--emit", choices=("llvm", "asm", "obj", "mlir"), help="print the compiled code instead of running it"
    )
    p.add_argument("-o", dest="output", metavar="FILE", help="where --emit goes (default: standard output)")
    p.add_argument("--remarks", action="store_true", help="say which op was not lifted, and why")
    p.add_argument("--json", action="store_true", help="print one JSON object")
    return p


def _tolerance(text: str) -> float:
    """The value of --rtol or --atol: zero or more; anything else would make no difference acceptable, or be a slip."""
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from zero up")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from zero up")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit status. The work happens in a child process: a crash is an error like others."""
    return _cli.run_tool(PROGRAM, lambda: _main(argv))


def _main(argv: Sequence[str] | None) -> int:
    options = parser().parse_args(argv)
    return _cli.isolated(PROGRAM, options.file, lambda notebook: guarded(options, notebook))


def guarded(options: argparse.Namespace, notebook: _cli.Notebook) -> int:
    """Do the work. Raises MorelloError."""
    warnings.showwarning = _show_warning
    try:
        return _Run(options, notebook).run()
    except (MorelloError, BrokenPipeError):
        raise
    except MemoryError as error:
        raise CompileError("out of memory") from error
    except OSError as error:
        raise InputError(str(error)) from error


def _show_warning(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
    """Warnings of ours and of libraries in the tool's own style: where in our code they arose says nothing to users."""
    print(f"{PROGRAM}: warning: {message}", file=sys.stderr)


class _Run:
    """One run of the tool."""

    def __init__(self, options: argparse.Namespace, notebook: _cli.Notebook):
        self.options = options
        self.notebook = notebook
        self.report: dict[str, Any] = {}
        self.failures: list[str] = []
        self._input: tuple[Any, Mapping[int | str, Any]] | None = None

    def run(self) -> int:
        options = self.options
        if options.output is not None and not options.emit:
            raise InputError("-o says where --emit goes: give --emit too")
        if options.emit and (options.check or options.bench or options.expect or options.profile):
            raise InputError(
                "--emit prints the code instead of running it: --check, --expect, --bench and --profile need a run"
            )
        if options.emit == "obj":
            _cli.refuse_terminal("an object file", options.output)
        if options.no_morello and (options.measure or options.top_k is not None):
            asked = "--measure" if options.measure else "--top-k"
            raise InputError(f"--no-morello leaves no schedules to choose among: {asked} needs them")
        module = self._compile(optimize=False if options.no_morello else None)
        function = module._only()
        args = self._arguments(function.signature)
        program = function.program(tuple(args))
        for message in module.messages:
            if options.remarks or ": warning: " in message:
                print(message, file=sys.stderr)
        if options.emit:
            self._emit(module, args)
            return 0
        self._execute(function, program, args)
        if options.bench:
            self.report["bench"] = self._bench(program, args)
        if options.profile:
            self.notebook.note(f"the code of @{function.name}, while its cycles were counted,")
            self.report["profile"] = module.profile(*map(_copy, args))
        self._describe(module)
        self._print()
        return 1 if self.failures else 0

    def _compile(self, optimize: bool | None) -> Any:
        from morello_mlir.api import compile as compile_module

        options = self.options
        source, constants = self._source()
        with measuring(options.measure):
            return compile_module(
                source,
                entry=options.entry,
                constants=constants,
                target=options.target,
                threads=options.threads,
                optimize=optimize,
                top_k=options.top_k,
                measure=options.measure,
            )

    def _source(self) -> tuple[Any, Mapping[int | str, Any]]:
        """What to compile, and the weights of a model, which are constants."""
        from pathlib import Path

        from morello_mlir.runtime.context import is_onnx

        from . import _input

        if self._input is None:
            file = self.options.file
            if is_onnx(file):
                self.notebook.note("the importer of ONNX")
                self._input = _input.import_onnx(file)
            else:
                self._input = (_cli.read_bytes("-") if file == "-" else Path(file)), {}
        return self._input

    def _arguments(self, signature: Any) -> list[Any]:
        from morello_mlir.runtime import make_arguments

        how = self.options.args
        if how in ("random", "zeros", "ones"):
            return make_arguments.make(signature, how, self.options.seed)
        return make_arguments.from_file(signature, how)

    def _emit(self, module: Any, args: list[Any]) -> None:
        code = module.emit(self.options.emit, *args)
        _cli.write_bytes(self.options.output, code if isinstance(code, bytes) else code.encode())

    # ---- running and comparing -------------------------------------------------------------------------------------

    def _execute(self, function: Any, program: Any, args: list[Any]) -> None:
        """Run once, and compare as asked. What the program writes to its arguments stays in copies."""
        expected = self._expected(function.signature)
        self.notebook.note(f"the code of @{function.name}")
        got = _outcome(function.signature, program, args)
        if expected is not None:
            self.report["expect"] = self._compare(got, expected, "expected", scale=False)
        if self.options.check:
            self.notebook.note("the compiler (to plain loops)")
            oracle = self._compile(optimize=False)._only()
            reference = oracle.program(tuple(args))
            self.notebook.note(f"the code of @{function.name} (plain loops)")
            self.report["check"] = self._compare(
                got, _outcome(function.signature, reference, args), "oracle", scale=True
            )

    def _expected(self, signature: Any) -> dict[str, Any] | None:
        if not self.options.expect:
            return None
        from morello_mlir.runtime import make_arguments

        expected = make_arguments.load(self.options.expect, ("ret", "arg"))
        names = {f"ret{i}" for i in range(signature.result_count)} | {f"arg{i}" for i in range(len(signature.inputs))}
        for name in expected:
            if name not in names:
                raise InputError(
                    f"{self.options.expect}: array '{name}': @{signature.name} has {signature.result_count} results "
                    f"and {len(signature.inputs)} arguments"
                )
        if not expected:
            raise InputError(f"{self.options.expect}: no arrays to compare with")
        return expected

    def _compare(self, got: dict[str, Any], want: dict[str, Any], what: str, *, scale: bool) -> dict[str, Any]:
        from morello_mlir.runtime.compare import compare

        found = []
        for name in want:
            each = compare(got[name], want[name], name, self.options.rtol, self.options.atol, scale=scale)
            found.append(each)
            if not each.ok:
                self.failures.append(f"{what}: {each.message}")
        return {
            "ok": all(each.ok for each in found),
            "max_abs": max((each.max_abs for each in found), default=0.0),
            "max_rel": max((each.max_rel for each in found), default=0.0),
        }

    def _bench(self, program: Any, args: list[Any]) -> dict[str, Any]:
        from morello_mlir.runtime.bench import measure

        self.notebook.note(f"the code of @{program.signature.name}, while it was timed,")
        copies = [_copy(a) for a in args]
        return measure(lambda: program.call(*copies), program.build.flops)

    # ---- reporting -------------------------------------------------------------------------------------------------

    def _describe(self, module: Any) -> None:
        self.report |= {"specs": module.specs, "times": module.times, "lifted": module.lifted, "left": module.left}

    def _print(self) -> None:
        for failure in self.failures:
            print(f"{PROGRAM}: wrong result: {failure}", file=sys.stderr)
        if self.options.json:
            print(json.dumps(self.report, indent=2, default=asdict))
            return
        times = self.report["times"]
        print(f"lifted {self.report['lifted']} linalg ops, left {self.report['left']} to upstream; "
              + ", ".join(f"{key[:-2]} {1e3 * value:.0f} ms" for key, value in times.items()))  # fmt: skip
        for spec in self.report["specs"]:
            print(f"{spec['spec']}: cost {spec['cost']} ({spec['source']}{_times(spec)})")
            for number, other in enumerate(spec["alternatives"] or (), 1):
                print(f"schedule {number}: cost {other['cost']}", textwrap.indent(other["schedule"], "    "), sep="\n")
        for key in ("expect", "check"):
            if key in self.report:
                each = self.report[key]
                verdict = "right" if each["ok"] else "WRONG"
                largest = f"{each['max_abs']:.3g}, and {each['max_rel']:.3g} relative to a single element"
                print(f"{key}: {verdict}, largest difference {largest}")
        if "bench" in self.report:
            bench = self.report["bench"]
            rate = f", {bench['gflops']:.2f} GFLOP/s" if bench["gflops"] is not None else ""
            print(f"bench: median {1e6 * bench['median_s']:.2f} us, min {1e6 * bench['min_s']:.2f} us{rate}")
        if "profile" in self.report:
            print(f"profile: {self.report['profile']}")


def _times(spec: dict[str, Any]) -> str:
    """What was measured of a Spec, if anything was."""
    if spec["measured_s"] is None:
        return ""
    if spec["measured_s"] == spec["model_s"]:
        return f" {1e6 * spec['measured_s']:.2f} us, the model's choice"
    return f" {1e6 * spec['measured_s']:.2f} us, the model's choice {1e6 * spec['model_s']:.2f} us"


def _copy(value: Any) -> Any:
    return value.copy() if hasattr(value, "copy") else value


def _outcome(signature: Any, program: Any, args: list[Any]) -> dict[str, Any]:
    """Run on copies of the arguments: `retK` for every result, `argK` for what every argument holds afterwards."""
    import numpy as np

    copies = [_copy(a) for a in args]
    returned = program.call(*copies)
    results = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    found = {f"ret{i}": np.asarray(value) for i, value in enumerate(results)}
    return found | {
        f"arg{i}": np.asarray(value).view(p.element.dtype) if p.shape is not None else np.asarray(value)
        for i, (value, p) in enumerate(zip(copies, signature.inputs, strict=True))
    }


if __name__ == "__main__":
    sys.exit(main())
