"""The object cache: compiled machine code on disk, so that the next process need not run LLVM.

One file per object under `MORELLO_CACHE_DIR` (default: the user's cache folder), named by the hash of everything that
went into it. Files appear by atomic rename and carry a checksum: readers never see half of one, and a damaged one is
dropped. The cache is an optimisation only: where it cannot be used, one warning says so and compiling goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import warnings
from pathlib import Path

MAGIC = b"MORELLO-OBJECT-1"
_DIGEST = hashlib.sha256().digest_size
#: Old objects go when the cache grows beyond this many bytes.
DEFAULT_LIMIT = 512 * 1024 * 1024


def default_directory() -> Path:
    """Where objects are kept: `$MORELLO_CACHE_DIR/objects`, or that folder in the user's cache directory."""
    chosen = os.environ.get("MORELLO_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser() / "objects"
    import platformdirs

    return Path(platformdirs.user_cache_dir("morello-mlir", appauthor=False)) / "objects"


def key_of(*parts: str) -> str:
    """A name for the object that these texts determine: hexadecimal."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        # With the length, so that moving text from one part to the next gives another name.
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


class ObjectCache:
    """A folder of objects. Any number of processes and threads may use one at the same time.

    directory: made on the first write.
    limit: bytes; the least recently used objects beyond it are deleted, now and then.
    """

    def __init__(self, directory: Path, limit: int = DEFAULT_LIMIT):
        self.directory = directory
        self.limit = limit
        self._broken = False
        self._pruned = False

    def load(self, key: str) -> bytes | None:
        """The object of that key, or None: not there, not readable, or damaged (it is deleted then)."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._give_up(error)
            return None
        payload = data[len(MAGIC) + _DIGEST :]
        if data != MAGIC + hashlib.sha256(payload).digest() + payload:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # What was used lately is pruned last.
        return payload

    def store(self, key: str, payload: bytes) -> bool:
        """Keep an object; False (after one warning) where that is impossible."""
        if self._broken:
            return False
        path = self._path(key)
        temporary: str | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(payload).digest() + payload)
            Path(temporary).replace(path)
        except OSError as error:
            if temporary:
                with contextlib.suppress(OSError):
                    Path(temporary).unlink()
            self._give_up(error)
            return False
        if not self._pruned:
            self._pruned = True
            self.prune()
        return True

    def prune(self) -> int:
        """Delete the least recently used objects beyond the limit; returns how many went."""
        found = []
        for path in self.directory.glob("??/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in found)
        removed = 0
        for _, size, path in sorted(found):
            if total <= self.limit:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                removed += 1
            total -= size
        return removed

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key[2:]}.o"

    def _give_up(self, error: OSError) -> None:
        if not self._broken:
            self._broken = True
            reason = error.strerror or str(error)
            warnings.warn(f"object cache {self.directory} is not usable ({reason}); compiling without it", stacklevel=4)


_caches: dict[Path, ObjectCache] = {}


def shared_cache() -> ObjectCache:
    """The cache of the default directory; one object per directory and process, so that it warns once."""
    directory = default_directory()
    return _caches.setdefault(directory, ObjectCache(directory))
