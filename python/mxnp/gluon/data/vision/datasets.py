"""Image data sets read from files the user has: MNIST, Fashion-MNIST, folders of images. Nothing is downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as onp

from mxnp._files import FormatError
from mxnp._missing import refuse as _refuse
from mxnp.error import MXNetError, MXNetNotImplementedError
from mxnp.gluon.data.dataset import SizedDataset

from ._idx import find, read_idx

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png")


class DataNotFoundError(MXNetError, FileNotFoundError):
    """The files of a data set are not where it looked."""


def data_home() -> Path:
    """`$MXNET_HOME`, or `~/.mxnet`: the folder whose `datasets` holds data sets by name."""
    return Path(os.environ.get("MXNET_HOME") or "~/.mxnet").expanduser()


class _Idx(SizedDataset):
    """Images and labels in four IDX files. Subclasses say the data set's name and where a system may keep it."""

    _name = ""
    _system: tuple[str, ...] = ()

    def __init__(
        self, root: str | os.PathLike | None = None, train: bool = True, transform: Callable | None = None
    ):
        self._train = train
        self._transform = transform
        usual = data_home() / "datasets" / self._name
        # MXNet's default, written out by a program, means the usual places too.
        default = (
            root is None or Path(root).expanduser() == Path("~/.mxnet/datasets").expanduser() / self._name
        )
        self._folders = [usual, *map(Path, self._system)] if default else [Path(root or "").expanduser()]
        stem = "train" if train else "t10k"
        images, labels = self._locate(f"{stem}-images-idx3-ubyte"), self._locate(f"{stem}-labels-idx1-ubyte")
        data, label = read_idx(images, 3), read_idx(labels, 1)
        if len(data) != len(label):
            raise FormatError(f"{labels}: {len(label)} labels for the {len(data)} images of {images}")
        self._data = data[..., None]
        self._label = label.astype(onp.int32)

    def _locate(self, stem: str) -> Path:
        path = find(self._folders, stem)
        if path is None:
            looked = ", ".join(str(folder) for folder in self._folders)
            raise DataNotFoundError(
                f"{type(self).__name__}: there is no {stem} or {stem}.gz in {looked}\n"
                "hint: give the folder with the four files as root="
            )
        return path

    def __len__(self) -> int:
        return len(self._label)

    def __getitem__(self, idx: int | slice) -> Any:
        from mxnp import np

        image, label = np.array(self._data[idx], dtype="uint8"), self._label[idx]
        return self._transform(image, label) if self._transform is not None else (image, label)

    def _take_batch(self, indices: list[int]) -> tuple | None:
        return (self._data[indices], self._label[indices]) if self._transform is None else None


class MNIST(_Idx):
    """Handwritten digits: 60000 training and 10000 test images, uint8 of shape (28, 28, 1), labels int32 0 to 9.

    `root` is the folder with the four IDX files, gzipped or not; without it `$MXNET_HOME/datasets/mnist` (or
    `~/.mxnet/datasets/mnist`) is used. `transform(image, label)` is applied to each sample. A missing file raises
    FileNotFoundError that says where it looked, a damaged one FormatError.

    >>> try:
    ...     MNIST(root="nowhere")
    ... except FileNotFoundError as error:
    ...     print(str(error).splitlines()[0])
    MNIST: there is no train-images-idx3-ubyte or train-images-idx3-ubyte.gz in nowhere
    """

    _name = "mnist"


class FashionMNIST(_Idx):
    """Zalando's clothes, in MNIST's format and sizes.

    `root`, `train` and `transform` are MNIST's; without `root`, `datasets/fashion-mnist` and then Debian's
    package dataset-fashion-mnist are used.

    >>> try:
    ...     FashionMNIST(root="nowhere", train=False)
    ... except FileNotFoundError as error:
    ...     print(str(error).splitlines()[0])
    FashionMNIST: there is no t10k-images-idx3-ubyte or t10k-images-idx3-ubyte.gz in nowhere
    """

    _name = "fashion-mnist"
    _system = ("/usr/share/datasets/fashion-mnist", "/usr/share/dataset-fashion-mnist")


class ImageFolderDataset(SizedDataset):
    """Images in `root/<class>/*.jpg|jpeg|png`; a sample is (image of shape (height, width, 3), class number).

    `synsets` lists the class names in the order of their numbers, `items` the (path, number) pairs. `flag` 0 gives
    grey images of shape (height, width, 1). `decoder(bytes, flag)` makes an array of a file's bytes; without it
    Pillow is used. `transform(image, label)` is applied to each sample.

    >>> import tempfile
    >>> home = tempfile.TemporaryDirectory()
    >>> for name in ("cats", "dogs"):
    ...     Path(home.name, name).mkdir()
    ...     _ = Path(home.name, name, "0.png").write_bytes(b"")
    >>> data = ImageFolderDataset(home.name, decoder=lambda data, flag: onp.zeros((2, 2, 3)))
    >>> data.synsets, data[1][0].shape, data[1][1]
    (['cats', 'dogs'], (2, 2, 3), 1)
    >>> home.cleanup()
    """

    def __init__(
        self,
        root: str | os.PathLike,
        flag: int = 1,
        transform: Callable | None = None,
        decoder: Callable | None = None,
    ):
        self._root = Path(root).expanduser()
        self._flag = flag
        self._transform = transform
        self._decode = decoder or _decode_with_pillow
        if not self._root.is_dir():
            raise DataNotFoundError(f"ImageFolderDataset: there is no folder {self._root}")
        self.synsets = sorted(path.name for path in self._root.iterdir() if path.is_dir())
        self.items = [
            (str(path), number)
            for number, name in enumerate(self.synsets)
            for path in sorted((self._root / name).iterdir())
            if path.suffix.lower() in IMAGE_SUFFIXES
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, idx: int) -> Any:
        from mxnp import np

        path, label = self.items[idx]
        image = np.array(self._decode(Path(path).read_bytes(), self._flag), dtype="uint8")
        return self._transform(image, label) if self._transform is not None else (image, label)


def _decode_with_pillow(data: bytes, flag: int) -> onp.ndarray:
    try:
        from PIL import Image
    except ImportError:
        raise MXNetNotImplementedError(
            "ImageFolderDataset: decoding images needs the package Pillow\nhint: pip install pillow, or give decoder="
        ) from None
    import io

    with Image.open(io.BytesIO(data)) as image:
        array = onp.asarray(image.convert("RGB" if flag else "L"))
    return array if flag else array[..., None]


__getattr__ = _refuse(__name__)
