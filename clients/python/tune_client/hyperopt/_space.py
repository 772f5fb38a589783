"""Hyperopt's spaces as ours: each label a parameter, with its distribution and the choices under which it exists."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Iterator, Mapping

from hyperopt import pyll

_SIGMAS = 20.0  # of a normal without bounds, to each side: what Hyperopt draws beyond is less likely than a fault of the machine
_LOG_MAX = 700.0  # exp() of more is infinite


@dataclasses.dataclass
class Label:
    """One hp.* of a space."""

    name: str
    distribution: str  # of pyll: uniform, quniform, randint, categorical, ...
    arguments: dict[str, Any]
    options: list[Any] | None  # of hp.choice and hp.pchoice, where they are different plain values; else None
    count: int  # of options; 0 of other distributions
    conditions: list[tuple[tuple[str, int], ...]]  # any of these: all of those choices, by index


def labels_of(space: Any) -> dict[str, Label]:
    """All of a space, outer choices before what they switch. ValueError for a label that stands for two distributions."""
    found: dict[str, Label] = {}
    for label, conditions in _walk(pyll.as_apply(space), ()):
        known = found.setdefault(label.name, label)
        if (known.distribution, known.arguments) != (label.distribution, label.arguments):
            raise ValueError(f"the label {label.name!r} stands for two parameters; give each a name of its own")
        known.conditions.append(conditions)
    return found


def declared(labels: Mapping[str, Label], is_exact: bool) -> dict[str, Any]:
    """The space as in study.yaml.

    `is_exact`: a server's sampler draws from it as Hyperopt would. Else the values are Hyperopt's own, and the space has room for
    all that Hyperopt may draw: without steps, and a quantum beyond the bounds.
    """
    space = {}
    for label in labels.values():
        spec = _exact(label) if is_exact else _roomy(label)
        when = _when(label, labels)
        space[label.name] = {**spec, "when": when} if when else spec
    return space


def to_point(labels: Mapping[str, Label], values: Mapping[str, Any]) -> dict[str, Any]:
    """Our parameters of Hyperopt's values by label: a choice is its option, where that is a plain value, not its index."""
    return {name: _ours(labels[name], value) for name, value in values.items()}


def to_values(labels: Mapping[str, Label], point: Mapping[str, Any]) -> dict[str, Any]:
    """The way back: Hyperopt's values by label of those that the choices switch on."""
    values = {name: _theirs(labels[name], point[name]) for name in labels if name in point}
    return {name: value for name, value in values.items() if is_active(labels[name], values)}


def is_active(label: Label, values: Mapping[str, Any]) -> bool:
    """Whether the label is used, where the choices have these values."""
    return any(all(values.get(name) == index for name, index in each) for each in label.conditions)


def _walk(node: Any, conditions: tuple[tuple[str, int], ...]) -> Iterator[tuple[Label, tuple[tuple[str, int], ...]]]:
    if node.name == "switch":
        parameter, *options = node.pos_args
        yield _label(parameter, [_plain(option) for option in options]), conditions
        name = parameter.arg["label"].obj
        for i, option in enumerate(options):
            yield from _walk(option, (*conditions, (name, i)))
    elif node.name == "hyperopt_param":
        yield _label(node, []), conditions
    else:
        for child in node.inputs():
            yield from _walk(child, conditions)


class _NotPlain:
    """An option that JSON has no form for."""


def _plain(node: Any) -> Any:
    value = node.obj if node.name == "literal" else _NotPlain
    return value if isinstance(value, (str, int, float, bool)) or value is None else _NotPlain


def _label(node: Any, options: list[Any]) -> Label:
    distribution = node.arg["obj"]
    arguments = {name: pyll.rec_eval(child) for name, child in distribution.arg.items()
                 if isinstance(child, pyll.Apply) and name not in ("rng", "size")}
    is_usable = _NotPlain not in options and len({repr(option) for option in options}) == len(options)
    return Label(node.arg["label"].obj, distribution.name, arguments, options if options and is_usable else None, len(options), [])


