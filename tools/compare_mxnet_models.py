"""Compares mxnp with MXNet's own wheels on files: models and single operators that a wheel exports, run here.

    python tools/compare_mxnet_models.py --mxnet1 VENV1/bin/python --mxnet2 VENV2/bin/python

Each Python given must import MXNet 1.9.1 or 2.0.0b1; it runs this file with `--make`, which writes graphs, parameters,
inputs and outputs of models and of the operators in mxnet_operators.txt (random weights, nothing is downloaded). Then
mxnp reads the graphs and computes the same. Knows nothing of mxnp's insides.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as onp

TOLERANCE = 1e-4


class Case(NamedTuple):
    """An expression, the inputs whose gradients are compared, the wheel that has it (0: both), and the namespace."""

    text: str
    gradient: tuple
    only: int
    numpy: bool


def _inputs() -> dict:
    """Inputs by name: what the expressions are written over."""
    rng = onp.random.RandomState(1)

    def normal(*shape: int) -> Any:
        return rng.randn(*shape).astype("float32")

    return {
        "a": normal(3, 4),
        "b": normal(3, 4),
        "p": onp.abs(normal(3, 4)) + 0.5,
        "u": onp.clip(normal(3, 4), -0.9, 0.9),
        "row": normal(1, 4),
        "x3": normal(2, 3, 4),
        "y3": normal(2, 4, 5),
        "img": normal(2, 4, 7, 7),
        "big": normal(2, 4, 14, 14),
        "seq": normal(5, 3, 2),
        "vec": normal(4),
        "ch": normal(4),
        "chp": onp.abs(normal(4)) + 0.5,
        "mean4": normal(4),
        "var4": onp.abs(normal(4)) + 0.5,
        "w": normal(5, 4),
        "w5": normal(5),
        "k": normal(6, 4, 3, 3),
        "k6": normal(6),
        "dk": normal(4, 6, 3, 3),
        "gk": normal(8, 2, 3, 3),
        "up": normal(4, 1, 4, 4),
        "i3": onp.array([0, 2, 1], "float32"),
        "i34": onp.array([[0, 2, 1, 1], [1, 1, 0, 2], [2, 2, 2, 0]], "float32"),
        "n3": onp.array([2, 5, 3], "float32"),
        "nd": onp.array([[0, 2, 1], [1, 3, 0]], "float32"),
        "table": normal(6, 3),
        "mask": onp.array([[1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 1, 0]], "float32"),
        "att": normal(4, 2, 24),
        "kv": normal(5, 2, 16),
        "scores": onp.abs(normal(4, 4, 4)),
        "sq": normal(3, 3),
    }


_INPUTS = _inputs()


def operator_inputs(case: Case) -> dict:
    """The inputs whose names stand in the expression."""
    found = re.findall(r"(?<![\w.'\"])([a-z]\w*)(?![\w(.'\"]|=(?!=))", case.text)
    return {name: _INPUTS[name] for name in dict.fromkeys(found) if name in _INPUTS}


def _cases() -> list:
    """The expressions of mxnet_operators.txt."""
    found = []
    only, numpy = 0, False
    for line in (Path(__file__).parent / "mxnet_operators.txt").read_text().splitlines():
        if line.startswith("["):
            only, numpy = {"[both]": (0, False), "[1]": (1, False), "[2 np]": (2, True)}[line]
        elif line and not line.startswith("#"):
            text, _, gradient = line.partition(" ; ")
            found.append(Case(text, tuple(gradient.split()), only, numpy))
    return found


OPERATORS = _cases()


def make(folder: Path) -> None:
    """Under a wheel's Python: write models and operators with their results into `folder`."""
    mx = importlib.import_module("mxnet")
    is_two = mx.__version__.startswith("2")
    if is_two:
        mx.npx.set_np()
    for name, builder in model_builders(mx).items():
        if not (folder / f"{name}.io.npz").exists():
            make_model(mx, folder / name, *builder())
    if is_two:
        mx.npx.reset_np()
    make_operators(mx, folder, is_two)


