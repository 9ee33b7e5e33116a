"""What help(), dir() and tab completion show: every public name documented, and nothing that is not MXNet's."""

import inspect
import re

import pytest

import mxnp
from mxnp import _core, autograd, gluon, np, npx

NAMESPACES = [mxnp, np, npx, np.random, np.linalg, autograd, gluon, gluon.nn, gluon.data, gluon.data.vision]
NAMESPACES += [gluon.loss, gluon.metric, gluon.utils, mxnp.random, mxnp.test_utils, mxnp.initializer]
NAMESPACES += [mxnp.lr_scheduler, mxnp.optimizer, mxnp.device]


@pytest.mark.parametrize("module", NAMESPACES, ids=lambda module: module.__name__)
def test_public_names_are_documented(module):
    names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
    bare = [
        name
        for name in names
        if (callable(getattr(module, name)) or inspect.ismodule(getattr(module, name)))
        and not inspect.getdoc(getattr(module, name))
    ]
    assert bare == []


# Where every public name shows an example, and every class shows itself.
SHOWN = [
    np,
    npx,
    np.random,
    np.linalg,
    gluon,
    gluon.nn,
    gluon.loss,
    gluon.metric,
    gluon.data,
    gluon.data.vision,
]
SHOWN += [
    gluon.data.vision.transforms,
    mxnp.optimizer,
    mxnp.initializer,
    mxnp.lr_scheduler,
    mxnp.kvstore,
    mxnp.random,
]


@pytest.mark.parametrize("module", SHOWN, ids=lambda module: module.__name__)
def test_public_names_have_examples(module):
    objects = {name: getattr(module, name) for name in module.__all__}
    callables = {name: value for name, value in objects.items() if callable(value) and not is_plain(value)}
    assert [name for name, value in callables.items() if ">>>" not in (inspect.getdoc(value) or "")] == []
    classes = {name: value for name, value in callables.items() if inspect.isclass(value)}
    assert [name for name, value in classes.items() if value.__repr__ is object.__repr__] == []


# Private bases say what the parameters mean: help() shows their text for a constructor that has none.
CLASSES = [gluon.nn, gluon.loss, gluon.metric, gluon.data, gluon.data.vision, gluon.data.vision.transforms]
CLASSES += [gluon.data.batchify, mxnp.optimizer, mxnp.initializer, mxnp.lr_scheduler, mxnp.kvstore, gluon]
# What MXNet's constructors take and nothing follows from; said once, in the base.
ACCEPTED = {"use_fused_step", "aggregate_num", "use_shared_mem", "prefix", "params"}


@pytest.mark.parametrize("module", CLASSES, ids=lambda module: module.__name__)
def test_help_says_what_every_argument_of_a_class_means(module):
    silent = {}
    for name in getattr(module, "__all__", dir(module)):
        value = getattr(module, name)
        if not inspect.isclass(value) or is_plain(value):
            continue
        text = f"{inspect.getdoc(value)} {inspect.getdoc(value.__init__)}"
        named = [
            p.name for p in inspect.signature(value).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD
        ]
        missing = [each for each in named if each not in ACCEPTED and not re.search(rf"\b{each}\b", text)]
        if missing:
            silent[name] = missing
    assert silent == {}


BATCHES = "BatchSampler(sampler=RandomSampler(length=4), batch_size=2)"


def is_plain(value):
    """A dtype, an exception, a native class or function, or what another package made."""
    if inspect.isclass(value) and issubclass(value, Exception):
        return True
    is_native = any(value is native for native in vars(_core).values())
    return is_native or not getattr(value, "__module__", "mxnp").startswith("mxnp")


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (lambda: mxnp.optimizer.SGD(momentum=0.9, wd=1e-4), "SGD(learning_rate=0.1, momentum=0.9)"),
        (lambda: mxnp.lr_scheduler.PolyScheduler(9, pwr=1), "PolyScheduler(max_update=9, pwr=1)"),
        (lambda: gluon.metric.TopKAccuracy(3), "TopKAccuracy(top_k=3, name='top_k_accuracy_3')"),
        (lambda: gluon.data.ArrayDataset([1, 2], [3, 4]), "ArrayDataset(2 samples)"),
        (lambda: gluon.data.SimpleDataset([1, 2]).transform(abs).take(1), "Subset(1 samples)"),
        (lambda: gluon.data.RandomSampler(4), "RandomSampler(length=4)"),
        (lambda: gluon.data.BatchSampler(gluon.data.RandomSampler(4), 2), BATCHES),
        (
            lambda: gluon.data.DataLoader(
                gluon.data.SimpleDataset([1, 2, 3, 4]), 2, shuffle=True, num_workers=1
            ),
            f"DataLoader(dataset=SimpleDataset(4 samples), batch_sampler={BATCHES}, num_workers=1)",
        ),
        (lambda: gluon.data.batchify.Pad(val=-1, round_to=8), "Pad(val=-1, round_to=8)"),
        (lambda: mxnp.kvstore.create("device"), "KVStore('device') of 0 keys"),
        (
            lambda: mxnp.optimizer.get_updater(mxnp.optimizer.Adam()),
            "Updater(Adam(learning_rate=0.001)) of 0 states",
        ),
        (
            lambda: mxnp.initializer.Xavier(magnitude=2),
            "Xavier(rnd_type='uniform', factor_type='avg', magnitude=2)",
        ),
    ],
    ids=lambda case: "" if isinstance(case, str) else None,
)
def test_objects_show_the_call_that_makes_them(shown, text):
    assert repr(shown()) == text


def test_a_trainer_shows_its_optimizer():
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    assert repr(trainer) == "Trainer(2 parameters, Adam(learning_rate=0.1))"


@pytest.mark.parametrize("module", [mxnp, np, npx, gluon, gluon.nn, gluon.data], ids=lambda m: m.__name__)
def test_completion_offers_no_helpers(module):
    assert {"Any", "annotations", "importlib", "refuse", "sys", "os"}.isdisjoint(dir(module))


@pytest.mark.parametrize("name", [name for name in dir(np.ndarray) if not name.startswith("_")])
def test_attributes_of_arrays_are_documented(name):
    attribute = inspect.getattr_static(np.ndarray, name)
    assert isinstance(attribute, str) or inspect.getdoc(getattr(np.ndarray, name))


def test_no_attribute_raises_when_read():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(2))
    for thing in (net, net[0], np.ones((2, 2)), mxnp.cpu()):
        for name in dir(thing):
            getattr(thing, name)
