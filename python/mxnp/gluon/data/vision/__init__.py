"""Image data sets and the transforms for them."""

from . import datasets, transforms
from .datasets import MNIST, FashionMNIST, ImageFolderDataset

__all__ = ["MNIST", "FashionMNIST", "ImageFolderDataset", "datasets", "transforms"]