def run_wheel(python: str, folder: Path) -> None:
    """`make` under a wheel's Python, again where an operator aborts the whole process: those tried are passed over."""
    command = [python, __file__, "--make", str(folder)]
    before = -1
    while subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
        tried = len(list(folder.glob("*.tried")))
        if tried == before:
            raise RuntimeError(f"{python} cannot write the files")
        before = tried


def model_builders(mx: Any) -> dict[str, Any]:
    """Networks of the issue: name to a function that gives the network and the shape of its input."""
    nn, vision = mx.gluon.nn, mx.gluon.model_zoo.vision
    picture = (2, 3, 64, 64)

    def chain(*layers: Any) -> Any:
        net = nn.HybridSequential()
        net.add(*layers)
        return net

    def mlp() -> Any:
        return chain(nn.Dense(32, activation="relu"), nn.Dropout(0.3), nn.Dense(10)), (4, 20)

    def lenet() -> Any:
        first = nn.Conv2D(20, 5, activation="tanh"), nn.MaxPool2D(2, 2)
        second = nn.Conv2D(50, 5, activation="tanh"), nn.MaxPool2D(2, 2)
        return chain(*first, *second, nn.Flatten(), nn.Dense(500, activation="tanh"), nn.Dense(10)), (
            2,
            1,
            28,
            28,
        )

    return {
        "mlp": mlp,
        "lenet": lenet,
        "resnet18_v1": lambda: (vision.resnet18_v1(), picture),
        "resnet18_v2": lambda: (vision.resnet18_v2(), picture),
        "mobilenet_v2": lambda: (vision.mobilenet_v2_1_0(), picture),
    }


def make_model(mx: Any, path: Path, net: Any, shape: tuple[int, ...]) -> None:
    """Initialise, move the running statistics off their start, export, and keep input and output."""
    rng = onp.random.RandomState(0)
    array = mx.np.array if mx.__version__.startswith("2") else mx.nd.array
    net.initialize(mx.init.Xavier())
    x = rng.randn(*shape).astype("float32")
    for _ in range(20):
        with mx.autograd.record():
            net(array(x))
    net.hybridize()
    y = net(array(x)).asnumpy()
    net.export(str(path))
    onp.savez(f"{path}.io.npz", x=x, y=y)


def make_operators(mx: Any, folder: Path, is_two: bool) -> None:
    """Each operator's graph with its results and gradients; what a wheel refuses is left out and listed."""
    listed = folder / "refused.json"
    for number, case in enumerate(OPERATORS):
        mark = folder / f"op{number}.tried"
        if mark.exists() or (case.only and case.only != (2 if is_two else 1)):
            continue
        refused = json.loads(listed.read_text()) if listed.exists() else {}
        listed.write_text(json.dumps({**refused, case.text: "aborts the process"}))
        mark.touch()
        if case.numpy:
            mx.npx.set_np()
        try:
            make_operator(mx, folder / f"op{number}", case)
        except Exception as error:  # noqa: BLE001 (whatever the wheel raises)
            refused[case.text] = (str(error).splitlines() or [""])[0][:200]
        if case.numpy:
            mx.npx.reset_np()
        listed.write_text(json.dumps(refused))


def make_operator(mx: Any, path: Path, case: Any) -> None:
    """The graph of one operator, its outputs, and the gradients of their sum where it has any."""
    inputs = operator_inputs(case)
    names = {name: mx.sym.var(name) for name in inputs}
    if case.numpy:
        names = {name: symbol.as_np_ndarray() for name, symbol in names.items()}
    graph = eval(case.text, {"s": mx.sym, "np": mx.sym.np if case.numpy else None, **names})
    graph = mx.sym.Group(list(graph)) if isinstance(graph, (list, tuple)) else graph
    text = graph.tojson()
    run = block_results if case.numpy else executor_results
    results = run(mx, graph, inputs, case)
    path.with_suffix(".json").write_text(text)
    onp.savez(f"{path}.npz", **results)


