"""Two names for one thing, ours and Optuna's, and what they mean together."""

from __future__ import annotations

from typing import Any, Sequence, TypeVar

_Value = TypeVar("_Value")
_GOALS = {"minimize": "min", "maximize": "max"}


def one_of(**named: _Value | None) -> _Value | None:
    """The value of whichever name was given. ValueError where two differ."""
    given = {name: value for name, value in named.items() if value is not None}
    if len(given) > 1 and any(value != next(iter(given.values())) for value in given.values()):
        shown = " and ".join(f"{name}={value!r}" for name, value in given.items())
        raise ValueError(f"{shown} mean the same; give one of them")
    return next(iter(given.values()), None)


def required(what: str, **named: _Value | None) -> _Value:
    """As one_of; TypeError with the sentence `what` where none was given."""
    value = one_of(**named)
    if value is None:
        raise TypeError(what)
    return value


def metrics_of(metric: Any, goal: str | None, direction: Any, directions: Sequence[Any] | None) -> Any:
    """The field `metric` of a study, of our words and Optuna's. TypeError or ValueError where they do not go together."""
    if direction is None and directions is None:
        if metric is None:
            raise TypeError("what is it measured by? create_study needs metric= and goal=, or direction=, or directions=")
        return {"name": metric, "goal": goal or "min"} if isinstance(metric, str) else metric
    if goal is not None or (direction is not None and directions is not None):
        raise ValueError("goal, direction and directions mean the same; give one of them")
    goals = [_goal_of(one) for one in ([direction] if directions is None else directions)]
    if metric is None:
        names = ["value"] if len(goals) == 1 else [f"values_{i}" for i in range(len(goals))]
    else:
        names = list(metric) if isinstance(metric, (list, tuple)) else [metric]
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"with direction= or directions= metric is a name, or a list of names, found {metric!r}")
    if len(names) != len(goals) or not goals:
        raise ValueError(f"one direction a metric: found {counted(len(names), 'metric')} and "
                         f"{counted(len(goals), 'direction')}")
    metrics = [{"name": name, "goal": one} for name, one in zip(names, goals)]
    return metrics[0] if len(metrics) == 1 else metrics


def check_plain(part: str, value: Any) -> None:
    """TypeError for an object, such as a sampler of Optuna's, where the server takes a name or a mapping."""
    if value is not None and not isinstance(value, (str, dict)):
        raise TypeError(f"{part} is a name or a mapping as in study.yaml, such as {part}={_EXAMPLES[part]}; "
                        f"found a {type(value).__name__}")


_EXAMPLES = {"sampler": '"tpe" or {"type": "tpe", "seed": 7}', "pruner": '"median" or {"type": "median", "startup": 5}'}


def _goal_of(direction: Any) -> str:
    word = str(getattr(direction, "name", direction)).lower()  # Optuna's StudyDirection.MAXIMIZE has a name
    if word not in _GOALS:
        raise ValueError(f'a direction is "minimize" or "maximize", found {direction!r}')
    return _GOALS[word]


def counted(count: int, thing: str) -> str:
    """"1 trial", "2 trials"."""
    return f"{count} {thing}{'' if count == 1 else 's'}"
