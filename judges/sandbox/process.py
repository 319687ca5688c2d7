"""The outside of the sandbox: starts an interpreter, listens to it with bounds on time and output, and ends it."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import os
import py_compile
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from rubricate.errors import MissingExtraError
from rubricate.judges.sandbox.results import CheckFailure, CheckResult, Reader, death
from rubricate.judges.sandbox.seccomp import ARCHITECTURES

__all__ = ["Cancelled", "Limits", "Wake", "converse", "unsupported_reason"]

# The packages as bare names with a path, so that neither this package's nor RestrictedPython's own start-up runs.
_BOOT = """
import sys, types
for name, path in {packages!r}:
    package = types.ModuleType(name)
    package.__path__ = [path] if path else []
    sys.modules[name] = package
from rubricate.judges.sandbox.child import main
main()
"""


class Cancelled(Exception):
    """The caller lost interest; the process has been ended."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one sandbox process.

    Attributes:
        seconds: wall time of the check of one text.
        start_seconds: wall time until the interpreter is ready.
        memory: address space in bytes.
    """

    seconds: float
    start_seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class Job:
    """What one process is asked to do. `restricted` off leaves the system call filter as the only layer."""

    source: str
    function: str
    texts: Sequence[str]
    unsafe: bool = False
    restricted: bool = True


class Wake:
    """Interrupts a conversation from another thread. `close` it when the conversation is over."""

    def __init__(self) -> None:
        self.requested = False
        self._lock = threading.Lock()
        self._pipe: tuple[int, int] | None = None

    def open(self) -> int:
        """A descriptor that can be read as soon as the end is asked for. Conversations that only wait need none:
        hundreds of them would use up this process's descriptors."""
        with self._lock:
            if self._pipe is None:
                self._pipe = os.pipe()
            if self.requested:
                os.write(self._pipe[1], b"x")
            return self._pipe[0]

    def request(self) -> None:
        """Ask for the end. Nothing happens when it has come already."""
        with self._lock:  # a closed descriptor's number may belong to someone else by now
            self.requested = True
            if self._pipe is not None:
                os.write(self._pipe[1], b"x")

    def close(self) -> None:
        """Release the pipe."""
        with self._lock:
            pipe, self._pipe = self._pipe, None
            for descriptor in pipe or ():
                os.close(descriptor)


def unsupported_reason() -> str:
    """Why there is no sandbox on this machine, empty where there is one."""
    if sys.platform != "linux":
        return f"system call filters exist on Linux only, this is {sys.platform}"
    machine = os.uname().machine
    if machine not in ARCHITECTURES:
        return f"the sandbox knows {' and '.join(ARCHITECTURES)}, this is {machine}"
    if sys.maxsize < 2**32:
        return "this interpreter is a 32-bit program"
    return ""


def converse(job: Job, limits: Limits, wake: Wake | None = None) -> list[CheckResult]:
    """Results of the texts in order, up to and including the first after which the process was not fit to go on.

    Raises Cancelled when `wake` asked for it, and MissingExtraError without RestrictedPython.
    """
    reason = unsupported_reason()
    if reason and not (job.unsafe and os.name == "posix"):
        return [_unsupported(reason)] * len(job.texts)
    nonce = secrets.token_hex(16)
    body = json.dumps(
        {
            "nonce": nonce,
            "source": job.source,
            "function": job.function,
            "texts": list(job.texts),
            "restricted": job.restricted,
            "seccomp": not reason,
            "memory": limits.memory,
            "cpu": limits.seconds * len(job.texts),
        }
    ).encode("ascii")
    # With its length, since the end of the pipe may not come: a process that was forked meanwhile holds it open.
    payload = b"%d\n%b" % (len(body), body)
    try:
        process = _start()
    except OSError as error:
        return [_no_start(f"no interpreter could be started: {error.strerror}")] * len(job.texts)
    talk = _Talk(process, payload, Reader(nonce, len(job.texts)), limits, wake)
    trouble = ""
    try:
        talk.listen()
    except OSError as error:  # such as no descriptor being left
        trouble = f"the interpreter could not be listened to: {error.strerror}"
    finally:
        code = _end(process)
    return [_no_start(trouble)] * len(job.texts) if trouble else talk.results(code)


def _no_start(message: str) -> CheckResult:
    return CheckResult(None, CheckFailure.START, message)


def _unsupported(reason: str) -> CheckResult:
    hint = "run untrusted checks on Linux, or pass unsafe_without_seccomp=True if you trust their source"
    return CheckResult(None, CheckFailure.UNSUPPORTED, f"no sandbox here: {reason}; {hint}")


@lru_cache(maxsize=1)
def boot_code() -> str:
    spec = importlib.util.find_spec("RestrictedPython")
    if spec is None or spec.origin is None:
        raise MissingExtraError("RestrictedPython", extra="sandbox")
    here = Path(__file__).resolve().parent
    _compile_once(here)
    packages = [
        ("rubricate", ""),
        ("rubricate.judges", ""),
        ("rubricate.judges.sandbox", str(here)),
        ("RestrictedPython", str(Path(spec.origin).resolve().parent)),
    ]
    return _BOOT.format(packages=packages)


def _compile_once(folder: Path) -> None:
    """Write the byte code of what runs inside: nothing here imports it, and in there nothing can be written."""
    if sys.dont_write_bytecode:
        return
    for name in ("child", "facades", "language", "seccomp"):
        source = folder / f"{name}.py"
        with contextlib.suppress(OSError, py_compile.PyCompileError):  # read-only: each check compiles them then
            cached = Path(importlib.util.cache_from_source(str(source)))
            if not cached.exists() or cached.stat().st_mtime < source.stat().st_mtime:
                py_compile.compile(str(source), quiet=2)


