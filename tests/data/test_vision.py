"""MNIST-like data sets from files written here byte by byte, and the image transforms against NumPy."""

import gzip
import struct

import numpy as onp
import pytest

from mxnp import np
from mxnp._files import FormatError
from mxnp.error import MXNetError
from mxnp.gluon.data import ArrayDataset, DataLoader
from mxnp.gluon.data.vision import MNIST, FashionMNIST, ImageFolderDataset, transforms

IMAGES = (onp.arange(5 * 28 * 28) % 251).astype("uint8").reshape(5, 28, 28)
LABELS = onp.array([3, 1, 4, 1, 5], "uint8")


def idx(array, ndim=None, kind=8, shape=None):
    shape = array.shape if shape is None else shape
    return bytes([0, 0, kind, ndim or len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + array.tobytes()


def write(folder, images=None, labels=None, stem="train", pack=None, dot=False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in (
        ("images-idx3", idx(IMAGES) if images is None else images),
        ("labels-idx1", idx(LABELS) if labels is None else labels),
    ):
        name = f"{stem}-{name}-ubyte".replace("-idx", ".idx") if dot else f"{stem}-{name}-ubyte"
        (folder / (name + (".gz" if pack else ""))).write_bytes(pack(data) if pack else data)
    return folder


@pytest.mark.parametrize("cls", [MNIST, FashionMNIST])
@pytest.mark.parametrize("options", [{}, {"pack": gzip.compress}, {"dot": True}, {"stem": "t10k"}])
def test_reads(cls, options, tmp_path):
    data = cls(root=write(tmp_path, **options), train=options.get("stem") != "t10k")
    assert len(data) == 5
    image, label = data[2]
    assert type(image) is type(np.zeros(1))
    assert image.shape == (28, 28, 1)
    assert image.dtype == onp.uint8
    assert label == 4
    assert label.dtype == onp.int32
    onp.testing.assert_array_equal(image.asnumpy()[..., 0], IMAGES[2])
    some, few = data[1:3]
    assert some.shape == (2, 28, 28, 1)
    assert few.tolist() == [1, 4]


def test_told_apart_by_content_not_by_name(tmp_path):
    folder = write(tmp_path, images=gzip.compress(idx(IMAGES)))
    assert len(MNIST(root=str(folder))) == 5


def test_transform(tmp_path):
    data = MNIST(
        root=write(tmp_path), transform=lambda image, label: (image.astype("float32"), int(label) + 1)
    )
    assert data[0][1] == 4
    assert [y.asnumpy().tolist() for _, y in DataLoader(data, 5)] == [[4, 2, 5, 2, 6]]


def test_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    write(tmp_path / "datasets" / "mnist")
    assert len(MNIST()) == 5
    assert len(MNIST(root="~/.mxnet/datasets/mnist")) == 5


def test_missing_folder_says_where_it_looked(tmp_path, monkeypatch):
    with pytest.raises(
        FileNotFoundError, match=f"no train-images-idx3-ubyte .* in {tmp_path}/none"
    ) as caught:
        MNIST(root=tmp_path / "none")
    assert isinstance(caught.value, MXNetError)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"{tmp_path}/datasets/mnist"):
        MNIST(train=False)


GOOD = idx(IMAGES)


@pytest.mark.parametrize(
    ("images", "text"),
    [
        (GOOD[:-1], r"the header says \(5, 28, 28\), 3920 bytes, but there are 3919"),
        (GOOD + b"x", "but there are more"),
        (GOOD[:10], "expected an IDX file"),
        (b"", "expected an IDX file"),
        (idx(IMAGES, kind=9), "expected an IDX file of bytes with 3 dimensions"),
        (idx(IMAGES.reshape(5, 784)), "expected an IDX file of bytes with 3 dimensions"),
        (idx(IMAGES, shape=(2**32 - 1,) * 3), "bytes, but there are 3920"),
        (gzip.compress(GOOD)[:-20], "cannot be decompressed"),
        (gzip.compress(GOOD)[:-8] + bytes(8), "cannot be decompressed"),
        (gzip.compress(GOOD)[:20] + b"\xff" * 40, "cannot be decompressed"),
        (idx(IMAGES[:4]), "5 labels for the 4 images"),
    ],
)
def test_damaged_files(images, text, tmp_path):
    with pytest.raises(FormatError, match=text):
        MNIST(root=write(tmp_path, images=images))


def test_image_folder(tmp_path):
    for name in ("b/2.png", "b/1.JPG", "a/x.jpeg", "a/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "file").write_bytes(b"")

    def decoder(data, flag):
        return onp.full((2, 3, 3 if flag else 1), len(data), "uint8")

    data = ImageFolderDataset(tmp_path, decoder=decoder)
    assert data.synsets == ["a", "b"]
    assert [(path.rsplit("/", 1)[1], label) for path, label in data.items] == [
        ("x.jpeg", 0),
        ("1.JPG", 1),
        ("2.png", 1),
    ]
    image, label = data[2]
    assert image.shape == (2, 3, 3)
    assert image.asnumpy().max() == len("b/2.png")
    assert label == 1
    assert ImageFolderDataset(tmp_path, flag=0, decoder=decoder)[0][0].shape == (2, 3, 1)
    with pytest.raises(FileNotFoundError, match="no folder"):
        ImageFolderDataset(tmp_path / "none")


IMAGE = onp.arange(2 * 4 * 3, dtype="uint8").reshape(2, 4, 3) * 11


def test_to_tensor():
    want = (IMAGE.astype("float32") / onp.float32(255)).transpose(2, 0, 1)
    for image in (np.array(IMAGE, dtype="uint8"), IMAGE):
        got = transforms.ToTensor()(image)
        assert got.dtype == onp.float32
        onp.testing.assert_array_equal(got.asnumpy(), want)
    got = transforms.ToTensor()(np.array(onp.stack([IMAGE, IMAGE]), dtype="uint8"))
    onp.testing.assert_array_equal(got.asnumpy(), onp.stack([want, want]))
    with pytest.raises(
        ValueError, match=r"expected \(H, W, C\) or \(N, H, W, C\), got an array of shape \(2, 4\)"
    ):
        transforms.ToTensor()(np.zeros((2, 4)))


def test_normalize():
    x = onp.random.default_rng(0).random((3, 2, 4), "float32")
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.25, 2)
    got = transforms.Normalize(mean, std)(np.array(x, dtype="float32")).asnumpy()
    want = (x - onp.float32(mean).reshape(3, 1, 1)) / onp.float32(std).reshape(3, 1, 1)
    onp.testing.assert_allclose(got, want, rtol=1e-6)
    got = transforms.Normalize(0.5, 0.5)(np.array(x, dtype="float32")).asnumpy()
    onp.testing.assert_allclose(got, (x - 0.5) / 0.5, rtol=1e-5)
    with pytest.raises(ValueError, match="mean has 2 values for 3 channels"):
        transforms.Normalize((1, 2), 1)(np.array(x, dtype="float32"))
    with pytest.raises(ValueError, match="expected a float image"):
        transforms.Normalize()(np.array(IMAGE, dtype="uint8"))


def test_cast_and_compose():
    x = np.array(IMAGE, dtype="uint8")
    assert transforms.Cast("float16")(x).dtype == onp.float16
    assert [y.dtype for y in transforms.Cast()(x, x)] == [onp.float32, onp.float32]
    chain = transforms.Compose([transforms.ToTensor(), lambda y: y * 2, transforms.Cast("float64")])
    assert len(chain) == 3
    assert chain(x).dtype == onp.float64
    assert chain(x).shape == (3, 2, 4)
    hybrid = transforms.HybridCompose([transforms.ToTensor(), transforms.Normalize(0.5, 2.0)])
    assert hybrid(x).shape == (3, 2, 4)
    with pytest.raises(TypeError, match="transform 0 is a int"):
        transforms.Compose([3])
    with pytest.raises(TypeError, match="transform 1 is a function, not a HybridBlock"):
        transforms.HybridCompose([transforms.ToTensor(), lambda y: y])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "transform",
    [
        transforms.ToTensor(),
        transforms.Cast("float32"),
        transforms.Compose(
            [transforms.ToTensor(), transforms.Normalize((0.1, 0.2, 0.3), 0.5), transforms.Cast("float16")]
        ),
    ],
    ids=["tensor", "cast", "chain"],
)
def test_a_batch_at_once_equals_one_by_one(transform, workers):
    images = onp.random.default_rng(1).integers(0, 256, (7, 4, 6, 3), "uint8")
    data = ArrayDataset(images, onp.arange(7)).transform_first(transform)
    assert data._take_batch([1, 2]) is not None
    loader = DataLoader(data, 3, num_workers=workers)
    for i, (x, y) in enumerate(loader):
        rows = range(3 * i, min(3 * i + 3, 7))
        want = onp.stack([transform(np.array(images[row], dtype="uint8")).asnumpy() for row in rows])
        assert x.dtype == want.dtype
        onp.testing.assert_array_equal(x.asnumpy(), want)
        assert y.asnumpy().tolist() == list(rows)
    loader.close()
    assert ArrayDataset(images).transform(transforms.Compose([lambda x: x]))._take_batch([0]) is None