def head(shape: tuple[int, ...]) -> Any:
    """A gradient of an output: not constant, so that gradients of sums that stay constant are seen too."""
    return onp.cos(onp.arange(int(onp.prod(shape)))).reshape(shape).astype("float32")


def executor_results(mx: Any, graph: Any, inputs: dict, case: Any) -> dict:
    """Outputs and gradients by 1.x's executor."""
    arrays = {name: mx.nd.array(value, dtype=value.dtype) for name, value in inputs.items()}
    states = {name: arrays.pop(name) for name in graph.list_auxiliary_states()}
    grads = {name: mx.nd.zeros(value.shape) for name, value in arrays.items()}
    bind = graph.bind if hasattr(graph, "bind") else graph._bind
    executor = bind(mx.cpu(), arrays, args_grad=grads if case.gradient else None, aux_states=states)
    outputs = executor.forward(is_train=bool(case.gradient))
    results = {f"y{i}": y.asnumpy() for i, y in enumerate(outputs)}
    if case.gradient:
        executor.backward([mx.nd.array(head(y.shape)) for y in outputs])
        results.update({f"g_{name}": grads[name].asnumpy() for name in case.gradient})
    return results


def block_results(mx: Any, graph: Any, inputs: dict, case: Any) -> dict:
    """Outputs and gradients by a SymbolBlock, which is how 2 runs NumPy's operators."""
    names = [name for name in graph.list_inputs() if name in inputs]
    arrays = [mx.np.array(inputs[name], dtype=inputs[name].dtype) for name in names]
    for array in arrays:
        array.attach_grad()
    block = mx.gluon.SymbolBlock(graph, [mx.sym.var(name).as_np_ndarray() for name in names])
    block.hybridize()
    with mx.autograd.record(train_mode=bool(case.gradient)):
        outputs = block(*arrays) if names else block(mx.np.zeros(1))
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    results = {f"y{i}": y.asnumpy() for i, y in enumerate(outputs)}
    if case.gradient:
        mx.autograd.backward(outputs, [mx.np.array(head(y.shape)) for y in outputs])
        results.update({f"g_{n}": a.grad.asnumpy() for n, a in zip(names, arrays) if n in case.gradient})  # noqa: B905 (Python 3.8)
    return results


def compare(folder: Path) -> list[tuple[str, float, str]]:
    """What mxnp computes from the files: (name, relative error, remark); the error is infinite where it raised."""
    names = sorted(path.name.removesuffix(".io.npz") for path in folder.glob("*.io.npz"))
    found = [(name, *checked(lambda name=name: model_error(folder / name))) for name in names]
    for number, case in enumerate(OPERATORS):
        path = folder / f"op{number}"
        if path.with_suffix(".json").exists():
            found.append((case.text, *checked(lambda path=path, case=case: operator_error(path, case))))
    return found


def checked(run: Any) -> tuple[float, str]:
    """The error that `run` gives, or infinity and the exception."""
    try:
        return run(), ""
    except Exception as error:  # noqa: BLE001 (reported)
        return float("inf"), f"{type(error).__name__}: {error}"


def relative(found: Any, wanted: Any) -> float:
    """The largest difference, over the largest value; shapes must agree."""
    if found.shape != wanted.shape:
        raise ValueError(f"shape {found.shape}, expected {wanted.shape}")
    if not wanted.size:
        return 0.0
    a, b = onp.asarray(found, "float64"), onp.asarray(wanted, "float64")
    if not onp.array_equal(onp.isnan(a), onp.isnan(b)):
        return float("inf")
    return float(onp.nanmax(onp.abs(a - b)) / max(onp.nanmax(onp.abs(b)), 1e-30))


