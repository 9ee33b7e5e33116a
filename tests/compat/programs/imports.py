"""The import lines of many programs, of 1.x and of 2: parts that mxnp lacks import too, and say so on use."""

import mxnet as mx
import mxnet.ndarray as nd
import mxnet.gluon as g
from mxnet.gluon import nn, rnn, contrib, model_zoo
from mxnet.gluon.model_zoo import vision as v
from mxnet.gluon.contrib import estimator
from mxnet.contrib import amp, quantization, text
from mxnet import (
    image,
    recordio,
    io,
    sym,
    symbol,
    viz,
    visualization,
    profiler,
    callback,
    lr_scheduler,
    optimizer,
    kvstore,
    kv,
    engine,
    monitor,
    mod,
    module,
    model,
    attribute,
    name,
    runtime,
    base,
    context,
    device,
    util,
    test_utils,
    metric,
    random,
    rnd,
    init,
    initializer,
    operator,
    executor,
    np,
    npx,
    numpy,
    numpy_extension,
)
from mxnet.base import MXNetError, mx_real_t, string_types, numeric_types
from mxnet.util import use_np, is_np_array, set_np
from mxnet.gluon.parameter import Parameter, DeferredInitializationError, ParameterDict, Constant
from mxnet.gluon.block import Block, HybridBlock
from mxnet.gluon.nn import Block as B2, HybridBlock as H2
from mxnet.gluon.data.dataloader import DataLoader, default_batchify_fn
from mxnet.gluon.data.dataset import Dataset
from mxnet.gluon.trainer import Trainer
from mxnet.gluon.loss import Loss, L2Loss, SoftmaxCELoss
from mxnet.gluon.utils import (
    split_and_load,
    download,
    check_sha1,
    clip_global_norm,
    HookHandle,
    shape_is_known,
)
from mxnet.optimizer import Optimizer, SGD, Adam, register, create, Updater, get_updater
from mxnet.lr_scheduler import LRScheduler, FactorScheduler
from mxnet.initializer import Initializer, Xavier, Normal, InitDesc, register
from mxnet.context import Context, cpu, gpu, current_context, num_gpus
from mxnet.numpy.multiarray import ndarray

for missing in (rnn, contrib, model_zoo, v, estimator, amp, quantization, text, image, recordio, io, nd):
    try:
        missing.something
    except MXNetError as e:
        assert "has not arrived" in str(e), e
    else:
        raise AssertionError(missing)
assert sym.Variable("x").name == "x" and sym.FullyConnected.__name__ == "FullyConnected"
assert metric is g.metric and np is numpy and npx is numpy_extension and kv is kvstore and init is initializer
assert cpu(0) == mx.cpu() == current_context() and num_gpus() >= 0
assert SGD is optimizer.SGD and Block is B2 and HybridBlock is H2 and Dataset is g.data.Dataset
