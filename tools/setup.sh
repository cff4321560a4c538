#!/usr/bin/env bash
# Make .venv if there is none, and install the project into it, editable, with the extras named.
#
#   tools/setup.sh dev,delta
#
# PYTHON=/path/to/python3.12 in the environment picks the interpreter.

set -euo pipefail
cd "$(dirname "$0")/.."

# Runs it, rather than trusting its name: a version manager's shim may point at nothing, and
# Debian's python3 comes without the parts that make a virtual environment.
fits() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}
makes_venvs() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}
find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.12 python3.13 python3.11 python3.10 python3 python}; do
        if fits "$candidate" && makes_venvs "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

if [[ ! -e .venv/bin/python && ! -L .venv/bin/python ]]; then
    python=$(find_python) || {
        [[ -z ${PYTHON:-} ]] && tools/apt_install.sh python3-venv && python=$(find_python)
    } || {
        echo "rocketpy needs Python 3.10 to 3.13 with its venv module, and found none${PYTHON:+ at $PYTHON}." >&2
        echo "Install one (Debian, Ubuntu: apt install python3-venv) or name one: PYTHON=/path/to/python3 make ..." >&2
        exit 1
    }
    "$python" -m venv .venv
elif ! fits .venv/bin/python; then
    echo ".venv holds no working Python 3.10 to 3.13: remove the folder and run this again." >&2
    exit 1
fi

# An environment made by uv has no pip of its own.
.venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
echo "Installing rocketpy-spark[$1] into .venv ..." >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$1]"