def model_error(path: Path) -> float:
    """The error of an imported model."""
    from mxnp import gluon, np

    net = gluon.SymbolBlock.imports(f"{path}-symbol.json", ["data"], f"{path}-0000.params")
    stored = onp.load(f"{path}.io.npz")
    return relative(net(np.array(stored["x"])).asnumpy(), stored["y"])


def operator_error(path: Path, case: Any) -> float:
    """The larger error of an operator's outputs and gradients."""
    import mxnp as mx

    graph = mx.sym.load_json(path.with_suffix(".json").read_text())
    stored = onp.load(f"{path}.npz")
    arrays = {name: mx.np.array(value, dtype=value.dtype) for name, value in operator_inputs(case).items()}
    states = {name: arrays.pop(name) for name in graph.list_auxiliary_states()}
    grads = {name: mx.np.zeros_like(value) for name, value in arrays.items()} if case.gradient else None
    executor = graph.bind(mx.cpu(), arrays, grads, aux_states=states)
    outputs = executor.forward(is_train=bool(case.gradient))
    errors = [relative(y.asnumpy(), stored[f"y{i}"]) for i, y in enumerate(outputs)]
    if case.gradient:
        executor.backward([mx.np.array(head(y.shape)) for y in outputs])
        errors += [
            relative(executor.grad_dict[name].asnumpy(), stored[f"g_{name}"]) for name in case.gradient
        ]
    return max(errors)


def own_networks(mx: Any) -> dict:
    """By name, functions that give a network of mxnp's own and the shape of its input."""
    nn: Any = mx.gluon.nn

    class Residual(nn.HybridBlock):
        """Two convolutions with batch normalisation around an addition."""

        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2D(6, 3, padding=1)
            self.body = nn.HybridSequential()
            self.body.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(6, 3, padding=1), nn.BatchNorm())
            self.head = nn.HybridSequential()
            self.head.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dropout(0.2), nn.Dense(5))

        def forward(self, x: Any) -> Any:
            """The classes' scores, and features by plain functions."""
            x = self.first(x)
            x = mx.npx.relu(self.body(x) + x)
            scores = self.head(x)
            features = x.reshape(x.shape[0], -1)[:, 1:7:2]
            return scores, mx.np.concatenate(
                [mx.np.tanh(features) * 2 - 1, scores.max(1, keepdims=True)], axis=1
            )

    class Looping(nn.HybridBlock):
        """A branch, a loop by data and a loop over rows, each with layers inside."""

        def __init__(self) -> None:
            super().__init__()
            self.yes, self.no = nn.Dense(4, in_units=4, flatten=False), nn.Dense(4, in_units=4, flatten=False)

        def forward(self, x: Any) -> Any:
            """The last state, the outputs of the steps, their sums, and what follows the number of rows."""
            h = mx.npx.cond(lambda x: x.sum() > 0, lambda x: self.yes(x), lambda x: self.no(x) * x, [x])
            steps, (_, s) = mx.npx.while_loop(
                lambda i, s: i < mx.np.abs(x).sum() / 3,
                lambda i, s: (s * 2, [i + 1, mx.np.tanh(self.yes(s)) + h]),
                [mx.np.zeros((1,)), h],
                max_iterations=5,
            )
            sums, _ = mx.npx.foreach(lambda r, t: (t[0] + r, [t[0] + r]), h, [mx.np.zeros((4,))])
            numbered = x[::-1] * mx.np.arange(x.shape[0]).reshape(-1, 1) + mx.np.ones_like(x)
            return s, steps, sums, numbered, numbered[-1]

    return {"residual": lambda: (Residual(), (2, 3, 12, 12)), "looping": lambda: (Looping(), (2, 4))}


