"""ray.tune.schedulers, as far as we have it."""

from tune_ray.tune._config import ASHAScheduler, AsyncHyperBandScheduler, FIFOScheduler, MedianStoppingRule

__all__ = ["ASHAScheduler", "AsyncHyperBandScheduler", "FIFOScheduler", "MedianStoppingRule"]
