"""`morello-run` as people call it: exit codes, messages, files, JSON."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from morello_mlir.errors import InputError
from morello_mlir.runtime import make_arguments
from morello_mlir.runtime.compare import compare
from morello_mlir.runtime.elements import element_of
from morello_mlir.runtime.signature import Parameter, Signature, row_major_strides

MATMUL = """
func.func @matmul(%a: tensor<4x6xf32>, %b: tensor<6x3xf32>, %c: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x3xf32>) outs(%c : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
"""


def run(*arguments, **options):
    """Run the tool on upstream's passes alone (what ours do is tested elsewhere); the finished process."""
    command = [sys.executable, "-m", "morello_mlir.tools.run", "--no-morello", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)
    assert "Traceback" not in done.stderr + done.stdout
    return done


@pytest.fixture
def matmul(tmp_path):
    """A module, its arguments and results on disk."""
    random = np.random.default_rng(3)
    a, b, c = (random.uniform(-1, 1, s).astype(np.float32) for s in ((4, 6), (6, 3), (4, 3)))
    (tmp_path / "m.mlir").write_text(MATMUL)
    np.savez(tmp_path / "args.npz", arg0=a, arg1=b, arg2=c)
    np.savez(tmp_path / "right.npz", ret0=a @ b + c)
    np.savez(tmp_path / "wrong.npz", ret0=a @ b)
    return tmp_path


def test_right_and_wrong_results(matmul):
    files = (matmul / "m.mlir", "--args", matmul / "args.npz", "--expect")
    assert run(*files, matmul / "right.npz").returncode == 0
    wrong = run(*files, matmul / "wrong.npz")
    assert wrong.returncode == 1
    assert "wrong result: expected: ret0[0, 0]: got" in wrong.stderr
    assert run(*files, matmul / "wrong.npz", "--atol", 10).returncode == 0


def test_json(matmul):
    done = run(matmul / "m.mlir", "--check", "--bench", "--json", "--seed", 4)
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["check"]["ok"]
    assert report["check"].keys() == {"ok", "max_abs", "max_rel"}
    assert report["times"].keys() == {"parse_s", "lift_s", "search_s", "apply_s", "llvm_s"}
    assert (report["lifted"], report["left"], report["specs"]) == (0, 1, [])
    assert report["bench"].keys() == {"median_s", "min_s", "rounds", "gflops"}
    assert report["bench"]["gflops"] == pytest.approx(2 * 4 * 6 * 3 / report["bench"]["median_s"] / 1e9)


def test_emit(matmul):
    assert "linalg.matmul" in run(matmul / "m.mlir", "--emit", "mlir").stdout
    assert run(matmul / "m.mlir", "--emit", "obj", "-o", matmul / "m.o").returncode == 0
    assert (matmul / "m.o").read_bytes()[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("tool", "flags", "status", "magic"),
    [("run", ("--no-morello", "--emit", "obj"), 2, b"\x7fELF"), ("opt", ("--emit-bytecode",), 1, b"ML\xefR")],
)
def test_what_is_no_text_does_not_go_to_a_terminal(matmul, tool, flags, status, magic):
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", f"morello_mlir.tools.{tool}", *flags, matmul / "m.mlir"]
    try:
        done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == status
    assert "name a file with -o" in done.stderr
    piped = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert piped.stdout[:4] == magic


def test_unusable_input(matmul):
    (matmul / "bad.npz").write_text("not a zip")
    (matmul / "short.npz").write_bytes((matmul / "args.npz").read_bytes()[:200])
    np.savez(matmul / "gap.npz", arg0=np.zeros((4, 6), np.float32), arg2=np.zeros((4, 3), np.float32))
    np.savez(matmul / "extra.npz", **dict(np.load(matmul / "args.npz")), arg3=np.zeros(1))
    np.savez(matmul / "names.npz", x=np.zeros(1))
    np.savez(matmul / "objects.npz", arg0=np.array([{}], dtype=object))
    np.savez(matmul / "ret1.npz", ret1=np.zeros(1, np.float32))
    np.save(matmul / "one.npy", np.zeros(1))
    file = matmul / "m.mlir"
    for arguments, message in [
        ((matmul / "nothing.mlir",), "cannot read the module: No such file"),
        ((file, "--entry", "f"), "no function @f"),
        ((file, "--args", matmul / "bad.npz"), "not an npz archive"),
        ((file, "--args", matmul / "short.npz"), "cannot read it as an npz archive"),
        ((file, "--args", matmul / "nothing.npz"), "no such file"),
        ((file, "--args", matmul / "gap.npz"), "no array 'arg1' (6x3 f32)"),
        ((file, "--args", matmul / "extra.npz"), "'arg3' is too much"),
        ((file, "--args", matmul / "names.npz"), "array 'x' is not one of"),
        ((file, "--args", matmul / "objects.npz"), "cannot read array 'arg0'"),
        ((file, "--args", matmul / "one.npy"), "not an npz archive"),
        ((file, "--expect", matmul / "ret1.npz"), "array 'ret1'"),
        ((file, "-o", matmul / "x"), "-o says where --emit goes"),
        ((file, "--threads", "0"), "positive integer"),
    ]:
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (2, ""), (arguments, done.stderr)
        assert message in done.stderr


def test_bad_programs(tmp_path):
    for name, text, message in [
        ("syntax", "func.func @f(", "syntax.mlir:1:"),
        ("verify", "func.func @f(%x: f32) -> f32 { return }", "verify.mlir:1:"),
        (
            "foreign",
            'func.func @f() { "foo.bar"() : () -> () return }',
            "foreign.mlir:1:18: error: 'foo.bar' op cannot",
        ),
        ("symbol", "func.func private @g()\nfunc.func @f() { call @g() : () -> () return }", "'g', which no library"),
    ]:
        path = tmp_path / f"{name}.mlir"
        path.write_text(text)
        done = run(path)
        assert done.returncode == 1, (name, done.stderr)
        assert message in done.stderr, name


def test_a_crash_is_an_error(tmp_path):
    path = tmp_path / "null.mlir"
    path.write_text("""
      func.func @f() -> i64 {
        %zero = llvm.mlir.zero : !llvm.ptr
        %v = llvm.load volatile %zero : !llvm.ptr -> i64
        return %v : i64
      }""")
    done = run(path)
    assert done.returncode == 1
    assert "null.mlir:0:0: error: the code of @f crashed (SIGSEGV)" in done.stderr


def test_interrupt(tmp_path):
    path = tmp_path / "forever.mlir"
    path.write_text("""
      func.func @f(%m: memref<i64>) {
        %true = arith.constant true
        %one = arith.constant 1 : i64
        scf.while : () -> () {
          scf.condition(%true)
        } do {
          memref.store %one, %m[] : memref<i64>
          scf.yield
        }
        return
      }""")
    command = [sys.executable, "-m", "morello_mlir.tools.run", "--no-morello", str(path)]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    # To the group, as a terminal does.
    os.killpg(process.pid, signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_memref_arguments_are_compared(tmp_path):
    (tmp_path / "m.mlir").write_text("""
      func.func @f(%x: memref<3xbf16>, %m: memref<2xi1>) {
        %c1 = arith.constant 1 : index
        %v = memref.load %x[%c1] : memref<3xbf16>
        %c0 = arith.constant 0 : index
        memref.store %v, %x[%c0] : memref<3xbf16>
        %t = arith.constant true
        memref.store %t, %m[%c1] : memref<2xi1>
        return
      }""")
    np.savez(tmp_path / "args.npz", arg0=np.array([1, 2, 3], np.uint16), arg1=np.array([1, 0], np.uint8))
    np.savez(tmp_path / "after.npz", arg0=np.array([2, 2, 3], np.uint16), arg1=np.array([1, 1], np.uint8))
    files = (tmp_path / "m.mlir", "--args", tmp_path / "args.npz", "--expect")
    assert run(*files, tmp_path / "after.npz").returncode == 0
    np.savez(tmp_path / "before.npz", arg1=np.array([1, 0], np.uint8))
    done = run(*files, tmp_path / "before.npz")
    assert done.returncode == 1
    assert "arg1[1]" in done.stderr


def test_remarks(matmul):
    done = run(matmul / "m.mlir", "--remarks")
    assert done.returncode == 0


# ---- the parts, without a process ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("got", "want", "ok"),
    [
        ([1.0, np.nan], [1.0, np.nan], True),
        ([np.inf, -np.inf], [np.inf, -np.inf], True),
        ([np.inf], [1e30], False),
        ([1e30], [np.inf], False),
        ([np.nan], [0.0], False),
        ([0.0], [np.nan], False),
        ([1.0 + 1e-5], [1.0], True),
        ([1.01], [1.0], False),
        ([-np.inf], [np.inf], False),
        ([], [], True),
    ],
)
def test_closeness(got, want, ok):
    outcome = compare(np.array(got, np.float32), np.array(want, np.float32), "x")
    assert outcome.ok is ok
    assert bool(outcome.message) is not ok
    assert np.isfinite(outcome.max_abs)
    assert np.isfinite(outcome.max_rel)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--seed", "-1"), "argument --seed: '-1' is not a number from zero up"),
        (("--rtol", "nan"), "argument --rtol: 'nan' is not a number from zero up"),
        (("--atol", "-1"), "argument --atol: '-1' is not a number from zero up"),
        (("--emit", "asm", "--check"), "need a run"),
        (("--measure",), "--no-morello leaves no schedules to choose among: --measure needs them"),
        (("--top-k", "2"), "--no-morello leaves no schedules to choose among: --top-k needs them"),
    ],
)
def test_flags_that_make_no_sense(matmul, flags, message):
    done = run(matmul / "m.mlir", *flags)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_module_from_stdin(matmul):
    done = run("-", "--check", input=MATMUL)
    assert done.returncode == 0
    assert "check: right" in done.stdout
    bad = run("-", input="nonsense")
    assert bad.returncode == 1
    assert "custom op 'nonsense' is unknown" in bad.stderr


