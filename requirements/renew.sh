#!/bin/sh
# Writes requirements/all.txt: what both distributions (all extras) and the tools need, one hashed file for Python 3.11 to 3.14.
# Keeps the versions already there where they still fit; --upgrade takes the newest.
set -eu
cd "$(dirname "$0")/.."
bin=${VENV:-.venv}/bin

# uv is used here alone, so the environment of everybody else goes without it.
"$bin/python" -m pip --disable-pip-version-check --no-input --quiet install "uv>=0.9"
"$bin/python" -m uv pip compile --quiet --universal --python-version 3.11 \
    --no-header --no-emit-index-url --no-emit-find-links --generate-hashes \
    --all-extras --no-emit-package tidework "$@" \
    worker/pyproject.toml operator/pyproject.toml --group pyproject.toml:tools \
    --output-file requirements/all.txt
