"""ray.tune.schedulers, as far as we have it."""

from tune_ray.tune._schedule import ASHAScheduler, AsyncHyperBandScheduler, FIFOScheduler, HyperBandScheduler, MedianStoppingRule

__all__ = ["ASHAScheduler", "AsyncHyperBandScheduler", "FIFOScheduler", "HyperBandScheduler", "MedianStoppingRule"]
