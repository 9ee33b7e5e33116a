"""The training loop of examples/fashion_mnist.py in PyTorch, to compare the time of an epoch.

    PYTHON_WITH_TORCH benches/epoch_torch.py mlp|lenet [epochs]

Same networks, batches, optimizer and per-batch metrics, and 2 threads. Prints the mean time of an epoch and the
test accuracy, as the example does for mxnp and, with `--backend mxnet`, for MXNet.
"""

import gzip
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn

FOLDER = Path("/usr/share/datasets/fashion-mnist")


def read_idx(name: str) -> torch.Tensor:
    """One file of the data set as a tensor of bytes."""
    data = gzip.decompress((FOLDER / f"{name}-ubyte.gz").read_bytes())
    ndim = data[3]
    shape = struct.unpack(f">{ndim}I", data[4 : 4 + 4 * ndim])
    return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * ndim).reshape(shape).copy())


def load(part: str) -> torch.utils.data.TensorDataset:
    """Images of 0 to 1 and labels."""
    images = read_idx(f"{part}-images-idx3").float().div(255)[:, None]
    return torch.utils.data.TensorDataset(images, read_idx(f"{part}-labels-idx1").long())


def batches(data: torch.utils.data.TensorDataset, size: int, shuffle: bool) -> Iterator[Any]:
    """Whole batches at once, which is the fastest way PyTorch has for tensors in memory."""
    images, labels = data.tensors
    order = torch.randperm(len(labels)) if shuffle else torch.arange(len(labels))
    for start in range(0, len(labels), size):
        rows = order[start : start + size]
        yield images[rows], labels[rows]


def make_network(model: str) -> nn.Sequential:
    """The networks of the example."""
    if model == "mlp":
        sizes = [nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)]
        return nn.Sequential(nn.Flatten(), *sizes)
    return nn.Sequential(
        *(nn.Conv2d(1, 20, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2, 2)),
        *(nn.Conv2d(20, 50, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2, 2)),
        *(nn.Flatten(), nn.Linear(50 * 7 * 7, 120), nn.ReLU(), nn.Linear(120, 10)),
    )


def main(model: str, epochs: int) -> None:
    """Train, and print what the example prints."""
    torch.manual_seed(1)
    torch.set_num_threads(2)
    train, test = load("train"), load("t10k")
    net = make_network(model)
    rate = {"mlp": 0.1, "lenet": 0.05}[model]
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * 469, rate / 100)
    seconds = []
    for _ in range(epochs):
        start = time.perf_counter()
        total, right = 0.0, 0
        for images, labels in batches(train, 128, shuffle=True):
            optimizer.zero_grad()
            scores = net(images)
            loss = nn.functional.cross_entropy(scores, labels)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(labels)
            right += (scores.argmax(1) == labels).sum().item()
        seconds.append(time.perf_counter() - start)
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in batches(test, 1000, shuffle=False))
    print(f"mean time of an epoch: {sum(seconds) / epochs:.2f} s")
    print(f"test accuracy: {right / len(test):.3f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3)
