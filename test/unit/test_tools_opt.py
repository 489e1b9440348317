"""`morello-opt` as a process: exit codes, signals, pipes. Its flags are tested in test/lit/opt."""

from __future__ import annotations

import faulthandler
import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from morello_mlir.tools import _cli, opt
from morello_mlir.tools._opt_flags import parse_flags

COMMAND = [sys.executable, "-m", "morello_mlir.tools.opt"]
SOURCE = "func.func @f() {\n  return\n}\n"


def run(*arguments: str, text: str | None = SOURCE) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], input=text, capture_output=True, text=True, timeout=100)


def test_success_prints_the_module_only() -> None:
    done = run("--canonicalize")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "module {\n  func.func @f() {\n    return\n  }\n}\n"


def test_the_output_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "out.mlir"
    target.write_text("before")
    assert run("-o", str(target), "--no-such-pass").returncode == 1
    assert target.read_text() == "before"
    assert run("-o", str(target)).returncode == 0
    assert target.read_text().startswith("module {")
    assert list(tmp_path.iterdir()) == [target]
    assert stat.S_IMODE(target.stat().st_mode) & 0o400


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "out.mlir", tmp_path / "link"
    link.symlink_to(target)
    _cli.write_text(str(link), "text")
    assert link.is_symlink()
    assert target.read_text() == "text"


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    done = run(str(tmp_path / "no.mlir"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{tmp_path}/no.mlir:0:0: error: cannot open input file: No such file or directory\n"


def test_names_that_are_not_text_do_not_matter(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.mlir")
    done = run(odd)
    assert done.stderr == f"{tmp_path}/\\xff.mlir:0:0: error: cannot open input file: No such file or directory\n"
    Path(odd).write_text(SOURCE)
    assert "\\\\xff.mlir" in run(odd, "--mlir-print-debuginfo").stdout
    assert run(odd, os.fsdecode(b"--pass-pipeline=builtin.module(\xff)")).returncode == 1


def test_bytecode_is_read_too(tmp_path: Path) -> None:
    from mlir import ir

    good, bad = tmp_path / "good.mlirbc", tmp_path / "bad.mlirbc"
    with ir.Context(), good.open("wb") as file:
        ir.Module.parse(SOURCE).operation.write_bytecode(file)
    bad.write_bytes(good.read_bytes()[:40])
    done = run(str(good), "--split-input-file", "--canonicalize")
    assert (done.returncode, done.stdout, done.stderr) == (0, run().stdout, "")
    done = run(str(bad))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{bad}:0:0: error: " in done.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupting_ends_it(number: int, status: int) -> None:
    # It waits for its input.
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        _wait_until(lambda: _children(process.pid) != [])
        process.send_signal(number)
        assert process.wait(timeout=60) == status
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.skipif(sys.platform != "linux", reason="relies on the Linux kernel")
def test_the_child_does_not_outlive_a_killed_parent() -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE) as process:
        _wait_until(lambda: _children(process.pid) != [])
        (child,) = _children(process.pid)
        time.sleep(0.2)
        process.kill()
        _wait_until(lambda: not _alive(child))


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    source = tmp_path / "big.mlir"
    source.write_text("".join(f"func.func @f{i}() {{ return }}\n" for i in range(20000)))
    with subprocess.Popen([*COMMAND, str(source)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize("module", ["opt", "run", "main"])
@pytest.mark.parametrize("redirection", ["0<&-", ">&-", "2>&-", "0<&- >&- 2>&-", ">/dev/full"])
def test_closed_and_full_streams(tmp_path: Path, module: str, redirection: str) -> None:
    """A stream that nobody gave us swallows what is written to it; one that cannot be written is an error."""
    if redirection == ">/dev/full" and not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    source = tmp_path / "a.mlir"
    source.write_text(SOURCE)
    tool = f"{sys.executable} -m morello_mlir.tools.{module} {'explain' if module == 'main' else ''} {source}"
    done = subprocess.run(["sh", "-c", f"{tool} {redirection}"], capture_output=True, text=True, timeout=100)
    full = redirection == ">/dev/full"
    assert done.returncode == (0 if not full else 1 if module == "opt" else 2), done.stderr
    assert "Traceback" not in done.stderr
    assert ("No space left" in done.stderr) == full


@pytest.mark.parametrize("shape", ["0x1x1", "00x1x1", "1x2", "1x1x99999999999999999999", "99999999x99999999x1"])
def test_shapes_that_cannot_be_timed(shape: str) -> None:
    command = [sys.executable, "-m", "morello_mlir.tools.main", "bench", shape]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2
    assert f"the shape '{shape}'" in done.stderr


@pytest.mark.parametrize("wanted", ["Haswell", None])
def test_bench_names_the_blas(wanted: str | None) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    if wanted:
        environment["OPENBLAS_CORETYPE"] = wanted
    command = [sys.executable, "-m", "morello_mlir.tools.main", "bench", "4x4x4", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert done.returncode == 0
    assert "numpy's BLAS: " in done.stderr
    assert (", as OPENBLAS_CORETYPE=Haswell has it" in done.stderr) == bool(wanted)


def test_crashes_are_named_with_what_was_running(capfd: pytest.CaptureFixture[str]) -> None:
    def crash(notebook: _cli.Notebook) -> int:
        notebook.note("pass 'x'")
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)
        return 0

    assert _forked(crash) == 1
    assert capfd.readouterr().err.endswith("a.mlir:0:0: error: pass 'x' crashed (SIGSEGV)\n")


def test_bugs_in_the_child_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    def bug(notebook: _cli.Notebook) -> int:
        raise ZeroDivisionError("a bug")

    assert _forked(bug) == 1
    assert "ZeroDivisionError: a bug" in capfd.readouterr().err


def test_the_status_of_the_child_is_handed_on() -> None:
    assert _forked(lambda notebook: 7) == 7


def _forked(work: Callable[[_cli.Notebook], int]) -> int:
    # The tools fork before anything starts threads; pytest may have some, which Python warns of since 3.12.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return _cli.isolated("tool", "a.mlir", work)


def test_notes_are_short_and_replaced() -> None:
    notebook = _cli.Notebook()
    notebook.note("x" * 5000)
    assert set(notebook.read()) == {"x"}
    notebook.note("short")
    assert notebook.read() == "short"
    notebook.note("")
    assert notebook.read() == ""


def test_errors_without_a_place_get_the_name_of_the_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["a", "b"]) == 1
    assert capsys.readouterr().err == "morello-opt: error: one input file is expected, not 2: a b\n"


def test_pass_flags_keep_their_order() -> None:
    flags = parse_flags(["--b=x=1 y=2", "file", "-a", "-o", "out", "--c="])
    assert (flags.pipeline, flags.from_flags) == ("b{x=1 y=2},a,c{}", True)
    assert (flags.input, flags.output) == ("file", "out")


def test_after_a_double_dash_come_files() -> None:
    assert parse_flags(["--", "--odd-name"]).input == "--odd-name"


def test_bool_flags_take_values() -> None:
    assert parse_flags(["--verify-each=false"]).verify_each is False
    assert parse_flags(["-remarks=1"]).remarks is True
