"""The parts of MXNet that mxnp does not have yet: modules that import, and say so when something of theirs is used."""

from __future__ import annotations

import types
from typing import Any

from mxnp.error import MXNetNotImplementedError

# Module paths of MXNet 1.9 and 2.0. One that mxnp has is never looked up here.
_NAMES = """
amp amp.lists attribute autograd base callback config context contrib contrib.amp contrib.autograd contrib.io
contrib.ndarray contrib.onnx contrib.quant contrib.quantization contrib.svrg_optimization contrib.symbol
contrib.tensorboard contrib.tensorrt contrib.text contrib.text.embedding contrib.text.utils contrib.text.vocab
device dlpack engine error executor executor_manager gluon gluon.block gluon.contrib gluon.contrib.cnn
gluon.contrib.data gluon.contrib.data.text gluon.contrib.data.vision gluon.contrib.estimator
gluon.contrib.estimator.batch_processor gluon.contrib.estimator.estimator
gluon.contrib.estimator.event_handler gluon.contrib.nn gluon.contrib.rnn gluon.data gluon.data.batchify
gluon.data.dataloader gluon.data.dataset gluon.data.sampler gluon.data.vision gluon.data.vision.datasets
gluon.data.vision.transforms gluon.loss gluon.metric gluon.model_zoo gluon.model_zoo.model_store
gluon.model_zoo.vision gluon.nn gluon.nn.activations gluon.nn.basic_layers gluon.nn.conv_layers
gluon.parameter gluon.probability gluon.probability.distributions gluon.rnn gluon.rnn.rnn_cell
gluon.rnn.rnn_layer gluon.trainer gluon.utils image image.detection image.image img init initializer io io.io
io.utils kv kvstore library log lr_scheduler metric misc mod model module module.base_module
module.bucketing_module module.module mon monitor name nd ndarray ndarray.contrib ndarray.image ndarray.linalg
ndarray.ndarray ndarray.random ndarray.sparse ndarray.utils notebook np np.fft np.linalg np.random npx
npx.image npx.random numpy numpy.linalg numpy.multiarray numpy.random numpy_extension onnx operator optimizer
optimizer.optimizer profiler random recordio registry rnd rnn rtc runtime sym symbol symbol.contrib
symbol.symbol test_utils tvmop util visualization viz
"""
MXNET_MODULES = frozenset(_NAMES.split())


class NotArrivedError(MXNetNotImplementedError, ImportError):
    """Something of MXNet that mxnp does not have yet was used."""


class _MissingModule(types.ModuleType):
    """Stands for a module: modules inside it import, any use of what it should hold raises NotArrivedError."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        below = missing_module(f"{self.__name__.removeprefix('mxnet.')}.{name}")
        if below is not None:
            setattr(self, name, below)
            return below
        raise NotArrivedError(
            f"{self.__name__}.{name}: this part of MXNet has not arrived in mxnp yet\n"
            "hint: the migration page of the documentation lists what has"
        )


def missing_module(path: str) -> types.ModuleType | None:
    """A stand-in for MXNet's module `path` (such as "gluon.rnn"), or None when MXNet has no such module.

    >>> missing_module("no_such_module") is None
    True
    """
    if path not in MXNET_MODULES:
        return None
    module = _MissingModule(f"mxnet.{path}")
    module.__path__ = []  # so that the import of a module inside it comes back here
    return module
