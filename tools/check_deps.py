"""Check what is linked into the extension against deny.toml: licences, banned crates, sources.

Reads `cargo metadata` for the crates that mxnp-py pulls in, without the development dependencies.
Understands the part of cargo-deny's format that deny.toml uses.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent


def linked(metadata: dict, root: str) -> list[dict]:
    """The packages that `root` needs at build or run time, itself included."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [id for id, package in packages.items() if package["name"] == root]
    seen: set[str] = set()
    while todo:
        id = todo.pop()
        if id not in seen:
            seen.add(id)
            todo += [
                dep["pkg"]
                for dep in nodes[id]["deps"]
                if any(kind["kind"] in (None, "build") for kind in dep["dep_kinds"])
            ]
    return sorted((packages[id] for id in seen), key=lambda package: package["name"])


def licence_allowed(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be met with the allowed licences (`OR` and `/` give a choice)."""
    text = expression.replace("/", " OR ")
    words = re.findall(r"\(|\)|(?:[\w.+-]+(?: WITH [\w.+-]+)?)", text)
    spelled = {"AND": "and", "OR": "or", "(": "(", ")": ")"}
    python = " ".join(spelled.get(word, str(word in allowed)) for word in words)
    return bool(eval(python, {"__builtins__": {}}))  # only True, False, and, or, brackets


def findings(metadata: dict, rules: dict) -> tuple[list[str], list[str]]:
    """Errors and warnings."""
    errors, warnings = [], []
    allowed = set(rules["licenses"]["allow"])
    banned = {entry["crate"]: entry["reason"] for entry in rules["bans"]["deny"]}
    versions = defaultdict(set)
    for package in linked(metadata, "mxnp-py"):
        name, version, licence = package["name"], package["version"], package["license"] or ""
        versions[name].add(version)
        if not licence or not licence_allowed(licence, allowed):
            errors.append(f"{name} {version}: licence {licence or 'not stated'} is not in deny.toml")
        if name in banned:
            errors.append(f"{name} {version} is banned: {banned[name]}")
        if package["source"] and not package["source"].startswith("registry+"):
            errors.append(f"{name} {version} comes from {package['source']}, not from the registry")
    for name, found in versions.items():
        if len(found) > 1:
            warnings.append(f"{name} is linked in {len(found)} versions: {', '.join(sorted(found))}")
    return errors, warnings


def main() -> int:
    """Print what was found; 1 when something is not allowed."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    errors, warnings = findings(metadata, tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8")))
    for line in warnings:
        print(f"note: {line}")
    for line in errors:
        print(f"error: {line}")
    print(f"deps: {len(linked(metadata, 'mxnp-py'))} crates linked, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