def export_models(folder: Path) -> None:
    """Networks exported by mxnp, with inputs and outputs for two batch sizes."""
    import mxnp as mx

    builders = {k: v for k, v in model_builders(mx).items() if k in ("mlp", "lenet")}
    builders.update(own_networks(mx))
    rng = onp.random.RandomState(0)
    for name, builder in builders.items():
        net, shape = builder()
        net.initialize(mx.init.Xavier())
        for _ in range(5):
            with mx.autograd.record():
                net(mx.np.array(rng.randn(*shape), dtype="float32"))
        net.hybridize()
        net(mx.np.zeros(shape))
        net.export(folder / name)
        results: dict[str, Any] = {}
        for size in (shape[0], shape[0] + 3):
            x = rng.randn(size, *shape[1:]).astype("float32")
            found = net(mx.np.array(x))
            outputs = found if isinstance(found, tuple) else (found,)
            results[f"x{size}"] = x
            results.update({f"y{size}_{i}": y.asnumpy() for i, y in enumerate(outputs)})
        onp.savez(folder / f"{name}.own.npz", **results)


def read_exports(folder: Path) -> None:
    """Under a wheel's Python: what the wheel computes from mxnp's exports."""
    mx = importlib.import_module("mxnet")
    mx.npx.set_np()
    for path in sorted(folder.glob("*.own.npz")):
        name = path.name[: -len(".own.npz")]
        net = mx.gluon.SymbolBlock.imports(
            str(folder / f"{name}-symbol.json"), ["data"], str(folder / f"{name}-0000.params")
        )
        stored, results = onp.load(path), {}
        for key in [key for key in stored.files if key.startswith("x")]:
            found = net(mx.np.array(stored[key]))
            outputs = found if isinstance(found, (list, tuple)) else [found]
            results.update({f"y{key[1:]}_{i}": y.asnumpy() for i, y in enumerate(outputs)})
        onp.savez(folder / f"{name}.read.npz", **results)


def report_exports(python: str) -> int:
    """Let the 2.0.0b1 wheel read mxnp's exports; gives how many outputs are out of tolerance."""
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        export_models(folder)
        subprocess.run([python, __file__, "--read", name], check=True)
        for path in sorted(folder.glob("*.read.npz")):
            stored, found = onp.load(str(path).replace(".read.", ".own.")), onp.load(path)
            for key in found.files:
                error = relative(found[key], stored[key])
                bad += not error <= TOLERANCE
                print(f"read by 2.0.0b1  {error:9.2e}  {path.name[: -len('.read.npz')]} {key}")
    return bad


def report(label: str, folder: Path) -> int:
    """Print the comparison; gives how many are out of tolerance."""
    rows = compare(folder)
    bad = [row for row in rows if not row[1] <= TOLERANCE]
    for name, error, remark in rows:
        if not error <= TOLERANCE or not name.startswith(("s.", "np.")):
            print(f"{label}  {error:9.2e}  {name}  {remark}")
    refused = json.loads((folder / "refused.json").read_text())
    print(
        f"{label}: {len(rows) - len(bad)} of {len(rows)} equal to {TOLERANCE}; the wheel refuses {len(refused)}:"
    )
    for text, error in refused.items():
        print(f"    {text}: {error}")
    return len(bad)


def main() -> int:
    """Run the wheels given, then compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--make", type=Path, help="write the files here, under a wheel's Python")
    parser.add_argument("--mxnet1", help="the Python that has MXNet 1.9.1")
    parser.add_argument("--mxnet2", help="the Python that has MXNet 2.0.0b1")
    parser.add_argument("--read", type=Path, help="read mxnp's exports here, under a wheel's Python")
    options = parser.parse_args()
    if options.read:
        read_exports(options.read)
        return 0
    if options.make:
        options.make.mkdir(parents=True, exist_ok=True)
        make(options.make)
        return 0
    bad = 0
    for label, python in (("1.9.1", options.mxnet1), ("2.0.0b1", options.mxnet2)):
        if python:
            with tempfile.TemporaryDirectory() as folder:
                run_wheel(python, Path(folder))
                bad += report(label, Path(folder))
    bad += report_exports(options.mxnet2) if options.mxnet2 else 0
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
