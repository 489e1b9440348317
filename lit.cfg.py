"""lit's configuration. Run `lit test/lit` at the top of the tree, in an environment that has the package installed."""

import os
import sys
from pathlib import Path

import lit.formats
import llvm
import mlir

config.name = "morello-mlir"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir", ".test"]
# The folder of this file: lit looks for the tests it is given from here.
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = os.environ.get("MORELLO_LIT_OUTPUT", str(Path(__file__).parent / "build" / "lit"))

# `mlir` and `llvm` are namespace packages: they have a path and no file.
mlir_bin = Path(next(iter(mlir.__path__))) / "bin"
llvm_bin = Path(next(iter(llvm.__path__))) / "bin"

# The tools of the source tree, whichever interpreter runs lit.
for name, module in (("morello-opt", "opt"), ("morello-run", "run"), ("morello", "main")):
    # Not where the name is a part of a word: a pass, an attribute, a path.
    pattern = rf"(?<![\w./-]){name}(?![\w./=:-])"
    config.substitutions.append((pattern, f"{sys.executable} -m morello_mlir.tools.{module}"))
for name, folder in (
    ("mlir-opt", mlir_bin),
    ("mlir-translate", mlir_bin),
    ("FileCheck", llvm_bin),
    ("not", llvm_bin),
    ("count", llvm_bin),
    ("split-file", llvm_bin),
):
    config.substitutions.append((rf"(?<![\w./-]){name}(?![\w./=:-])", str(folder / name)))
config.substitutions.append(("%python", sys.executable))

# Search results of earlier runs, and the user's settings, must not decide what a test sees.
config.environment["MORELLO_MEMO"] = "off"
config.environment["MORELLO_CACHE_DIR"] = str(Path(config.test_exec_root) / "cache")
config.environment["FILECHECK_OPTS"] = "--dump-input-filter=error --allow-unused-prefixes=false"
for name in ("MORELLO_TARGET", "PYTHONPATH"):
    config.environment.pop(name, None)
config.environment["MORELLO_NUM_THREADS"] = "1"
config.environment["OMP_NUM_THREADS"] = config.environment["OPENBLAS_NUM_THREADS"] = "1"

config.maxIndividualTestTime = 120
