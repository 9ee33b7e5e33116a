"""Data for training: datasets, samplers, batch functions and the loader that joins them."""

from mxnp._missing import refuse as _refuse

from . import batchify, dataloader, dataset, sampler, vision
from .dataloader import DataLoader
from .dataset import ArrayDataset, Dataset, SimpleDataset
from .sampler import BatchSampler, FilterSampler, IntervalSampler, RandomSampler, Sampler, SequentialSampler

__all__ = [
    "ArrayDataset",
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "FilterSampler",
    "IntervalSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SimpleDataset",
    "batchify",
    "dataloader",
    "dataset",
    "sampler",
    "vision",
]

__getattr__ = _refuse(__name__)
