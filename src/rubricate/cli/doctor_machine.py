"""What this machine has and how it is set: Python, processors, memory, GPU, variables, the cache folder."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import urlsplit

from rubricate.chat.local_source import cache_root

__all__ = ["cache_facts", "gpu_facts", "machine_facts", "variable_facts"]

SECRETS = ("OPENAI_API_KEY", "RUBRICATE_API_KEY", "HF_TOKEN")
ADDRESSES = ("OPENAI_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY")
PLAIN = ("RUBRICATE_CACHE", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_OFFLINE", "CUDA_VISIBLE_DEVICES")
THREADS = "OMP_"
FILES = 20_000
"""Files of the cache that are counted; beyond that its size is a lower bound."""


def machine_facts(proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> dict[str, object]:
    """Python, platform, processors and memory; container limits where they are tighter.

    Memory is in bytes, None where the system does not say.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "cpus_usable": _least(allowed, _cpu_quota(cgroup)),
        "memory": _least(_memory(), _number(cgroup / "memory.max")),
        "memory_available": _available(proc),
    }


def _least(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return min(known, default=None)


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _available(proc: Path) -> int | None:
    for line in _text(proc / "meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _cpu_quota(cgroup: Path) -> float | None:
    """CPUs that a container may use, by cgroup v2."""
    quota, _, period = _text(cgroup / "cpu.max").strip().partition(" ")
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def gpu_facts(*, ask_torch: bool = False, proc: Path = Path("/proc")) -> dict[str, object]:
    """GPUs that the driver names, and those that torch sees.

    Importing torch takes seconds: it is asked only if the caller wishes, or if it is loaded already. A CPU build
    sees none and need not be asked. `torch` is its version, None where it is not installed.
    """
    folder = proc / "driver" / "nvidia" / "gpus"
    cards = [_model(_text(path)) for path in sorted(folder.glob("*/information"))] if folder.is_dir() else []
    try:
        torch = version("torch")
    except PackageNotFoundError:
        torch = None
    facts: dict[str, object] = {"driver_sees": cards, "torch": torch, "torch_sees": None}
    if torch is None or torch.endswith("+cpu"):
        return facts if torch is None else {**facts, "torch_sees": list[str]()}
    if ask_torch or "torch" in sys.modules:
        facts["torch_sees"] = _seen_by_torch()
    return facts


def _model(information: str) -> str:
    line = next((line for line in information.splitlines() if line.startswith("Model:")), "")
    return line.partition(":")[2].strip() or "unnamed"


def _seen_by_torch() -> list[str]:
    import torch

    if torch.cuda.is_available():
        return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return ["Apple GPU (mps)"] if torch.backends.mps.is_available() else []


def variable_facts(environ: Mapping[str, str] = os.environ) -> dict[str, str | None]:
    """Variables that matter, None for those not set. Keys show as "set", addresses without what may be secret."""
    facts = dict[str, str | None]()
    for name in SECRETS:
        facts[name] = "set" if environ.get(name) else None
    for name in ADDRESSES:
        facts[name] = _address(environ.get(name) or "")
    for name in (*PLAIN, *sorted(name for name in environ if name.startswith(THREADS))):
        facts[name] = environ.get(name) or None
    return facts


def _address(value: str) -> str | None:
    """Scheme, host, port and path of an address, as far as it has them."""
    if not value:
        return None
    try:
        parts = urlsplit(value)
        host = f"{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")
    except ValueError:
        return "set"
    return f"{parts.scheme}://{host}{parts.path}" if host else "set"


def cache_facts(root: Path | None = None) -> dict[str, object]:
    """Place and size of the cache folder, whether it can be written, and what is free on its disk, in bytes.

    Nothing is created. A cache of very many files is counted in part, and `complete` is then false.
    """
    root = root or cache_root()
    size, files, complete = _size(root)
    place = next((path for path in (root, *root.parents) if os.path.exists(path)), Path("/"))
    return {
        "folder": str(root),
        "exists": os.path.isdir(root),
        "bytes": size,
        "files": files,
        "complete": complete,
        "writable": os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK),
        "disk_free": shutil.disk_usage(place).free,
    }


def _size(root: Path) -> tuple[int, int, bool]:
    size = files = 0
    for folder, _, names in os.walk(root):
        for name in names:
            if files == FILES:
                return size, files, False
            files += 1
            try:
                size += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # gone by now
                continue
    return size, files, True
