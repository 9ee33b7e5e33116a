"""Train a network on Fashion-MNIST: an MLP, or LeNet with `--model lenet`.

The network, loss, trainer and loop are plain Gluon: `--backend mxnet` runs the same code under MXNet 2.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import os
import struct
import time
import urllib.request
from pathlib import Path

import numpy
from tqdm import tqdm

FILES = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
SOURCE = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/gluon/dataset/fashion-mnist/"
SECONDS_TO_CONNECT = 5
# What each model is trained with when the command line does not say.
DEFAULTS = {"mlp": {"lr": 0.1, "epochs": 10}, "lenet": {"lr": 0.05, "epochs": 6}}


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=sorted(DEFAULTS), default="mlp")
    parser.add_argument("--epochs", type=int, help="default: 10 (mlp), 6 (lenet)")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, help="learning rate; default: 0.1 (mlp), 0.05 (lenet)")
    parser.add_argument("--data", type=Path, help="folder with the four Fashion-MNIST files")
    parser.add_argument(
        "--out", type=Path, default=Path("fashion_mnist_out"), help="folder for parameters and picture"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0, help="worker processes of the data loader")
    parser.add_argument("--hybridize", action="store_true", help="compile the network")
    parser.add_argument("--limit", type=int, help="use only the first images of each set, for a quick try")
    parser.add_argument("--backend", choices=["mxnp", "mxnet"], default=os.environ.get("BACKEND", "mxnp"))
    arguments = parser.parse_args()
    for name, value in DEFAULTS[arguments.model].items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    return arguments


ARGUMENTS = parse_arguments()
mx = importlib.import_module(ARGUMENTS.backend)
autograd, gluon, np, npx = mx.autograd, mx.gluon, mx.np, mx.npx
nn = gluon.nn


def make_network(model: str) -> gluon.Block:
    """The network: images (batch, 1, height, width) of 0 to 1 to ten scores."""
    net = nn.HybridSequential()
    if model == "mlp":
        net.add(
            nn.Flatten(), nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(10)
        )
    else:
        net.add(
            nn.Conv2D(channels=20, kernel_size=5, padding=2, activation="relu"),
            nn.MaxPool2D(pool_size=2, strides=2),
            nn.Conv2D(channels=50, kernel_size=5, padding=2, activation="relu"),
            nn.MaxPool2D(pool_size=2, strides=2),
            nn.Flatten(),
            nn.Dense(120, activation="relu"),
            nn.Dense(10),
        )
    return net


def evaluate(net: gluon.Block, batches: gluon.data.DataLoader) -> float:
    """The share of images that `net` recognises."""
    metric = gluon.metric.Accuracy()
    for images, labels in batches:
        metric.update(labels, net(images))
    return metric.get()[1]


def train_epoch(net, batches, loss_function, trainer, bar) -> tuple[float, float]:
    """One pass over the training images; returns mean loss and accuracy."""
    loss_metric, accuracy = gluon.metric.Loss(), gluon.metric.Accuracy()
    for step, (images, labels) in enumerate(batches):
        with autograd.record():
            scores = net(images)
            loss = loss_function(scores, labels)
        loss.backward()
        trainer.step(images.shape[0])
        loss_metric.update(0, loss)
        accuracy.update(labels, scores)
        bar.update()
        if step % 50 == 0:
            bar.set_postfix(loss=f"{loss_metric.get()[1]:.3f}", accuracy=f"{accuracy.get()[1]:.3f}")
    return loss_metric.get()[1], accuracy.get()[1]


def train(net: gluon.Block, train_batches, test_batches, arguments: argparse.Namespace) -> list[dict]:
    """Train for `arguments.epochs`; returns loss, accuracies and time of each."""
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    # The rate follows half a cosine from lr to nearly nothing.
    schedule = mx.lr_scheduler.CosineScheduler(
        max_update=arguments.epochs * len(train_batches), base_lr=arguments.lr, final_lr=arguments.lr / 100
    )
    options = {"learning_rate": arguments.lr, "momentum": 0.9, "wd": 1e-4, "lr_scheduler": schedule}
    trainer = gluon.Trainer(net.collect_params(), "sgd", options)
    history = []
    for epoch in range(1, arguments.epochs + 1):
        start = time.perf_counter()
        with tqdm(
            total=len(train_batches), desc=f"epoch {epoch}", unit="batch", leave=False, mininterval=0.2
        ) as bar:
            loss, accuracy = train_epoch(net, train_batches, loss_function, trainer, bar)
        seconds = time.perf_counter() - start
        test = evaluate(net, test_batches)
        history.append({"loss": loss, "train": accuracy, "test": test, "seconds": seconds})
        print(
            f"epoch {epoch:2d}/{arguments.epochs}: loss {loss:.4f}, train accuracy {accuracy:.4f}, "
            f"test accuracy {test:.4f}, {seconds:.1f} s ({len(train_batches) / seconds:.0f} batches/s)",
            flush=True,
        )
    return history


def find_data(folder: Path | None) -> Path | None:
    """The first folder that has Fashion-MNIST; downloads it where none has. None when that fails."""
    home = Path(os.environ.get("MXNET_HOME") or "~/.mxnet").expanduser()
    cache = home / "datasets" / "fashion-mnist"
    places = [folder] if folder else [cache, Path("/usr/share/datasets/fashion-mnist")]
    for place in places:
        if all((place / name).exists() or (place / name.removesuffix(".gz")).exists() for name in FILES):
            return place
    looked = ", ".join(str(place) for place in places)
    if folder:
        raise SystemExit(
            f"there is no Fashion-MNIST in {folder}; expected {', '.join(FILES)}, gzipped or not"
        )
    print(f"Fashion-MNIST is not in {looked}; downloading it to {cache}", flush=True)
    try:
        download(cache)
    except OSError as error:
        print(f"could not download it ({error})", flush=True)
        return None
    return cache


def download(folder: Path) -> None:
    """Fetch the four files; one that arrives in part is not kept."""
    for name in FILES:
        with urllib.request.urlopen(SOURCE + name, timeout=SECONDS_TO_CONNECT) as answer:
            data = answer.read()
        gzip.decompress(data)
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / (name + ".part")
        part.write_bytes(data)
        part.replace(folder / name)


def read_idx(folder: Path, name: str) -> numpy.ndarray:
    """An IDX file of bytes, gzipped or not, as an array (MXNet's own reader would insist on downloading it)."""
    path = folder / name
    path = path if path.exists() else path.with_suffix("")
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    ndim = data[3]
    shape = struct.unpack(f">{ndim}I", data[4 : 4 + 4 * ndim])
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * ndim).reshape(shape)