def test_files_in_the_other_byte_order(matmul):
    """Numbers are numbers, whichever machine saved them: as arguments, and as what is expected."""
    with np.load(matmul / "args.npz") as args, np.load(matmul / "right.npz") as right:
        np.savez(matmul / "swapped.npz", **{name: a.astype(a.dtype.newbyteorder()) for name, a in args.items()})
        np.savez(matmul / "swapped_right.npz", ret0=right["ret0"].astype(right["ret0"].dtype.newbyteorder()))
    files = (matmul / "m.mlir", "--args", matmul / "swapped.npz", "--expect", matmul / "swapped_right.npz")
    assert run(*files).returncode == 0


def test_integers_are_exact():
    big = np.array([2**60], np.int64)
    assert compare(big, big, "x", 1.0, 1.0).ok
    assert not compare(big, big + 1, "x", 1.0, 1e9).ok
    assert compare(np.array([-1], np.int8), np.array([255], np.uint8), "x").ok


def test_what_cannot_be_compared():
    with pytest.raises(InputError, match="x: expected values have shape"):
        compare(np.zeros(2), np.zeros((2, 1)), "x")
    with pytest.raises(InputError, match="x: expected values have dtype float64"):
        compare(np.zeros(2, np.float32), np.zeros(2), "x")


@pytest.mark.parametrize("mlir", ["f32", "bf16", "i1", "i8", "ui8", "i64", "index", "complex<f32>", "f8E4M3FN"])
@pytest.mark.parametrize("how", ["random", "zeros", "ones"])
def test_made_up_arguments_fit(mlir, how):
    element, shape = element_of(mlir), (3, None)
    array = Parameter(element, shape, row_major_strides(shape), row_major=True)
    signature = Signature("f", (array, Parameter(element, None)), ())
    first, scalar = make_arguments.make(signature, how, 5)
    assert first.shape == (3, make_arguments.DYNAMIC_EXTENT)
    assert scalar.shape == ()
    assert first.dtype == scalar.dtype == element.dtype
    again, _ = make_arguments.make(signature, how, 5)
    assert np.array_equal(first, again)
