#!/bin/sh
# Everything that must hold besides the tests: style, types, layers, and documentation that runs.
set -eu
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"
echo "== ruff"
ruff check .
ruff format --check .
echo "== layers"
lint-imports
echo "== types"
pyright
echo "== documentation"
python scripts/run_docs.py README.md CONTRIBUTING.md docs