def load_images(arguments: argparse.Namespace) -> tuple:
    """Training and test images as float32 of 0 to 1, shape (count, 1, height, width), with int32 labels."""
    folder = find_data(arguments.data)
    if folder is not None:
        print(f"Fashion-MNIST from {folder}")
        arrays = [read_idx(folder, name) for name in FILES]
        largest = 255
    else:
        print(
            "using scikit-learn's digits instead (8x8 images; 1,500 to train with, 297 to test)", flush=True
        )
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
        images = images.reshape(-1, 8, 8)
        arrays = [images[:1500], labels[:1500], images[1500:], labels[1500:]]
        largest = 16
    train_images, train_labels, test_images, test_labels = (array[: arguments.limit] for array in arrays)
    pairs = ((train_images, train_labels), (test_images, test_labels))
    return tuple(
        ((images.astype("float32") / numpy.float32(largest))[:, None], labels.astype("int32"))
        for images, labels in pairs
    )


def draw_history(history: list[dict], path: Path) -> None:
    """The learning curve as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    epochs = range(1, len(history) + 1)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(epochs, [row["loss"] for row in history], marker="o")
    left.set(title="training loss", xlabel="epoch", ylabel="cross-entropy")
    right.plot(epochs, [row["train"] for row in history], marker="o", label="training")
    right.plot(epochs, [row["test"] for row in history], marker="o", label="test")
    right.set(title="accuracy", xlabel="epoch", ylabel="share recognised")
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main(arguments: argparse.Namespace) -> None:
    """Load, train, draw, save, and check what was saved."""
    if arguments.backend == "mxnet":
        npx.set_np()
    mx.random.seed(arguments.seed)
    numpy.random.seed(arguments.seed)  # where MXNet's loader takes its shuffling from
    arguments.out.mkdir(parents=True, exist_ok=True)
    (train_images, train_labels), (test_images, test_labels) = load_images(arguments)
    print(f"{len(train_images)} images to train with, {len(test_images)} to test; model {arguments.model}")
    train_batches = gluon.data.DataLoader(
        gluon.data.ArrayDataset(train_images, train_labels),
        batch_size=arguments.batch_size,
        shuffle=True,
        num_workers=arguments.workers,
    )
    test_batches = gluon.data.DataLoader(gluon.data.ArrayDataset(test_images, test_labels), batch_size=1000)

    net = make_network(arguments.model)
    net.initialize(mx.init.Xavier())
    if arguments.hybridize:
        net.hybridize()
    history = train(net, train_batches, test_batches, arguments)

    parameters = arguments.out / f"{arguments.model}.params"
    net.save_parameters(str(parameters))
    picture = arguments.out / f"{arguments.model}.png"
    draw_history(history, picture)
    accuracy = evaluate(net, test_batches)
    fresh = make_network(arguments.model)
    fresh.load_parameters(str(parameters))
    again = evaluate(fresh, test_batches)
    if again != accuracy:
        raise SystemExit(f"the saved parameters give {again}, the trained network {accuracy}")
    print(f"parameters in {parameters} (loaded back: the same accuracy), learning curve in {picture}")
    print(f"mean time of an epoch: {sum(row['seconds'] for row in history) / len(history):.2f} s")
    print(f"test accuracy: {accuracy:.3f}")


if __name__ == "__main__":
    main(ARGUMENTS)
