"""The checkers of tools/ find what they are there to find, and nothing else."""

import pytest

import check_deps
import check_sizes
import check_vectors
import extra
import wheel_size


def check(name, text, exceptions=None):
    """The report on one file."""
    report = check_sizes.Report(exceptions or {})
    check_sizes.check_file(name, text, report)
    return report


def test_rust_functions_are_measured_past_braces_in_strings_comments_and_lifetimes():
    code = """//! Head.
fn first<'a>(x: &'a [u8; 4]) -> char {
    let s = "}"; // }
    let r = r#"fn hidden() { "}" "#; /* { */
    if s == r { '}' } else { '\\'' }
}
trait T { fn declared(&self, x: [u8; 2]); fn given(&self) {} }
"""
    assert check_sizes.rust_functions(code) == [("first", 5), ("given", 1)]


def test_python_docstrings_do_not_count():
    code = 'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n'
    assert check_sizes.python_functions(code) == [("f", 2)]


@pytest.mark.parametrize(
    ("name", "lines", "errors", "warnings"),
    [
        ("a/b.rs", 500, 0, 0),
        ("a/b.rs", 501, 0, 1),
        ("a/b.rs", 801, 1, 0),
        ("a/lib.rs", 121, 1, 0),
        ("a/__init__.py", 121, 1, 0),
        ("a/tests/common/mod.rs", 121, 0, 0),
    ],
)
def test_limits_of_files(name, lines, errors, warnings):
    head = "//! Head." if name.endswith("rs") else '"""Head."""'
    report = check(name, "\n".join([head] + [""] * (lines - 1)))
    assert (len(report.errors), len(report.warnings)) == (errors, warnings)


@pytest.mark.parametrize(("body", "errors", "warnings"), [(58, 0, 0), (59, 0, 1), (98, 0, 1), (99, 1, 0)])
def test_limits_of_functions(body, errors, warnings):
    report = check("a/b.rs", "//! Head.\nfn f() {\n" + "    g();\n" * body + "}\n")
    assert (len(report.errors), len(report.warnings)) == (errors, warnings)


def test_an_exception_raises_the_limit_and_must_be_needed():
    entry = {"path": "a/b.rs", "name": "f", "lines": 150, "reason": "one table"}
    long = "//! Head.\nfn f() {\n" + "    g();\n" * 120 + "}\n"
    report = check("a/b.rs", long, {"function": [entry]})
    report.unused_exceptions()
    assert report.errors == []
    report = check("a/b.rs", "//! Head.\nfn f() {}\n", {"function": [entry]})
    report.unused_exceptions()
    assert report.errors == ["size_exceptions.toml: a/b.rs: f needs no exception"]


@pytest.mark.parametrize(
    ("name", "text", "finding"),
    [
        ("a.py", '"""Head."""\n# ' + "fixme".upper() + ": no\n", "must be fixed"),
        ("a.rs", "//! Head.\n// " + "todo".upper() + "\n", "says why"),
        ("a.rs", "//! Head.\n// TODO: why it waits\n", None),
        ("a.md", "See " + "/HOME/someone/file.\n".lower(), "one machine"),
        ("a.py", "import os\n", "no comment"),
        ("a.py", "#!/usr/bin/env python\n'''Head.'''\n", "no comment"),
        ("a.py", '#!/usr/bin/env python\n"""Head."""\n', None),
        ("a.rs", "use std::fmt;\n", "no comment"),
        ("a.cu", "// Head.\n", None),
        ("a.sh", "#!/bin/sh\n", None),
        ("a/__init__.py", "", None),
    ],
)
def test_headers_and_marks(name, text, finding):
    errors = check(name, text).errors
    assert (finding in errors[0] and len(errors) == 1) if finding else errors == []


def test_a_table_may_be_long_but_not_out_of_order():
    rows = [f'    Row("{i:04}"),' for i in range(900)]
    head = ['r"""Rows.', "", 'sorted table: Row."(\\w+)', '"""', "ROWS = ["]
    assert check("t.py", "\n".join([*head, *rows, "]"])).errors == []
    rows[5], rows[6] = rows[6], rows[5]
    assert "out of order" in check("t.py", "\n".join([*head, *rows, "]"])).errors[0]


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("MIT", True),
        ("MIT/GPL-3.0", True),
        ("GPL-3.0", False),
        ("MIT AND GPL-3.0", False),
        ("(MIT OR GPL-3.0) AND Zlib", True),
        ("Apache-2.0 WITH LLVM-exception", False),
    ],
)
def test_licence_expressions(expression, answer):
    assert check_deps.licence_allowed(expression, {"MIT", "Zlib", "Apache-2.0"}) is answer


def metadata(name, licence="MIT", kind=None, source="registry+x"):
    """`cargo metadata` of mxnp-py with one dependency."""
    root = {"id": "0", "name": "mxnp-py", "version": "1.0.0", "license": "MIT", "source": None}
    other = {"id": "1", "name": name, "version": "2.0.0", "license": licence, "source": source}
    deps = [{"pkg": "1", "dep_kinds": [{"kind": kind}]}]
    nodes = [{"id": "0", "deps": deps}, {"id": "1", "deps": []}]
    return {"packages": [root, other], "resolve": {"nodes": nodes}}


RULES = {"licenses": {"allow": ["MIT"]}, "bans": {"deny": [{"crate": "bad", "reason": "it hangs"}]}}


@pytest.mark.parametrize(
    ("data", "finding"),
    [
        (metadata("good"), None),
        (metadata("bad"), "banned: it hangs"),
        (metadata("bad", kind="dev"), None),
        (metadata("bad", kind="build"), "banned"),
        (metadata("good", licence="GPL-3.0"), "GPL-3.0"),
        (metadata("good", licence=None), "not stated"),
        (metadata("good", source="git+there"), "not from the registry"),
    ],
)
def test_dependencies(data, finding):
    errors, _ = check_deps.findings(data, RULES)
    assert (finding in errors[0] and len(errors) == 1) if finding else errors == []


def test_extras_follow_each_other():
    table = {"dev": ["mxnp[test]", "ruff"], "test": ["pytest", "scipy"]}
    assert extra.requirements(["dev"], table) == ["pytest", "ruff", "scipy"]
    with pytest.raises(KeyError):
        extra.requirements(["nothing"], table)


@pytest.mark.parametrize(
    ("symbol", "part"),
    [
        ("mxnp_core::ops::arith::add::<f32>", "core/ops/arith"),
        ("<mxnp_core::kernel::reduce::Fold as core::ops::FnOnce>::call", "core/kernel"),
        ("core::ptr::drop_in_place::<mxnp_engine::pool::Worker>", "engine/pool"),
        ("<_core::array::Array>::add", "py/array"),
        ("core::ptr::drop_in_place::<gemm::Plan>", "crate gemm"),
        ("core::fmt::write", "crate core"),
        ("memcpy", "other"),
    ],
)
def test_symbols_are_counted_where_they_come_from(symbol, part):
    assert wheel_size.family(symbol) == part


def faults(name, *code):
    """What is wrong with a function of this name and machine code, listed between two others."""
    lines = [f"   10:\t{line}" for line in code]
    other = ["0000000000000020 <core::fmt::write>:", "   20:\tcall   30 <elsewhere>"]
    listing = [*other, f"0000000000000010 <{name}>:", *lines, "", *other]
    return [
        fault.partition(name + " ")[2] for body in check_vectors.bodies(listing) for fault in body.faults()
    ]


def test_kernels_that_do_not_use_their_set_are_found():
    step = "mxnp_core::kernel::step::unary_of::avx512"
    wide, single = "vaddps (%rsi),%zmm0,%zmm0", "vaddss %xmm1,%xmm0,%xmm0"
    assert faults(step, wide, "call   a0 <memcpy@plt>", "ret") == []
    assert faults(step, "mov    %rax,%rbx") == ["uses no vector of its set"]
    assert faults(step, wide, single, "vcvttss2si %xmm0,%eax") == ["works on single elements"]
    assert faults(step.replace("avx512", "avx2"), wide, single, "vcvttss2si %xmm0,%rax") == []
    assert faults(step, wide, "vgatherqps (%rax,%zmm1,1),%ymm0{%k1}") == [
        "gathers elements that lie side by side"
    ]
    closure = "mxnp_core::kernel::step::body::{{closure}}"
    assert faults(step, wide, f"call   a0 <{closure}>") == [f"calls {closure}, which is baseline code"]
    assert faults("mxnp_core::kernel::step::unary_of::baseline", single) == []
    assert faults("mxnp_core::ops::nn_pool::plane::sum::avx2", single) == []
