"""The Fashion-MNIST example from its command line, on a small set written here in the real format."""

import gzip
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as onp
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_mnist.py"


def run(*arguments, **environment):
    pytest.importorskip("tqdm")
    pytest.importorskip("matplotlib")
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def easy_set(tmp_path):
    """Ten kinds of images, told apart by which of ten stripes is bright."""
    folder = tmp_path / "easy"
    folder.mkdir()
    generator = onp.random.default_rng(0)
    for part, count in (("train", 1500), ("t10k", 200)):
        labels = (onp.arange(count) % 10).astype("uint8")
        images = generator.integers(0, 60, (count, 28, 28), "uint8")
        for image, label in zip(images, labels, strict=True):
            image[2 * label : 2 * label + 8] += 150
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            (folder / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes()))
    return folder


@pytest.mark.parametrize(
    ("model", "options", "least"),
    [("mlp", [], 0.9), ("mlp", ["--workers", "2"], 0.9), ("lenet", ["--limit", "600"], 0.5)],
)
def test_learns_and_saves(model, options, least, easy_set, tmp_path):
    out = tmp_path / "out"
    done = run(
        "--data", easy_set, "--out", out, "--model", model, "--epochs", 3, "--batch-size", 50, *options
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len([line for line in lines if re.match(r"epoch +\d/3: loss \d+\.\d+, train accuracy", line)]) == 3
    last = re.fullmatch(r"test accuracy: (\d\.\d{3})", lines[-1])
    assert last, lines[-1]
    assert float(last[1]) >= least
    assert (out / f"{model}.params").stat().st_size > 1000
    assert (out / f"{model}.png").read_bytes().startswith(b"\x89PNG")
    assert "%|" in done.stderr  # the progress bar


def test_same_seed_same_result(easy_set, tmp_path):
    lines = []
    for workers in (0, 1):
        done = run(
            "--data", easy_set, "--out", tmp_path / "out", "--epochs", 1, "--limit", 500, "--workers", workers
        )
        assert done.returncode == 0, done.stderr
        lines.append(re.findall(r"loss \d+\.\d+, train accuracy \d\.\d+, test accuracy \d\.\d+", done.stdout))
    assert lines[0]
    assert lines[0] == lines[1]


def test_a_folder_without_the_files(tmp_path):
    done = run("--data", tmp_path)
    assert done.returncode == 1
    assert f"there is no Fashion-MNIST in {tmp_path}" in done.stderr
