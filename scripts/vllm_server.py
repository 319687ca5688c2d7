"""Run a command beside a vLLM server on CPU: vllm_server.py [OPTIONS] COMMAND [ARGUMENT...]

The command finds the server's address in RUBRICATE_VLLM_URL, and its process group in RUBRICATE_VLLM_PID.
The server listens on this machine only, on a free port, and is stopped when the command ends, whatever way it ends.
Its log goes to out/vllm_server.log.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
START_S = 240.0
STOP_S = 20.0
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "2",  # GiB
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_SERVER_DEV_MODE": "1",  # for /reset_prefix_cache, which the benchmark uses
    "HF_HUB_OFFLINE": "1",
    "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin while they wait are many times slower on a busy machine
}


def main() -> int:
    """Start, wait, run, stop. Returns the command's exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--python", default=str(ROOT / ".venv-vllm/bin/python"), help="of the environment with vLLM"
    )
    parser.add_argument("--model", help="model directory; SmolLM2 out of its package by default")
    parser.add_argument("--block-size", default="32", help="tokens of a cache block")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("name a command")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    log = ROOT / "out" / "vllm_server.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as output:
        port = free_port()
        started = time.monotonic()
        server = start(options.python, options.model or smollm2(), port, options.block_size, output)
        try:
            wait_for(server, port, log)
            print(f"vLLM answers after {time.monotonic() - started:.0f} s", flush=True)
            address = {"RUBRICATE_VLLM_URL": f"http://127.0.0.1:{port}/v1", "RUBRICATE_VLLM_PID": str(server.pid)}
            environment = {**os.environ, **address}
            return subprocess.run(options.command, env=environment, check=False).returncode
        finally:
            stop(server)


def smollm2() -> str:
    """The directory of the converted SmolLM2."""
    from rubricate.chat.vllm import model_folder

    return str(model_folder("smollm2"))


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start(python: str, model: str, port: int, block: str, output: object) -> subprocess.Popen[bytes]:
    """The server's process, in a session of its own, so that its children can be ended with it."""
    cores = sorted(os.sched_getaffinity(0))
    settings = {
        **SETTINGS,
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores)),
        "OMP_NUM_THREADS": str(len(cores)),
    }
    arguments = f"--model {model} --served-model-name smollm2 --host 127.0.0.1 --port {port}".split()
    # Only whole blocks are shared: with 128 tokens (the default on CPUs, 16 on GPUs) a call repeats up to 127.
    arguments += ["--block-size", block]
    # eager: compiling takes longer than all tests; with token details: they say what was cached
    arguments += "--dtype bfloat16 --enforce-eager --enable-prompt-tokens-details".split()
    return subprocess.Popen(
        [python, "-m", "vllm.entrypoints.openai.api_server", *arguments],
        env={**settings, **os.environ},
        stdout=output,  # type: ignore[arg-type]
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until the server answers. Exits with the end of its log when it ends, or takes too long."""
    until = time.monotonic() + START_S
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(urllib.error.URLError, OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
                if reply.status == 200:
                    return
        time.sleep(0.5)
    why = "ended" if server.poll() is not None else f"does not answer after {START_S:.0f} s"
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
    sys.exit(f"{tail}\nthe vLLM server {why}; its log is {log}")


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server and its children, by force where they do not go."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(STOP_S)


if __name__ == "__main__":
    sys.exit(main())
