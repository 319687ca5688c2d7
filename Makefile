# Each target sets up what it needs in .venv by itself; see scripts/setup.sh. Needs only Python >= 3.11 with pip.
.PHONY: demo test check format

demo:
	@sh scripts/setup.sh demo
	@.venv/bin/rubricate demo

test:
	@sh scripts/setup.sh dev
	@.venv/bin/python -m pytest -q

check:
	@sh scripts/setup.sh dev
	@sh scripts/check.sh

format:
	@sh scripts/setup.sh dev
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .
