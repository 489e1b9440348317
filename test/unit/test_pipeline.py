"""Pipelines in which our passes and upstream's mix."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from mlir import ir
from pass_support import registered

from morello_mlir.errors import PassError, PipelineError
from morello_mlir.passes.instrument import Instrument, PrintAfterAll, Progress, Timing
from morello_mlir.passes.pipeline import Pipeline, run_pipeline
from morello_mlir.passes.pipeline_text import Element, parse_text

SOURCE = """
func.func @f(%m: memref<4xf32>, %x: f32) {
  linalg.fill ins(%x : f32) outs(%m : memref<4xf32>)
  return
}
func.func @g() {
  return
}
"""


@pytest.fixture(autouse=True)
def _passes() -> Iterator[None]:
    with registered():
        yield


@pytest.fixture
def module() -> Iterator[ir.Module]:
    with ir.Context() as context, ir.Location.unknown():
        # Upstream's IR printing insists on it.
        context.enable_multithreading(False)
        yield ir.Module.parse(SOURCE)


def names(module: ir.Module) -> list[str]:
    return [ir.StringAttr(op.attributes["sym_name"]).value for op in module.body.operations]


def test_ours_and_upstreams_mix_at_any_nesting(module: ir.Module) -> None:
    reported = run_pipeline(
        module,
        "builtin.module(test-note,func.func(convert-linalg-to-loops,test-on-function,cse,test-note{count=2}),"
        "convert-scf-to-cf,test-note{loud})",
    )
    assert [d.message for d in reported] == [
        "test-note",
        "test-note{count=2}",
        "test-note{count=2}",
        "test-note{loud=true}",
    ]
    assert [(d.place.file, d.place.line) for d in reported][1:3] == [("-", 2), ("-", 6)]
    assert names(module) == ["f_x", "g_x"]
    assert "cf.br" in str(module)
    assert "linalg" not in str(module)


def test_a_nest_skips_other_ops(module: ir.Module) -> None:
    assert run_pipeline(module, "builtin.module(builtin.module(test-note),func.func(linalg.fill(test-note)))") == (
        *run_pipeline(module, "func.func(linalg.fill(test-note))"),
    )


def test_bare_elements_run_on_the_anchor(module: ir.Module) -> None:
    function = module.body.operations[0]
    run_pipeline(function, "test-on-function,canonicalize")
    run_pipeline(function, "func.func(test-on-function)")
    assert names(module) == ["f_x_x", "g"]


def test_named_pipelines_expand(module: ir.Module) -> None:
    pipeline = Pipeline.parse("builtin.module(test-twice{count=5},symbol-dce)")
    assert str(pipeline) == (
        "builtin.module(test-note{count=5},func.func(test-on-function{suffix=_p},canonicalize),cse,symbol-dce)"
    )
    pipeline.run(module)
    assert names(module) == ["f_p", "g_p"]


def test_a_pipeline_runs_on_many_modules() -> None:
    pipeline = Pipeline.parse("func.func(test-on-function)")
    for _ in range(2):
        with ir.Context():
            other = ir.Module.parse(SOURCE)
            pipeline.run(other)
            assert names(other) == ["f_x", "g_x"]


def test_implicit_nesting_finds_the_anchor(module: ir.Module) -> None:
    pipeline = Pipeline(parse_text("test-on-function,lower-vector-mask,cse"), implicit_nesting=True)
    assert str(pipeline) == "builtin.module(func.func(test-on-function),func.func(lower-vector-mask),cse)"
    pipeline.run(module)
    assert names(module) == ["f_x", "g_x"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no-such", "unknown pass 'no-such'"),
        ("func.func(cse,no-such{a=1})", "unknown pass 'no-such'"),
        ("func.func(scf.for(test-note,no-such))", "unknown pass 'no-such'"),
        ("cse{x=1}", "pass 'cse' has no option 'x'"),
        ("canonicalize{top-down=maybe}", "pass 'canonicalize': malformed options 'top-down=maybe'"),
        ("test-note{x=1}", "pass 'test-note' has no option 'x'"),
        ("test-twice{x=1}", "pipeline 'test-twice' has no option 'x'"),
        ("test-on-function", "pass 'test-on-function' runs on 'func.func', not on 'builtin.module': nest it in"),
        ("lower-vector-mask", "pass 'lower-vector-mask' runs on 'func.func', not on 'builtin.module': nest it in"),
        ("func.func(convert-func-to-llvm)", "pass 'convert-func-to-llvm' runs on 'builtin.module', not on 'func.func'"),
        ("func.func(test-twice)", "pipeline 'test-twice' runs on 'builtin.module', not on 'func.func'"),
        ("any(test-note)", "passes of ours cannot be nested in 'any(...)': name the op"),
        ("test-endless", "pipeline 'test-endless' expands without end"),
        ("cse(canonicalize)", "'cse' is not the name of an op to nest passes on"),
    ],
)
def test_bad_pipelines_are_refused_before_they_run(text: str, reason: str) -> None:
    with pytest.raises(PipelineError) as caught:
        Pipeline.parse(f"builtin.module({text})")
    assert caught.value.reason.startswith(reason)
    assert caught.value.offset is not None


def test_the_offset_is_that_of_the_element_at_fault() -> None:
    text = "builtin.module(func.func(canonicalize),test-note{x=1})"
    with pytest.raises(PipelineError) as caught:
        Pipeline.parse(text)
    assert caught.value.offset == text.index("test-note")
    assert f"(at offset {caught.value.offset} of the pipeline)" in str(caught.value)


def test_a_pipeline_refuses_other_ops(module: ir.Module) -> None:
    with pytest.raises(PipelineError, match=r"runs on 'builtin\.module', not on 'func\.func'"):
        Pipeline.parse("builtin.module(cse)").run(module.body.operations[0])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("fail", "-:2:1: error: 'func.func' op has nothing to tile\n-:2:1: note: here it is"),
        (
            "emit",
            "-:2:1: error: 'func.func' op is the first problem\n-:2:1: error: 'func.func' op is the second problem",
        ),
        ("spec", "-:2:1: error: 'func.func' op unknown memory 'L9'"),
        ("mlir", "-:1:1: error: "),
        ("invalid", "-:2:1: error: 'func.func' op requires attribute 'sym_name'"),
    ],
)
def test_failing_passes_say_where(module: ir.Module, how: str, message: str) -> None:
    with pytest.raises(PassError) as caught:
        run_pipeline(module, f"test-note,func.func(test-fail{{how={how}}})")
    error = caught.value
    assert str(error).startswith(message)
    assert error.pass_name == "test-fail"
    assert "\n".join(error.diagnostics) == str(error)
    # What was reported before the failure is there as well.
    assert error.reported[0].severity == "remark"


def test_failing_upstream_passes_say_where(module: ir.Module) -> None:
    with pytest.raises(PassError) as caught:
        run_pipeline(module, "func.func(linalg.fill(cse))")
    assert "-:3:3: error: 'linalg.fill' op trying to schedule a pass" in str(caught.value)


def test_bugs_in_passes_are_not_hidden(module: ir.Module) -> None:
    with pytest.raises(ZeroDivisionError):
        run_pipeline(module, "func.func(test-fail{how=bug})")


def test_verification_can_be_switched_off(module: ir.Module) -> None:
    run_pipeline(module, "func.func(test-fail{how=invalid})", verify=False)
    with pytest.raises(ir.MLIRError):
        module.operation.verify()


def test_what_a_pass_makes_of_the_dialect_is_verified(module: ir.Module) -> None:
    with pytest.raises(PassError, match="attribute 'function': unknown function 'Matmull'"):
        run_pipeline(_with_bad_spec(module), "test-note")


def _with_bad_spec(module: ir.Module) -> ir.Module:
    from morello_mlir import dialect

    dialect.load(module.context)
    return ir.Module.parse("""func.func @s(%a: memref<f32>) {
      "morello.spec"(%a, %a, %a) {function = "Matmull", dims = array<i64>, operands = []}
        : (memref<f32>, memref<f32>, memref<f32>) -> ()
      return
    }""")


def test_a_context_that_met_the_dialect_unloaded_is_refused() -> None:
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse('"morello.spec"() : () -> ()')
        with pytest.raises(PipelineError, match="parsed before the morello dialect was loaded"):
            run_pipeline(module, "test-note")


# ---- instruments --------------------------------------------------------------------------------------------------


class Log(Instrument):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def before(self, element: Element, op: Any) -> None:
        self.lines.append(f"+{element.name}")

    def after(self, element: Element, op: Any, failed: bool) -> None:
        self.lines.append(f"{'!' if failed else '-'}{element.name}")


def test_instruments_see_every_pass(module: ir.Module) -> None:
    log = Log()
    pipeline = Pipeline.parse("cse,func.func(canonicalize,cse),func.func(test-on-function),symbol-dce")
    pipeline.run(module, instruments=(log,))
    assert " ".join(log.lines) == (
        "+cse -cse +func.func +canonicalize -canonicalize +cse -cse -func.func "
        "+func.func +test-on-function -test-on-function +test-on-function -test-on-function -func.func "
        "+symbol-dce -symbol-dce"
    )


def test_instruments_see_failures(module: ir.Module) -> None:
    log = Log()
    with pytest.raises(PassError):
        Pipeline.parse("cse,func.func(test-fail)").run(module, instruments=(log,))
    assert log.lines[-4:] == ["+func.func", "+test-fail", "!test-fail", "!func.func"]


def test_progress_names_the_running_pass(module: ir.Module) -> None:
    notes: list[str] = []
    Pipeline.parse("cse,func.func(test-note)").run(module, instruments=(Progress(notes.append),))
    assert notes == ["cse", "", "test-note", "", "test-note", ""]


def test_our_passes_are_printed_like_upstreams(module: ir.Module) -> None:
    stream = io.StringIO()
    Pipeline.parse("func.func(test-on-function)").run(module, instruments=(PrintAfterAll(stream),))
    assert stream.getvalue().startswith(
        "// -----// IR Dump After OnFunction (test-on-function) //----- //\nfunc.func @f_x("
    )
    assert stream.getvalue().count("IR Dump") == 2


def test_timing_is_a_tree(module: ir.Module) -> None:
    timing = Timing()
    with timing.phase("Parser"):
        pass
    Pipeline.parse("cse,func.func(canonicalize,cse),test-note").run(module, instruments=(timing,))
    lines = timing.report().splitlines()
    assert [line.split(")", 1)[1] for line in lines if ")" in line] == [
        "  Parser",
        "  cse",
        "  'func.func' Pipeline",
        "    canonicalize",
        "    cse",
        "  test-note",
        "  Rest",
        "  Total",
    ]
    assert all(timer.seconds >= 0 for timer in timing.root.children.values())
