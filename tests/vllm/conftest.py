"""A real vLLM for these tests: `make test-vllm` starts one and says where; without it they are skipped."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def server_url() -> str:
    """The address of a running vLLM server with SmolLM2."""
    url = os.environ.get("RUBRICATE_VLLM_URL", "")
    if not url:
        pytest.skip("no vLLM server: run make test-vllm")
    return url


@pytest.fixture(scope="session")
def model_dir() -> Path:
    """A directory with SmolLM2, where vLLM is installed in this environment."""
    folder = os.environ.get("RUBRICATE_VLLM_MODEL", "")
    if importlib.util.find_spec("vllm") is None or not folder:
        pytest.skip("vLLM is not installed here: run make test-vllm")
    return Path(folder)
