#!/usr/bin/env bash
# Rewrite constraints.txt with the newest versions of everything the extras ask for. $1: the Python to use.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" -m venv "$folder"
"$folder/bin/python" tools/extra.py dev docs examples | "$folder/bin/python" -m pip install -q -r /dev/stdin
{ grep '^#' constraints.txt; "$folder/bin/python" -m pip freeze; } > "$folder/constraints.txt"
mv "$folder/constraints.txt" constraints.txt
git diff --stat -- constraints.txt
