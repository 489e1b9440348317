"""Shared by all Python tests."""

from __future__ import annotations

import os

import hypothesis
import pytest

# The machine may be busy: how long an example takes says nothing. Failures must be reproducible.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True)
hypothesis.settings.load_profile("suite")

# Earlier runs and the user's settings must not decide what a test sees.
os.environ["MORELLO_MEMO"] = "off"
os.environ.pop("MORELLO_TARGET", None)
# Code for one thread, unless a test asks for more.
os.environ["MORELLO_NUM_THREADS"] = "1"


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ["MORELLO_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests marked `isa(name)` on hosts without that instruction set."""
    for marker in item.iter_markers("isa"):
        from llvmlite import binding

        name = marker.args[0]
        feature = {"avx512": "avx512f"}.get(name, name)
        if not binding.get_host_cpu_features().get(feature, False):
            pytest.skip(f"the host has no {name}")
