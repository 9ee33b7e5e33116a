"""Model files as MXNet 1.9.1 and 2.0.0b1 write them, from a list of nodes: names, spellings and flags of each."""

import json

import numpy as onp

from mxnp._files import save_arrays


class Model:
    """Nodes in order: `add` gives a reference to use as an input, `var` makes a variable, perhaps a parameter."""

    def __init__(self, dialect):
        self.dialect = dialect
        self.nodes = []
        self.arrays = {}

    def var(self, name, array=None, aux=False):
        attrs = {}
        if array is not None:
            self.arrays[("aux:" if aux else "arg:") + name] = array
            shape = ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "")
            attrs = {"__dtype__": "0", "__shape__": f"({shape})", "__storage_type__": "0"}
        if self.dialect == 2:
            attrs["__profiler_scope__"] = "<unk>:"
        node = {"op": "null", "name": name, **({"attrs": attrs} if attrs else {}), "inputs": []}
        self.nodes.append(node)
        return [len(self.nodes) - 1, 0, 0]

    def add(self, op, name, inputs, **attrs):
        texts = {key: self.spell(value) for key, value in attrs.items()}
        self.nodes.append({"op": op, "name": name, "attrs": texts, "inputs": inputs})
        return [len(self.nodes) - 1, 0, 0]

    def spell(self, value):
        if isinstance(value, bool):
            return str(value) if self.dialect == 1 else str(int(value))
        if isinstance(value, tuple):
            return str(value) if self.dialect == 1 else "[" + ",".join(map(str, value)) + "]"
        return str(value)

    def text(self, *heads):
        flags = {"mxnet_version": ["int", 10901 if self.dialect == 1 else 20000]}
        if self.dialect == 2:
            flags["is_np_shape"] = ["int", 1]
        whole = {
            "nodes": self.nodes,
            "arg_nodes": [i for i, node in enumerate(self.nodes) if node["op"] == "null"],
            "node_row_ptr": list(range(len(self.nodes) + 1)),
            "heads": list(heads),
            "attrs": flags,
        }
        return json.dumps(whole)

    def write(self, folder, *heads):
        """The two files of an export."""
        graph, params = folder / "net-symbol.json", folder / "net-0000.params"
        graph.write_text(self.text(*heads))
        save_arrays(params, self.arrays)
        return str(graph), str(params)


def residual_net(dialect, seed=0):
    """A convolution, a batch norm, a residual addition, pooling, a dense layer: the network of both dialects.

    Gives the model, its head, and a function of NumPy arrays that computes the same by other means.
    """
    rng = onp.random.default_rng(seed)

    def normal(*shape):
        return rng.normal(size=shape).astype("float32")

    arrays = {
        "weight": normal(4, 3, 3, 3) / 5,
        "gamma": onp.abs(normal(4)) + 0.5,
        "beta": normal(4),
        "mean": normal(4) / 10,
        "var": onp.abs(normal(4)) + 0.5,
        "weight2": normal(4, 4, 1, 1),
        "dense": normal(5, 4 * 2 * 2),
        "bias": normal(5),
    }
    one = dialect == 1
    model = Model(dialect)
    x = model.var("data")
    weight = model.var("conv0_weight" if one else "0.weight", arrays["weight"])
    y = model.add(
        "Convolution",
        "conv0_fwd" if one else "node_0",
        [x, weight],
        kernel=(3, 3),
        stride=(1, 1),
        dilate=(1, 1),
        pad=(1, 1),
        num_filter=4,
        num_group=1,
        no_bias=True,
        layout="NCHW",
        **({} if one else {"cudnn_tune": None, "cudnn_off": False, "workspace": 1024}),
    )
    names = ("gamma", "beta", "running_mean", "running_var")
    stored = (arrays["gamma"], arrays["beta"], arrays["mean"], arrays["var"])
    states = [
        model.var(f"batchnorm0_{n}" if one else f"1.{n}", a, n.startswith("running"))
        for n, a in zip(names, stored, strict=True)
    ]
    y = model.add("BatchNorm", "bn", [y, *states], axis=1, eps=1e-05, momentum=0.9, fix_gamma=False)
    y = model.add("Activation", "act", [y], act_type="relu")
    weight2 = model.var("conv1_weight" if one else "2.weight", arrays["weight2"])
    z = model.add("Convolution", "conv1", [y, weight2], kernel=(1, 1), num_filter=4, no_bias=True)
    y = model.add("elemwise_add" if one else "_npi_add", "plus0", [z, y])
    y = model.add("Pooling", "pool0", [y], kernel=(2, 2), stride=(2, 2), pool_type="max")
    dense = model.var("dense0_weight" if one else "3.weight", arrays["dense"])
    bias = model.var("dense0_bias" if one else "3.bias", arrays["bias"])
    head = model.add("FullyConnected", "fc", [y, dense, bias], num_hidden=5, no_bias=False, flatten=True)

    def reference(data):
        padded = onp.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = onp.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        y = onp.einsum("nchwij,fcij->nfhw", windows, arrays["weight"])
        mean, var, gamma, beta = (arrays[n].reshape(1, 4, 1, 1) for n in ("mean", "var", "gamma", "beta"))
        y = onp.maximum((y - mean) / onp.sqrt(var + 1e-5) * gamma + beta, 0)
        y = onp.einsum("nchw,fc->nfhw", y, arrays["weight2"][:, :, 0, 0]) + y
        y = y.reshape(y.shape[0], 4, 2, 2, 2, 2).max((3, 5))
        return y.reshape(y.shape[0], -1) @ arrays["dense"].T + arrays["bias"]

    return model, head, reference
