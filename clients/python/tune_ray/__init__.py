"""Ray's users: agents and trials on a Ray cluster, and trainables of ray.tune as our trials.

    import tune_ray

    with tune_ray.run_agents("http://HOST:5000", study="resnet", slots=8, gpus=1) as agents:     # a study of commands
        agents.wait()

    from tune_ray import tune                                              # in the place of `from ray import tune`
    tuner = tune.Tuner(train, param_space={"lr": tune.loguniform(1e-4, 1e-1)}, tune_config=tune.TuneConfig(metric="loss", mode="min",
                       num_samples=50))
    best = tuner.fit().get_best_result()

tune_ray.tune says what it has of ray.tune. Ray 2.60.0 was tried. Nodes need nothing of ours installed: what they run is sent to them.
"""

from tune_ray._actors import RayActors
from tune_ray._agents import Agents, run_agents

__all__ = ["Agents", "RayActors", "run_agents"]
