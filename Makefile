# Each target sets up what it needs in .venv by itself; see scripts/setup.sh. Needs only Python >= 3.11 with pip.
.PHONY: demo test test-vllm check format

demo:
	@sh scripts/setup.sh demo
	@.venv/bin/rubricate demo

test:
	@sh scripts/setup.sh dev
	@.venv/bin/python -m pytest -q

# Against a real vLLM on CPU, in an environment of its own (.venv-vllm, 3.5 GB; Linux on x86-64).
test-vllm:
	@sh scripts/setup.sh dev
	@sh scripts/test_vllm.sh

check:
	@sh scripts/setup.sh dev
	@sh scripts/check.sh

format:
	@sh scripts/setup.sh dev
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .
