"""Files that grow line by line, each written whole, with a lock that keeps a second writer out."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rubricate.errors import ConfigError

__all__ = ["open_locked", "write_whole"]


def open_locked(path: Path, *, busy: ConfigError, hint: str) -> int:
    """The file, made if need be, opened and locked. The lock belongs to the open file: the kernel drops it with us.

    Args:
        path: the file.
        busy: raised when another process holds the lock.
        hint: of the ConfigError for a file that cannot be opened.
    """
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}", hint=hint) from None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise ConfigError(f"{path} is no regular file", hint="name a file, which can be read again")
        try:
            _lock(file)
        except OSError:
            os.close(file)
            raise busy from None
        try:
            same = os.stat(path).st_ino == os.fstat(file).st_ino
        except FileNotFoundError:
            same = False
        if same:
            return file
        os.close(file)  # its owner finished and removed it between our two calls


def _lock(file: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: no advisory locks of this kind; two processes are not kept apart there
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_whole(file: int, raw: bytes) -> None:
    """Write all of `raw`; a signal can cut a write short. Raises OSError."""
    written = os.write(file, raw)
    while written < len(raw):
        written += os.write(file, raw[written:])
