"""The system call filter of the sandbox: a seccomp allow-list as a BPF program, installed with ctypes.

This module runs inside the sandbox's interpreter and imports the standard library alone. Numbers are those of
Linux's `asm/unistd_64.h` (x86-64) and `asm-generic/unistd.h` (aarch64); program layout as in seccomp(2).
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ARCHITECTURES", "Architecture", "FilterError", "filter_program", "install", "self_test"]


class FilterError(Exception):
    """The filter could not be installed, or does not hold. Nothing untrusted may run."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The system call table of one machine.

    Attributes:
        audit: the AUDIT_ARCH value that the kernel reports for its calls.
        numbers: system call name to number.
        foreign_from: numbers from here on belong to another call convention (x32) and are refused.
    """

    audit: int
    numbers: Mapping[str, int]
    foreign_from: int | None = None


ARCHITECTURES: dict[str, Architecture] = {
    "x86_64": Architecture(
        0xC000003E,
        {
            "access": 21,
            "brk": 12,
            "clock_getres": 229,
            "clock_gettime": 228,
            "close": 3,
            "exit": 60,
            "exit_group": 231,
            "faccessat": 269,
            "faccessat2": 439,
            "fstat": 5,
            "futex": 202,
            "getcwd": 79,
            "getdents64": 217,
            "getpid": 39,
            "getppid": 110,
            "gettid": 186,
            "gettimeofday": 96,
            "ioctl": 16,
            "kill": 62,
            "lseek": 8,
            "lstat": 6,
            "madvise": 28,
            "mmap": 9,
            "mprotect": 10,
            "mremap": 25,
            "munmap": 11,
            "newfstatat": 262,
            "open": 2,
            "openat": 257,
            "openat2": 437,
            "read": 0,
            "readlink": 89,
            "readlinkat": 267,
            "rt_sigaction": 13,
            "rt_sigprocmask": 14,
            "socket": 41,
            "stat": 4,
            "statx": 332,
            "tgkill": 234,
            "write": 1,
        },
        foreign_from=0x40000000,
    ),
    "aarch64": Architecture(
        0xC00000B7,
        {
            "brk": 214,
            "clock_getres": 114,
            "clock_gettime": 113,
            "close": 57,
            "exit": 93,
            "exit_group": 94,
            "faccessat": 48,
            "faccessat2": 439,
            "fstat": 80,
            "futex": 98,
            "getcwd": 17,
            "getdents64": 61,
            "getpid": 172,
            "getppid": 173,
            "gettid": 178,
            "gettimeofday": 169,
            "ioctl": 29,
            "kill": 129,
            "lseek": 62,
            "madvise": 233,
            "mmap": 222,
            "mprotect": 226,
            "mremap": 216,
            "munmap": 215,
            "newfstatat": 79,
            "openat": 56,
            "openat2": 437,
            "read": 63,
            "readlinkat": 78,
            "rt_sigaction": 134,
            "rt_sigprocmask": 135,
            "socket": 198,
            "statx": 291,
            "tgkill": 131,
            "write": 64,
        },
    ),
}
"""Machines that the sandbox knows, by the name that uname(2) gives."""

_ALLOWED = (
    # What memory, locks, clocks and the end of a process need. None of them reaches beyond the process.
    "brk",
    "clock_getres",
    "clock_gettime",
    "exit",
    "exit_group",
    "getpid",
    "gettid",
    "gettimeofday",
    "madvise",
    "mremap",
    "munmap",
    "rt_sigprocmask",
)
_REFUSED = (
    # Refused with an error, since the interpreter may try them without ill will; what is not listed kills.
    "access",
    "close",
    "faccessat",
    "faccessat2",
    "fstat",
    "getcwd",
    "getdents64",
    "getppid",
    "ioctl",
    "kill",
    "lseek",
    "lstat",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "read",
    "readlink",
    "readlinkat",
    "rt_sigaction",
    "socket",
    "stat",
    "statx",
    "tgkill",
)

_LOAD, _AND, _JUMP_EQUAL, _JUMP_FROM, _JUMP_BITS, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_EPERM = 1
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_PROT_EXEC = 4
_FUTEX_MASK, _FUTEX_WAIT, _FUTEX_WAKE, _FUTEX_WAIT_BITSET, _FUTEX_WAKE_BITSET = 0x7F, 0, 1, 9, 10


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _argument(index: int) -> bytes:
    # The low half: both machines are little-endian, and file descriptors and protections are ints.
    return _step(_LOAD, _ARGUMENTS + 8 * index)


def filter_program(architecture: Architecture, output: int) -> bytes:
    """The BPF program: an allow-list of calls that reach nothing, and `write` to the descriptor `output` alone.

    Calls that the interpreter may make without ill will (open a file, look one up) fail with EPERM; any other one
    kills the process, and so does memory that is to be executable.
    """
    numbers = architecture.numbers
    steps = [_step(_LOAD, _ARCH), _step(_JUMP_EQUAL, architecture.audit, 1, 0), _step(_RETURN, _KILL)]
    steps.append(_step(_LOAD, _NUMBER))
    if architecture.foreign_from is not None:
        steps += [_step(_JUMP_FROM, architecture.foreign_from, 0, 1), _step(_RETURN, _KILL)]
    for name in _ALLOWED:
        steps += [_step(_JUMP_EQUAL, numbers[name], 0, 1), _step(_RETURN, _ALLOW)]
    for name in _REFUSED:
        if name in numbers:
            steps += [_step(_JUMP_EQUAL, numbers[name], 0, 1), _step(_RETURN, _ERRNO | _EPERM)]
    steps += [
        _step(_JUMP_EQUAL, numbers["write"], 0, 4),
        _argument(0),
        _step(_JUMP_EQUAL, output, 0, 1),
        _step(_RETURN, _ALLOW),
        _step(_RETURN, _ERRNO | _EPERM),
    ]
    for name in ("mmap", "mprotect"):
        steps += [
            _step(_JUMP_EQUAL, numbers[name], 0, 4),
            _argument(2),
            _step(_JUMP_BITS, _PROT_EXEC, 1, 0),
            _step(_RETURN, _ALLOW),
            _step(_RETURN, _KILL),
        ]
    # Locks wait and wake. The other operations have let programs into the kernel before.
    steps += [
        _step(_JUMP_EQUAL, numbers["futex"], 0, 8),
        _argument(1),
        _step(_AND, _FUTEX_MASK),
        _step(_JUMP_EQUAL, _FUTEX_WAIT, 4, 0),
        _step(_JUMP_EQUAL, _FUTEX_WAKE, 3, 0),
        _step(_JUMP_EQUAL, _FUTEX_WAIT_BITSET, 2, 0),
        _step(_JUMP_EQUAL, _FUTEX_WAKE_BITSET, 1, 0),
        _step(_RETURN, _KILL),
        _step(_RETURN, _ALLOW),
    ]
    steps.append(_step(_RETURN, _KILL))
    return b"".join(steps)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


_SET_NO_NEW_PRIVS, _SET_SECCOMP, _MODE_FILTER = 38, 22, 2


def install(output: int) -> None:
    """Give up privileges and install the filter for this process, for good. Raises FilterError."""
    machine = os.uname().machine
    architecture = ARCHITECTURES.get(machine)
    if architecture is None:
        raise FilterError(f"no system call table for {machine}")
    steps = filter_program(architecture, output)
    buffer = ctypes.create_string_buffer(steps, len(steps))
    program = _Program(len(steps) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    if library.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise FilterError(f"prctl(PR_SET_NO_NEW_PRIVS) failed: errno {ctypes.get_errno()}")
    if library.prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program), 0, 0):
        raise FilterError(f"prctl(PR_SET_SECCOMP) failed: errno {ctypes.get_errno()}")


def self_test() -> None:
    """Try what the filter refuses. Raises FilterError when anything succeeds, so that nothing untrusted runs."""
    library = ctypes.CDLL(None, use_errno=True)
    attempts = {
        "open": lambda: os.open("/", os.O_RDONLY),
        "stat": lambda: os.stat("/"),
        "kill": lambda: os.kill(os.getpid(), 0),
        "write": lambda: os.write(2, b""),
        "socket": lambda: _called(library, "socket", 1, 1, 0),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except PermissionError:
            continue
        except OSError as error:
            raise FilterError(f"{name} failed with errno {error.errno} instead of being refused") from None
        raise FilterError(f"{name} was not refused")


def _called(library: ctypes.CDLL, name: str, *arguments: int) -> None:
    if getattr(library, name)(*arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