def _ours(label: Label, value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    if label.count:
        return label.options[plain] if label.options else plain
    return int(plain) if _is_whole(label) else float(plain)


def _theirs(label: Label, value: Any) -> Any:
    if label.options:
        return next(i for i, option in enumerate(label.options) if repr(option) == repr(value))
    return value if label.distribution in ("randint", "categorical") else float(value)


def _is_whole(label: Label) -> bool:
    return label.distribution in ("randint", "categorical") or "int" in _roomy(label)


def _when(label: Label, labels: Mapping[str, Label]) -> dict[str, Any]:
    """Conditions that differ in more than one choice cannot be declared: the parameter then exists in all trials."""
    merged: dict[str, list[int]] = {}
    for conditions in label.conditions:
        for name, index in conditions:
            merged.setdefault(name, [])
            if index not in merged[name]:
                merged[name].append(index)
    differ = [name for name, indices in merged.items() if len(indices) > 1]
    is_everywhere = any(set(dict(each)) != set(merged) for each in label.conditions)
    if is_everywhere or len(differ) > 1:
        return {}
    return {name: [_ours(labels[name], i) for i in indices] if len(indices) > 1 else _ours(labels[name], indices[0])
            for name, indices in merged.items() if len(indices) < labels[name].count}


def _exact(label: Label) -> dict[str, Any]:
    kind, given = label.distribution, label.arguments
    if kind == "categorical" or label.count:
        return _choice(label)
    if kind == "randint":
        low, high = _integers(given)
        return {"int": [low, high]}
    if kind in ("uniform", "loguniform"):
        return {"float": _bounds(given, kind), **({"log": True} if kind == "loguniform" else {})}
    if kind in ("normal", "lognormal"):
        middle = math.exp(given["mu"]) if kind == "lognormal" else given["mu"]
        return {kind: [middle, given["sigma"]]}
    return _stepped(kind, given)


def _stepped(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    quantum = float(given["q"])
    if kind in ("quniform", "qloguniform"):
        low, high = (round(bound / quantum) * quantum for bound in _bounds(given, kind))
        if kind == "qloguniform" and low <= 0:
            low = quantum  # a logarithm has no zero
        log = {"log": True} if kind == "qloguniform" else {}
        if quantum.is_integer() and float(low).is_integer():
            return {"int": [int(low), int(high)], **({"step": int(quantum)} if quantum != 1 else {}), **log}
        return {"float": [low, high], "step": quantum} if not log else {"float": [low, high], **log}
    prior, (low, high) = kind[1:], _bounds(given, kind, 5.0)
    middle = math.exp(given["mu"]) if prior == "lognormal" else given["mu"]
    low, high = round(low / quantum) * quantum, round(high / quantum) * quantum
    if prior == "lognormal":
        return {"lognormal": [middle, given["sigma"]]}
    return {"float": [low, high], "step": quantum, "normal": [middle, given["sigma"]]}


def _choice(label: Label) -> dict[str, Any]:
    shares = label.arguments.get("p")
    count = label.count or len(shares or ())
    spec: dict[str, Any] = {"choice": label.options or list(range(count))}
    if shares is not None:
        spec["weights"] = [float(share) for share in shares]
    return spec


def _roomy(label: Label) -> dict[str, Any]:
    kind, given = label.distribution, label.arguments
    if kind == "categorical" or label.count:
        return {"choice": _choice(label)["choice"]}
    if kind == "randint":
        return {"int": list(_integers(given))}
    low, high = _bounds(given, kind)
    margin = float(given.get("q") or 0)
    if margin >= 1 and margin.is_integer():
        return {"int": [math.floor(low - margin), math.ceil(high + margin)]}
    ends = [low - margin - 1e-9 * abs(low), high + margin + 1e-9 * abs(high)]
    return {"float": ends, "log": True} if "log" in kind and not margin else {"float": ends}


def _integers(given: Mapping[str, Any]) -> tuple[int, int]:
    """Both included; randint(n) is 0..n-1."""
    low, high = given.get("low"), given.get("high")
    return (0, int(low or 0) - 1) if high is None else (int(low or 0), int(high) - 1)


def _bounds(given: Mapping[str, Any], kind: str, sigmas: float = _SIGMAS) -> list[float]:
    """As values, not exponents."""
    if "mu" in given:
        ends = [float(given["mu"]) + side * sigmas * float(given["sigma"]) for side in (-1, 1)]
    else:
        ends = [float(given["low"]), float(given["high"])]
    return [math.exp(min(max(end, -_LOG_MAX), _LOG_MAX)) for end in ends] if "log" in kind else ends
