"""`import mxnet` after install_as_mxnet: mxnp's own modules, unharmed, and clear words about what is missing."""

import importlib
import importlib.metadata
import importlib.util
import subprocess
import sys
import types

import pytest

import mxnp
from mxnp import compat
from mxnp.error import MXNetError


@pytest.fixture(autouse=True)
def installed():
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "mxnet"}
    for name in before:
        del sys.modules[name]
    compat.install_as_mxnet()
    yield
    compat.uninstall()
    assert not [name for name in sys.modules if name.split(".")[0] == "mxnet"]
    sys.modules.update(before)


def test_same_objects():
    import mxnet as mx
    from mxnet import gluon, np
    from mxnet.gluon.data import DataLoader

    transforms = importlib.import_module("mxnet.gluon.data.vision.transforms")
    assert mx is mxnp
    assert np is mxnp.np
    assert gluon is mxnp.gluon
    assert DataLoader is mxnp.gluon.data.DataLoader
    assert transforms is mxnp.gluon.data.vision.transforms
    assert importlib.import_module("mxnet.gluon") is mxnp.gluon


def test_modules_keep_their_own_names():
    import mxnp.gluon.data.sampler as ours

    spec = ours.__spec__
    assert importlib.import_module("mxnet.gluon.data.sampler") is ours
    assert ours.__spec__ is spec
    assert ours.__name__ == "mxnp.gluon.data.sampler"
    assert mxnp.__spec__.name == "mxnp"
    assert importlib.util.find_spec("mxnet.gluon.data.sampler") is not None


def test_programs_that_ask_for_a_version_are_served():
    import mxnet as mx

    assert [int(part) for part in mx.__version__.split(".")] == [2, 0, 0]
    assert importlib.metadata.version("mxnet") == mx.__version__
    assert mx.libinfo.__version__ == mxnp.libinfo.__version__ != mx.__version__
    compat.uninstall()
    assert mxnp.__version__ == mxnp.libinfo.__version__
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("mxnet")
    compat.install_as_mxnet()
    compat.install_as_mxnet()
    assert mxnp.__version__ == "2.0.0"


def test_alias_that_is_only_an_attribute(monkeypatch):
    alias = types.ModuleType("mxnp.somewhere")
    monkeypatch.setattr(mxnp, "another_name", alias, raising=False)
    assert importlib.import_module("mxnet.another_name") is alias


def test_missing_parts_say_so_on_use(monkeypatch):
    monkeypatch.delattr(mxnp, "notebook", raising=False)
    module = importlib.import_module("mxnet.notebook")
    with pytest.raises(
        compat.NotArrivedError, match=r"mxnet\.notebook\.callback: this part of MXNet has not arrived"
    ) as caught:
        _ = module.callback
    assert isinstance(caught.value, MXNetError)
    assert isinstance(caught.value, NotImplementedError)
    with pytest.raises(ImportError, match=r"mxnet\.notebook\.thing"):
        from mxnet.notebook import thing  # noqa: F401
    # Its parent is still mxnp, and a module below a missing one is found too.
    below = importlib.import_module("mxnet.contrib.svrg_optimization")
    with pytest.raises(compat.NotArrivedError, match="svrg_optimization"):
        _ = below.SVRGModule


def test_names_that_are_not_mxnets():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'mxnet\.bogus'"):
        importlib.import_module("mxnet.bogus")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("mxnetwork")
    assert compat.missing_module("bogus") is None


def test_a_broken_import_inside_is_not_hidden(monkeypatch, tmp_path):
    (tmp_path / "broken_part.py").write_text("import surely_not_installed_anywhere\n")
    monkeypatch.setattr(mxnp, "__path__", [*mxnp.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed_anywhere"):
        importlib.import_module("mxnet.broken_part")


def test_refuses_beside_mxnet_itself():
    compat.uninstall()
    sys.modules["mxnet"] = types.ModuleType("mxnet")
    try:
        with pytest.raises(RuntimeError, match="has been imported already"):
            compat.install_as_mxnet()
    finally:
        del sys.modules["mxnet"]
        compat.install_as_mxnet()
        compat.install_as_mxnet()


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "mxnp.compat", *arguments],
        cwd=cwd,
        timeout=120,
        check=False,
        capture_output=True,
        text=True,
    )


def test_command(tmp_path):
    (tmp_path / "beside.py").write_text("VALUE = 5\n")
    (tmp_path / "main.py").write_text(
        "import sys, beside, mxnet\n"
        "from mxnet.gluon.data import SimpleDataset\n"
        "print(__name__, sys.argv[1:], beside.VALUE, mxnet.__name__, len(SimpleDataset([1, 2])))\n"
        "sys.exit(int(sys.argv[2]))\n"
    )
    for start in (["main.py"], ["-m", "main"]):
        done = run(*start, "--flag", "7", cwd=tmp_path)
        assert done.stdout.strip() == "__main__ ['--flag', '7'] 5 mxnp 2", done.stderr
        assert done.returncode == 7
    done = run("absent.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no file 'absent.py'" in done.stderr
    assert run(cwd=tmp_path).returncode == 2
    assert run("--help", cwd=tmp_path).stdout.startswith("usage:")


def test_modules_inside_missing_ones_import_by_name():
    from mxnet.contrib import quantization
    from mxnet.gluon.contrib import estimator
    from mxnet.gluon.model_zoo import vision

    assert vision.__name__ == "mxnet.gluon.model_zoo.vision"
    for module, name in ((vision, "resnet18_v1"), (estimator, "Estimator"), (quantization, "quantize_net")):
        with pytest.raises(compat.NotArrivedError, match=rf"{name}: this part of MXNet has not arrived"):
            getattr(module, name)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("gluon.nn.basic_layers", "BatchNorm"),
        ("gluon.nn.basic_layers", "HybridSequential"),
        ("gluon.nn.conv_layers", "MaxPool2D"),
        ("gluon.data.dataloader", "default_mp_batchify_fn"),
        ("gluon.parameter", "tensor_types"),
        ("numpy.multiarray", "ndarray"),
        ("base", "mx_real_t"),
        ("util", "makedirs"),
    ],
)
def test_names_in_the_modules_where_mxnet_has_them(path, name):
    assert getattr(importlib.import_module(f"mxnet.{path}"), name) is not None
