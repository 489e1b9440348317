"""The package as a whole: what importing it costs, what it consists of, which way its layers look."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from morello_mlir.tools.main import main

ROOT = Path(__file__).parents[2]
PURE = ("spec", "actions", "targets", "search", "memo", "nests", "chains")
FOREIGN = ("mlir", "llvmlite", "torch", "jax")


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_it_imports_little_else() -> None:
    code = "import sys; before = set(sys.modules); import morello_mlir; print(*set(sys.modules) - before)"
    assert len(python(code).split()) < 30


def test_command_lines_can_be_interrupted_before_they_have_imported_anything() -> None:
    code = (
        "import sys, signal, importlib.abc\n"
        # What runs in the background of a shell script is started with ^C ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Interrupt(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'morello_mlir.tools._cli': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "before = set(sys.modules)\n"
        "from morello_mlir.tools import start\n"
        "print(*sorted(m for m in set(sys.modules) - before if not m.startswith('morello_mlir')))\n"
        "print(start.morello(), start.opt(), start.run())"
    )
    imported, statuses = python(code).splitlines()
    assert "pathlib" not in imported and statuses == "130 130 130"


def test_console_scripts_are_there() -> None:
    from importlib.metadata import entry_points

    ours = {p.name: p for p in entry_points(group="console_scripts") if p.name.startswith("morello")}
    assert sorted(ours) == ["morello", "morello-opt", "morello-run"]
    assert all(callable(p.load()) for p in ours.values())


@pytest.mark.parametrize("module", ["morello_mlir", "morello_mlir.dialect", "morello_mlir.passes.registry"])
def test_importing_it_loads_no_mlir(module: str) -> None:
    loaded = python(f"import sys, {module}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))").split()
    assert not {"mlir", "llvmlite", "numba", "torch", "jax"} & set(loaded)


def test_importing_it_is_enough_for_frontends() -> None:
    code = (
        "import sys, morello_mlir; f = morello_mlir.frontends; print(f.EagerFallback.__name__, *dir(f))\n"
        "print('torch' in sys.modules, hasattr(morello_mlir, 'front'), hasattr(f, 'tensorflow'))"
    )
    first, second = python(code).splitlines()
    assert first.startswith("EagerFallback ") and {"jax", "onnx", "torch"} <= set(first.split())
    assert second == "False False False"


@pytest.mark.parametrize("frontend", ["jax", "onnx", "torch"])
def test_a_frontend_without_its_packages_says_what_to_install(frontend: str) -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('jax', 'onnx', 'torch', 'torch_mlir')))\n"
        f"import morello_mlir\ntry: morello_mlir.frontends.{frontend}\nexcept ImportError as error: print(error)"
    )
    assert "pip install 'morello-mlir[" in python(code)


@pytest.mark.parametrize("tool", ["opt", "run", "main"])
def test_every_tool_prints_its_help_without_mlir(tool: str) -> None:
    code = (
        f"import sys; from morello_mlir.tools.{tool} import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print('MLIR' if 'mlir' in sys.modules else 'none', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "none\n"
    assert "usage" in done.stdout.lower()


@pytest.mark.parametrize("command", [[], ["memo"]])
def test_a_tool_without_a_command_prints_its_help(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--help"])
    wanted = capfd.readouterr()
    assert main(command) == 1
    assert capfd.readouterr() == wanted and wanted.err == ""


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found


def _files(layer: str) -> list[Path]:
    """The files of a pure layer: nests/lowering, which makes MLIR, is none of it."""
    found = [p for p in (ROOT / "morello_mlir" / layer).rglob("*.py") if "lowering" not in p.parts]
    assert found, layer
    return found


@pytest.mark.parametrize("layer", PURE)
def test_the_pure_core_imports_no_compiler(layer: str) -> None:
    for path in _files(layer):
        assert not _imports(path) & set(FOREIGN), path


#: What each layer of the pure core may import of the package; above them all is everything else. The schedule tree is
#: shared by actions and search.
LAYERS = {
    "spec": ("nests.body",),
    "targets": ("spec",),
    "actions": ("spec", "targets", "search.schedule", "search.nest_steps"),
    # Its two kernels are compiled like programs; they bring their LLVM IR along.
    "search": ("spec", "targets", "actions", "memo", "runtime.jit", "runtime.cache"),
    "memo": ("spec", "targets", "actions", "search"),
    "nests": ("spec", "targets", "actions", "search", "memo"),
    "chains": ("spec", "targets", "actions", "search", "memo", "nests"),
}


def _inner_imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, as `layer` or `layer.module`."""
    package = path.parent.relative_to(ROOT).parts
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = (node.module or "").split(".") if node.module else []
        if node.level:
            parts = [*package[: len(package) - node.level + 1], *parts]
        if parts[:1] == ["morello_mlir"]:
            names = [[*parts[1:], alias.name] for alias in node.names] if len(parts) < 3 else [parts[1:]]
            found |= {".".join(name[:2]) for name in names}
    return found


@pytest.mark.parametrize("layer", PURE)
def test_layers_look_down_only(layer: str) -> None:
    for path in _files(layer):
        for name in _inner_imports(path):
            top = name.split(".")[0]
            common = top in ("cached", "errors", "hashed", "diagnostics", "locks", layer)
            assert common or top in LAYERS[layer] or name in LAYERS[layer], f"{path} imports {name}"


def _project() -> str:
    return (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_every_folder_with_code_is_installed() -> None:
    folders = {p.parent for p in (ROOT / "morello_mlir").rglob("*.py")}
    names = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    for name in names | {"morello_mlir.dialect", "morello_mlir.passes"}:
        assert f'"{name}",' in _project(), f"{name} is missing in pyproject.toml"


def test_no_file_is_too_long_to_read() -> None:
    folders = ("morello_mlir", "dialect", "passes", "test", "examples", "benchmarks")
    for path in (p for folder in folders for p in (ROOT / folder).rglob("*.py")):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path


def test_the_irdl_file_is_package_data() -> None:
    assert "irdl.dialect" in python(
        "from importlib import resources; "
        "print(resources.files('morello_mlir.dialect').joinpath('morello.irdl.mlir').read_text())"
    )


def test_the_version_is_the_changelogs() -> None:
    version = _project().split('version = "', 1)[1].split('"', 1)[0]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
