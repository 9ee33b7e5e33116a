"""Check the size and the form of every source file: the rules of CONTRIBUTING.md that no other tool knows.

Lengths of files and functions, a header that says what a file is for, no FIXME, no TODO without a reason, no
path of somebody's machine. Fails with one line per finding; what is only long is reported and passes.
A file that is one big table (`sorted table: REGEX` in its first lines) may have any length, but the first
group of REGEX must ascend over the lines that match it.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE_WARN, FILE_FAIL, LIST_FAIL = 500, 800, 120
FUNCTION_WARN, FUNCTION_FAIL = 60, 100
LISTS = {"lib.rs", "mod.rs", "__init__.py"}
SOURCES = {".rs", ".py", ".pyi", ".cu", ".cuh", ".sh"}
HEADERS = {".rs": "//", ".cu": "//", ".cuh": "//", ".sh": "#"}
TABLE = re.compile(r"sorted table: (.+)")
FIXME = re.compile(r"(?://[/!]?|#|/\*)\s*FIXME\b")
BARE_TODO = re.compile(r"(?://[/!]?|#|/\*)\s*TODO\b(?!\S*[:(]\s*\S+\s+\S+)")
# The brackets keep it from matching itself.
MACHINE_PATH = re.compile(r"/(?:[h]ome|[U]sers)/\w+|/[r]oot/|/[w]ork/")


@dataclass
class Report:
    """What was found: `errors` fail the check, `warnings` do not."""

    exceptions: dict[str, list[dict]]
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    used: set[tuple[str, str]] = field(default_factory=set)

    def length(self, kind: str, path: str, name: str, lines: int, warn: int, fail: int) -> None:
        """Hold `lines` against the limits, or against the listed exception."""
        where = f"{path}: {name}" if name else path
        for entry in self.exceptions.get(kind, []):
            if entry["path"] == path and entry.get("name", "") == name and lines > fail:
                self.used.add((path, name))
                fail = entry["lines"]
        if lines > fail:
            self.errors.append(f"{where} has {lines} lines, allowed are {fail}")
        elif lines > warn:
            self.warnings.append(f"{where} has {lines} lines, aim for {warn}")

    def unused_exceptions(self) -> None:
        """An exception that nothing needs is an error: lists decay when nobody checks them."""
        for entry in [*self.exceptions.get("file", []), *self.exceptions.get("function", [])]:
            if (entry["path"], entry.get("name", "")) not in self.used:
                name = entry.get("name", "the file")
                self.errors.append(f"size_exceptions.toml: {entry['path']}: {name} needs no exception")
            if not entry.get("reason"):
                self.errors.append(f"size_exceptions.toml: {entry['path']} gives no reason")


def blank_rust(text: str) -> str:
    """`text` with comments, strings and character literals blanked, so that braces mean what they say."""
    pattern = re.compile(
        r"//[^\n]*|/\*.*?\*/"
        r'|b?r(#*)".*?"\1'
        r'|b?"(?:\\.|[^"\\])*"'
        r"|b?'(?:\\[^\n]{1,10}?|[^'\\\n])'",
        re.DOTALL,
    )
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def body_start(code: str, at: int) -> int | None:
    """Where the `{` of a function's body is, its signature ending at or after `at`; None without a body."""
    brackets = 0
    for match in re.finditer(r"[\[\]{;]", code[at:]):
        if match[0] in "[]":  # a `;` inside brackets belongs to an array type
            brackets += 1 if match[0] == "[" else -1
        elif match[0] == "{" or brackets == 0:
            return at + match.start() if match[0] == "{" else None
    return None


def rust_functions(text: str) -> list[tuple[str, int]]:
    """Name and number of lines of each function with a body, from its `fn` to its closing brace."""
    code = blank_rust(text)
    found = []
    for match in re.finditer(r"\bfn\s+(\w+)", code):
        start = body_start(code, match.end())
        if start is None:
            continue
        depth = 0
        for brace in re.finditer(r"[{}]", code[start:]):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                found.append((match[1], code.count("\n", match.start(), start + brace.end()) + 1))
                break
    return found


def python_functions(text: str) -> list[tuple[str, int]]:
    """Name and number of lines of each function, its docstring and decorators not counted."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node, clean=False) is not None:
                lines -= (first.end_lineno or first.lineno) - first.lineno + 1
            found.append((node.name, lines))
    return found


def has_header(path: Path, text: str) -> bool:
    """Whether the file opens with a comment or docstring."""
    if path.suffix in {".py", ".pyi"}:
        first = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#!"))
        return first.lstrip().startswith(('"""', 'r"""')) or (path.suffix == ".pyi" and first.startswith("#"))
    mark = HEADERS.get(path.suffix)
    return mark is None or text.startswith((mark, "/*")) or path.name == "Cargo.toml"


def check_table(path: str, text: str, report: Report) -> bool:
    """Whether the file is marked as a sorted table; reports the first line out of order."""
    mark = TABLE.search("\n".join(text.splitlines()[:12]))
    if mark is None or path.startswith("tools/"):
        return False
    previous = ""
    rows = [m[1] for m in map(re.compile(mark[1]).search, text.splitlines()) if m]
    for row in rows:
        if row < previous:
            report.errors.append(f"{path}: the table is out of order: {row} comes after {previous}")
            break
        previous = row
    if len(rows) < 2:
        report.errors.append(f"{path}: no rows match its `sorted table` marker")
    return True


def check_file(name: str, text: str, report: Report) -> None:
    """Every check of one file; `name` is its path from the root."""
    path = Path(name)
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, what in (
            (FIXME, "FIXME must be fixed before it lands"),
            (BARE_TODO, "a TODO says why it is left: `TODO: reason`"),
            (MACHINE_PATH, "a path that exists on one machine only"),
        ):
            if pattern.search(line):
                report.errors.append(f"{name}:{number}: {what}")
    if text.strip() and not has_header(path, text):
        report.errors.append(f"{name}: opens with no comment that says what the file owns")
    if path.suffix not in SOURCES:
        return
    lines = text.count("\n") + 1
    if not check_table(name, text, report):
        # Below tests/ a mod.rs is not a list: it is how cargo's tests share helpers.
        limit = LIST_FAIL if path.name in LISTS and "tests" not in path.parts else FILE_FAIL
        report.length("file", name, "", lines, min(limit, FILE_WARN), limit)
    functions = []
    if path.suffix == ".rs":
        functions = rust_functions(text)
    elif path.suffix == ".py":
        functions = python_functions(text)
    for function, length in functions:
        report.length("function", name, function, length, FUNCTION_WARN, FUNCTION_FAIL)


def tracked_files() -> list[str]:
    """Every file git knows or would add, without what it ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def main() -> int:
    """Check the tree; 1 when something must be mended."""
    exceptions = tomllib.loads((ROOT / "tools/size_exceptions.toml").read_text(encoding="utf-8"))
    report = Report(exceptions)
    for name in tracked_files():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or a data file
        if name not in {"LICENSE", "Cargo.lock"}:
            check_file(name, text, report)
    report.unused_exceptions()
    for line in report.warnings:
        print(f"long: {line}")
    for line in report.errors:
        print(f"error: {line}")
    print(f"sizes: {len(report.errors)} errors, {len(report.warnings)} long")
    return 1 if report.errors else 0


if __name__ == "__main__":
    sys.exit(main())
