"""Image data sets and the transforms for them."""

from mxnp._missing import refuse as _refuse

from . import datasets, transforms
from .datasets import MNIST, FashionMNIST, ImageFolderDataset

__all__ = ["MNIST", "FashionMNIST", "ImageFolderDataset", "datasets", "transforms"]

__getattr__ = _refuse(__name__)
