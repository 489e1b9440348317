"""The object cache survives damage, competition and a disk that refuses."""

import os
import threading
import time
import warnings

import pytest

from morello_mlir.runtime.cache import ObjectCache, default_directory, key_of, shared_cache


@pytest.fixture
def cache(tmp_path):
    return ObjectCache(tmp_path / "objects")


def stored(cache):
    return [p for p in cache.directory.glob("??/*") if p.is_file()]


def test_what_is_stored_is_loaded(cache):
    key = key_of("ir", "cpu")
    assert cache.load(key) is None
    assert cache.store(key, b"code")
    assert cache.load(key) == b"code"
    assert ObjectCache(cache.directory).load(key) == b"code"


def test_keys_depend_on_every_part():
    keys = {key_of("ab", "c"), key_of("a", "bc"), key_of("abc"), key_of("ab", "d"), key_of("ab", "c", "")}
    assert len(keys) == 5
    assert key_of("ab", "c") == key_of("ab", "c")


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "append", "magic"])
def test_damaged_objects_are_dropped(cache, damage):
    key = key_of(damage)
    cache.store(key, b"x" * 1000)
    (path,) = stored(cache)
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[500] ^= 1
    elif damage == "truncate":
        del data[700:]
    elif damage == "empty":
        data.clear()
    elif damage == "append":
        data += b"y"
    else:
        data[0] ^= 1
    path.write_bytes(data)
    assert cache.load(key) is None
    assert not path.exists()
    assert cache.store(key, b"new")
    assert cache.load(key) == b"new"


def test_no_temporary_files_are_left(cache):
    for i in range(5):
        cache.store(key_of(str(i)), b"x")
    assert all(p.suffix == ".o" for p in stored(cache))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_directory_warns_once(cache):
    cache.directory.mkdir()
    cache.directory.chmod(0o500)
    with pytest.warns(UserWarning, match="object cache .* is not usable"):
        assert not cache.store(key_of("a"), b"x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not cache.store(key_of("b"), b"x")
    assert cache.load(key_of("a")) is None


def test_a_file_in_the_way_warns_once(tmp_path):
    (tmp_path / "objects").write_text("not a directory")
    cache = ObjectCache(tmp_path / "objects")
    with pytest.warns(UserWarning, match="compiling without it"):
        assert not cache.store(key_of("a"), b"x")
    assert cache.load(key_of("a")) is None


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    cache.store(key_of("before"), b"x")
    monkeypatch.setattr("os.fdopen", full)
    with pytest.warns(UserWarning, match="No space left"):
        assert not cache.store(key_of("a"), b"x")
    assert cache.load(key_of("before")) == b"x"
    assert [p.suffix for p in stored(cache)] == [".o"]


def test_concurrent_writers_and_readers(cache):
    key, bodies = key_of("k"), [bytes([i]) * 50_000 for i in range(4)]
    seen, stop = set(), threading.Event()

    def write(body):
        mine = ObjectCache(cache.directory)
        while not stop.is_set():
            mine.store(key, body)

    def read():
        mine = ObjectCache(cache.directory)
        while not stop.is_set():
            seen.add(mine.load(key))

    threads = [threading.Thread(target=write, args=(b,)) for b in bodies] + [threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join()
    assert seen <= {None, *bodies}
    assert cache.load(key) in bodies


def test_the_least_recently_used_go(cache):
    keys = [key_of(str(i)) for i in range(6)]
    for age, key in enumerate(keys):
        cache.store(key, b"x" * 1000)
        path = cache._path(key)
        os.utime(path, (1000 + age, 1000 + age))
    assert cache.load(keys[0]) is not None  # used just now
    cache.limit = 3500
    assert cache.prune() == 3
    assert cache.load(keys[0]) is not None
    assert [cache.load(k) is None for k in keys[1:]] == [True, True, True, False, False]


def test_the_directory_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("MORELLO_CACHE_DIR", str(tmp_path))
    assert default_directory() == tmp_path / "objects"
    assert shared_cache() is shared_cache()
    monkeypatch.delenv("MORELLO_CACHE_DIR")
    assert default_directory().name == "objects"
