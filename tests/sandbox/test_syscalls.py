"""The system call filter by itself: hostile code runs as plain Python inside it, with all that was loaded."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from rubricate.judges.sandbox import CheckFailure, CheckResult, unsupported_reason
from rubricate.judges.sandbox.process import Job, Limits, converse
from rubricate.judges.sandbox.seccomp import ARCHITECTURES, filter_program

pytestmark = pytest.mark.skipif(bool(unsupported_reason()), reason=unsupported_reason() or "a sandbox is there")

FORBIDDEN, ERROR, CRASH = CheckFailure.FORBIDDEN, CheckFailure.ERROR, CheckFailure.CRASH
BAD_RESULT, FLOOD, TIMEOUT = CheckFailure.BAD_RESULT, CheckFailure.FLOOD, CheckFailure.TIMEOUT
KILLED = "system call that it must not"

HEAD = """
import os, sys, ctypes
libc = ctypes.CDLL(None, use_errno=True)
def verify_requirement(text):
"""


def run(body: str, *texts: str, seconds: float = 30.0) -> list[CheckResult]:
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    job = Job(HEAD + lines + "\n", "verify_requirement", texts or ("a text",), restricted=False)
    return converse(job, Limits(seconds, 60.0, 256 * 2**20))


REFUSED = {
    "read a file": "os.open('/etc/passwd', os.O_RDONLY)",
    "open by name": "open('/etc/passwd')",
    "write a file": "open('/tmp/rubricate-was-here', 'w')",
    "own memory": "os.open('/proc/self/mem', os.O_RDWR)",
    "own descriptors": "os.listdir('/proc/self/fd')",
    "a file's size": "os.stat('/etc/passwd')",
    "a symbolic link": "os.readlink('/proc/self/exe')",
    "signal the parent": "os.kill(os.getppid(), 0)",
    "signal everyone": "os.kill(-1, 0)",
    "read a descriptor": "os.read(0, 1)",
    "write to standard error": "os.write(2, b'x')",
    "write to a descriptor that may be inherited": "os.write(3, b'x')",
    "who started it": "os.readlink('/proc/self/cwd')",
    "load a library": "ctypes.CDLL('libresolv.so.2')",
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_calls_that_reach_the_system_fail(body: str) -> None:
    (result,) = run(body + "\nreturn True")
    assert result.failure is ERROR, result
    assert "PermissionError" in result.message or "OSError" in result.message, result


def test_no_socket_is_made() -> None:
    (result,) = run("return libc.socket(2, 1, 0) == -1 and ctypes.get_errno() == 1")
    assert result.met is True


FATAL = {
    "fork": "os.fork()",
    "fork bomb": "while libc.getpid():\n    [os.fork() for _ in range(8)]",
    "program": "os.execv('/bin/sh', ['sh', '-c', 'id'])",
    "vfork": "libc.vfork()",
    "thread": "import _thread\n_thread.start_new_thread(print, ())",
    "connect": "libc.connect(1, 0, 0)",
    "socket pair": "libc.socketpair(1, 1, 0, ctypes.create_string_buffer(8))",
    "ptrace": "libc.ptrace(0, 0, 0, 0)",
    "memory of others": "libc.process_vm_readv(1, 0, 0, 0, 0, 0)",
    "io_uring": "libc.syscall(425, 8, 0)",
    "symbolic link": "os.symlink('/etc', '/tmp/rubricate-link')",
    "delete": "os.unlink('/tmp/x')",
    "directory": "os.mkdir('/tmp/rubricate-dir')",
    "mount": "libc.mount(0, 0, 0, 0, 0)",
    "name spaces": "libc.unshare(0x10000000)",
    "memory file": "os.memfd_create('x')",
    "duplicate": "os.dup(1)",
    "pipe": "os.pipe()",
    "raise a limit": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
    "lift the filter": "libc.prctl(22, 0, 0, 0, 0)",
    "another user": "os.setuid(0)",
    "alarm": "libc.alarm(1)",
    "sleep": "import time\ntime.sleep(100)",
    "executable memory": "libc.mmap(0, 4096, 7, 34, -1, 0)",
    "memory made executable": "a = id(libc)\nlibc.mprotect(ctypes.c_void_p(a & ~4095), 4096, 5)",
    "call of another convention": "libc.syscall(0x40000000 + 39)",
    "inheriting locks": "libc.syscall({'x86_64': 202}.get(os.uname().machine, 98), id(libc), 6, 0, 0, 0, 0)",
    "bpf": "libc.syscall(321, 0, 0, 0)",
}


@pytest.mark.parametrize("body", FATAL.values(), ids=FATAL.keys())
def test_other_calls_kill_the_process(body: str) -> None:
    (result,) = run(body + "\nreturn True")
    assert result.failure is FORBIDDEN, result
    assert KILLED in result.message


def test_signals_cannot_be_caught() -> None:
    (result,) = run("import _signal\n_signal.signal(24, _signal.SIG_IGN)\nreturn True")
    assert result.failure is ERROR, result
    assert "PermissionError" in result.message


def test_no_environment_and_no_descriptor_come_along(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RUBRICATE_TEST_SECRET", "s3cret")
    with (tmp_path / "open").open("w") as held, socket.socket() as other:
        os.set_inheritable(held.fileno(), True)
        os.set_inheritable(other.fileno(), True)
        names = "all(name.startswith('PYTHON') for name in os.environ)"
        written = f"[libc.write(fd, b'x', 1) for fd in range(2, {max(held.fileno(), other.fileno()) + 1})]"
        (result,) = run(f"assert set({written}) == {{-1}}\nassert 's3cret' not in str(os.environ)\nreturn {names}")
    assert result.met is True, result
    assert (tmp_path / "open").read_text() == ""


def test_exits_are_no_answers() -> None:
    assert run("os._exit(0)")[0].failure is CRASH
    assert run("sys.exit(0)")[0].failure is ERROR
    assert run("libc.abort()")[0].failure is CRASH
    assert run("ctypes.string_at(0)")[0].failure is CRASH


def test_a_forged_answer_is_not_believed() -> None:
    for forged in ("b'0 met \\n'", "b'met\\n'", "b'True'", "b'x' * 40 + b' 0 met \\n'"):
        (result,) = run(f"os.write(1, {forged})\nreturn False")
        assert (result.met, result.failure) == (None, BAD_RESULT)
        (result,) = run(f"os.write(1, {forged})\nos._exit(0)")
        assert (result.met, result.failure) == (None, BAD_RESULT)


def test_output_after_the_last_answer_takes_it_back() -> None:
    late = "leave = os._exit\nos._exit = lambda code: (os.write(1, b'more'), leave(code))\nreturn True"
    first, last = run(late, "one", "two")
    assert (first.met, first.failure) == (True, None)
    assert (last.met, last.failure) == (None, BAD_RESULT)
    (result,) = run("leave = os._exit\nos._exit = lambda code: leave(7)\nreturn True")
    assert (result.met, result.failure) == (None, CRASH)


def test_a_flood_is_cut_at_once_whatever_the_time_allowed() -> None:
    (result,) = run("while True:\n    os.write(1, b'x' * 65536)", seconds=600.0)
    assert result.failure is FLOOD


def test_objects_that_lie_are_no_verdicts() -> None:
    lies = "class A(int):\n    def __eq__(self, other):\n        return True\n    def __bool__(self):\n        {}\n"
    for body in ("return True", "while True: pass"):
        (result,) = run(lies.format(body) + "return A()")
        assert (result.met, result.failure) == (None, BAD_RESULT)


def test_exceptions_are_neither_printed_nor_asked() -> None:
    source = (
        "class E(BaseException):\n    def __str__(self):\n        while True: pass\n    __repr__ = __str__\nraise E"
    )
    (result,) = run(source)
    assert (result.met, result.failure) == (None, ERROR)


def test_exit_handlers_do_not_run() -> None:
    (result,) = run("import atexit\natexit.register(os.write, 1, b'late')\nreturn True")
    assert result.met is True


def test_surrogates_and_nulls_arrive_and_do_not_come_back() -> None:
    text = "a\ud800b\x00c\U0001f600"
    (result,) = run("raise ValueError(text)", text)
    assert result.failure is ERROR
    assert result.message.isascii()
    (result,) = run(f"return text == {text!r}", text)
    assert result.met is True


def test_every_table_gives_a_program_that_the_kernel_could_take() -> None:
    for architecture in ARCHITECTURES.values():
        program = filter_program(architecture, 1)
        assert len(program) % 8 == 0
        assert len(program) // 8 < 4096
        assert len(set(architecture.numbers.values())) == len(architecture.numbers)