def _start() -> subprocess.Popen[bytes]:
    # -S -s -P and an environment of our own are what -I does, but for the hash seed: -I would ignore it, and the
    # order of sets would change a check from one run to the next.
    if not sys.executable:  # Python inside another program
        raise OSError(errno.ENOENT, "sys.executable is empty")
    options = ["-S", "-s", "-P", "-B", "-W", "ignore"]
    if sys.pycache_prefix is not None:
        options += ["-X", f"pycache_prefix={sys.pycache_prefix}"]
    return subprocess.Popen(
        [sys.executable, *options, "-c", boot_code()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PYTHONCOERCECLOCALE": "0", "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"},
        close_fds=True,
        start_new_session=True,
        bufsize=0,
    )


def _end(process: subprocess.Popen[bytes]) -> int:
    """Kill the process with its whole group and reap it. Gives its exit status."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    return process.wait()


@contextlib.contextmanager
def _exit_of(process: subprocess.Popen[bytes]) -> Generator[int | None]:
    """A descriptor that can be read once the process has ended, None where the system has none."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class _Talk:
    """One conversation: the request goes out, lines come in, and each has its deadline."""

    def __init__(
        self, process: subprocess.Popen[bytes], payload: bytes, reader: Reader, limits: Limits, wake: Wake | None
    ) -> None:
        self._process = process
        self._payload = memoryview(payload)
        self._reader = reader
        self._limits = limits
        self._wake = wake
        self._rest = b""
        self._last = time.monotonic()
        self._stopped: CheckFailure | None = None

    def listen(self) -> None:
        """Until the process has ended its output, or has to be ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:  # both are pipes, by the call in `_start`
            raise RuntimeError("the sandbox process has no pipes")
        os.set_blocking(stdin.fileno(), False)
        with selectors.DefaultSelector() as selector, _exit_of(self._process) as ended:
            selector.register(stdin, selectors.EVENT_WRITE)
            selector.register(stdout, selectors.EVENT_READ)
            if ended is not None:
                selector.register(ended, selectors.EVENT_READ)
            if self._wake is not None:
                selector.register(self._wake.open(), selectors.EVENT_READ)
            going = True
            while going and self._stopped is None:
                left = self._deadline() - time.monotonic()
                ready = {key.fileobj for key, _ in selector.select(max(left, 0.0))}
                if self._wake is not None and self._wake.requested:
                    raise Cancelled
                if stdin in ready and self._send(stdin):
                    selector.unregister(stdin)
                    stdin.close()
                if stdout in ready:
                    going = self._receive(stdout)
                elif ended in ready:  # and all it said has been read, whoever may still hold its output open
                    going = False
                elif left <= 0:
                    self._stopped = CheckFailure.TIMEOUT
        if self._stopped is None:
            self._wait()

    def _deadline(self) -> float:
        return self._last + (self._limits.seconds if self._reader.ready else self._limits.start_seconds)

    def _send(self, stdin: IO[bytes]) -> bool:
        """Send what the pipe takes. True when there is no more to send."""
        try:
            self._payload = self._payload[os.write(stdin.fileno(), self._payload[:65536]) :]
        except BrokenPipeError:  # it ended before it had read everything; its status says why
            return True
        return not self._payload

    def _receive(self, stdout: IO[bytes]) -> bool:
        """Take what there is. False at the end of the output."""
        chunk = os.read(stdout.fileno(), 4096)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        now = time.monotonic()
        for line in lines:
            if not self._reader.take(line.decode("ascii", "replace"), now - self._last):
                self._stopped = CheckFailure.BAD_RESULT
                return False
            self._last = now
        if len(self._rest) > 512:
            self._stopped = CheckFailure.FLOOD
        return bool(chunk)

    def _wait(self) -> None:
        """It has closed its output; a moment to exit by itself, so that its status is its own."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(self._deadline() - time.monotonic(), 0.1))

    def results(self, code: int) -> list[CheckResult]:
        """What was said, and what became of the text whose answer is missing."""
        reader = self._reader
        done, count = list(reader.results), reader.count
        if reader.ended and self._stopped is None and code == 0 and not self._rest:
            return done
        if not reader.ready:
            return [self._not_started(code)] * count
        failure, message = self._why(code)
        failed = CheckResult(None, failure, message, time.monotonic() - self._last)
        # With all answers there and no clean end, the last one came from a process that went astray.
        return [*done[: count - 1], failed]

    def _not_started(self, code: int) -> CheckResult:
        if self._reader.unsupported:
            return _unsupported(self._reader.unsupported)
        if self._stopped is CheckFailure.TIMEOUT:
            message = f"the interpreter was not ready after {self._limits.start_seconds:g} s"
        else:
            message = f"the interpreter did not come up (status {code})"
        return _no_start(message)

    def _why(self, code: int) -> tuple[CheckFailure, str]:
        if self._stopped is CheckFailure.TIMEOUT:
            return CheckFailure.TIMEOUT, f"the check took longer than {self._limits.seconds:g} s"
        if self._stopped is CheckFailure.FLOOD:
            return CheckFailure.FLOOD, "the check wrote to the sandbox's output without end"
        if self._stopped is CheckFailure.BAD_RESULT or self._rest:
            return CheckFailure.BAD_RESULT, "the check wrote to the sandbox's output"
        return death(code)
