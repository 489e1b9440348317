"""Diagnostics as values."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mlir import ir

from morello_mlir import diagnostics
from morello_mlir.diagnostics import ERROR, NOTE, REMARK, Diagnostic, Place, capture, emit, place_of


@pytest.fixture(autouse=True)
def context() -> Iterator[ir.Context]:
    with ir.Context() as made:
        yield made


def test_they_print_in_mlirs_style() -> None:
    note = Diagnostic(NOTE, "there", Place("b.mlir", 3, 4))
    assert str(Diagnostic(ERROR, "here", Place("a.mlir", 1, 2), (note,))) == (
        "a.mlir:1:2: error: here\nb.mlir:3:4: note: there"
    )
    assert str(Diagnostic(ERROR, "somewhere")) == "<unknown>:0: error: somewhere"


def test_the_place_is_the_first_file_position_in_a_location() -> None:
    here, there = ir.Location.file("a", 1, 2), ir.Location.file("b", 3, 4)
    unknown = ir.Location.unknown()
    assert place_of(here) == Place("a", 1, 2)
    assert place_of(unknown) == Place()
    assert place_of(ir.Location.name("x", here)) == Place("a", 1, 2)
    assert place_of(ir.Location.name("x")) == Place()
    assert place_of(ir.Location.callsite(here, [there])) == Place("a", 1, 2)
    assert place_of(ir.Location.callsite(unknown, [there])) == Place("b", 3, 4)
    assert place_of(ir.Location.fused([unknown, ir.Location.name("x", there)])) == Place("b", 3, 4)


def test_mlirs_errors_and_ours_are_collected_in_order(context: ir.Context) -> None:
    with capture(context) as sink:
        emit(REMARK, "first")
        with pytest.raises(ir.MLIRError):
            ir.Module.parse("func.func @f() -> i32 { return }")
        emit(ERROR, "last", ir.Location.file("a", 1, 2))
    assert [d.severity for d in sink.diagnostics] == [REMARK, ERROR, ERROR]
    assert sink.errors == 2
    middle = sink.diagnostics[1]
    assert middle.message.startswith("'func.return' op has 0 operands")
    assert middle.place == Place("-", 1, 25)
    assert middle.notes[0].message.startswith("see current operation")


def test_the_inner_capture_has_precedence(context: ir.Context) -> None:
    with capture(context) as outer:
        with capture(context) as inner:
            emit(REMARK, "inner")
            ir.Location.unknown().emit_error("inner too")
        emit(REMARK, "outer")
    assert [d.message for d in inner.diagnostics] == ["inner", "inner too"]
    assert [d.message for d in outer.diagnostics] == ["outer"]


def test_the_context_is_left_as_it_was(context: ir.Context) -> None:
    before = context.emit_error_diagnostics
    with pytest.raises(KeyError), capture(context):
        raise KeyError
    assert context.emit_error_diagnostics == before
    assert not diagnostics.collecting()
    with pytest.raises(ir.MLIRError, match="has 0 operands"):
        ir.Module.parse("func.func @f() -> i32 { return }")


def test_without_a_capture_they_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    emit(ERROR, "lost", ir.Location.file("a", 1, 2))
    assert capsys.readouterr().err == "a:1:2: error: lost\n"
