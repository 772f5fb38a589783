"""ray.tune's search spaces, as ours. Takes the objects of this module and those of ray.tune."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any, Mapping, Sequence

from tune_client._errors import TuneError


@dataclasses.dataclass(frozen=True)
class Domain:
    """One parameter: its declaration as in study.yaml."""

    spec: Mapping[str, Any]


def uniform(lower: float, upper: float) -> Domain:
    """A float in [lower, upper]."""
    return Domain({"float": [lower, upper]})


def quniform(lower: float, upper: float, q: float) -> Domain:
    """A multiple of q in [lower, upper]."""
    return Domain({"float": [lower, upper], "step": q})


def loguniform(lower: float, upper: float, base: float = 10) -> Domain:
    """A float in [lower, upper], on a logarithmic scale, whatever its base."""
    del base
    return Domain({"float": [lower, upper], "log": True})


def qloguniform(lower: float, upper: float, q: float, base: float = 10) -> Domain:
    """A multiple of q in [lower, upper], on a logarithmic scale."""
    del base
    count = math.floor((upper - lower) / q + 1e-9)
    if float(q).is_integer() and float(lower).is_integer():
        return Domain({"int": [int(lower), int(lower + count * q)], "log": True, "step": int(q)})
    raise TuneError(f"qloguniform({lower}, {upper}, {q}) of fractions is not supported: use loguniform and round in the training")


def randn(mean: float = 0.0, sd: float = 1.0) -> Domain:
    """A normal draw, within five deviations."""
    return Domain({"normal": [mean, sd]})


def qrandn(mean: float, sd: float, q: float) -> Domain:
    """A normal draw, rounded to a multiple of q."""
    low, high = (round((mean + side * 5 * sd) / q) * q for side in (-1, 1))
    return Domain({"float": [low, high], "step": q, "normal": [mean, sd]})


def randint(lower: int, upper: int) -> Domain:
    """An integer in [lower, upper): upper is left out, as in ray.tune."""
    return Domain({"int": [lower, upper - 1]})


def qrandint(lower: int, upper: int, q: int = 1) -> Domain:
    """A multiple of q in [lower, upper]: upper is included, as in ray.tune."""
    return Domain({"int": [lower, upper], "step": q})


def lograndint(lower: int, upper: int, base: float = 10) -> Domain:
    """An integer in [lower, upper), on a logarithmic scale."""
    del base
    return Domain({"int": [lower, upper - 1], "log": True})


def qlograndint(lower: int, upper: int, q: int, base: float = 10) -> Domain:
    """A multiple of q in [lower, upper], on a logarithmic scale."""
    del base
    return Domain({"int": [lower, upper], "log": True, "step": q})


def choice(categories: Sequence[Any]) -> Domain:
    """One of these, of any type."""
    return Domain({"choice": list(categories)})


def grid_search(values: Sequence[Any]) -> dict[str, Any]:
    """Each of these, in each sample."""
    return {"grid_search": list(values)}


def sample_from(function: Any) -> Domain:
    """Not supported: a function cannot be declared. TuneError."""
    raise TuneError(f"sample_from({function!r}) is not supported: a space is declared. Compute the value in the training, or use `derive` "
                    "and `when` of study.yaml")


class Space:
    """A param_space: what is searched, what is tried in any case, and what is constant."""

    def __init__(self, tree: Mapping[str, Any]) -> None:
        self._tree = tree
        self._options: dict[str, list[Any]] = {}  # of choices, whatever their types
        self.declared: dict[str, Any] = {}
        self._grids: dict[str, int] = {}
        for path, leaf in _leaves(tree, ()):
            self._add("/".join(path), leaf)

    def points(self, samples: int) -> list[dict[str, Any]]:
        """What is tried first: each combination of the grids, so many times. One empty point a sample without grids."""
        grids = [[(name, self.declared[name]["choice"][i]) for i in range(count)] for name, count in self._grids.items()]
        return [dict(each) for _ in range(samples) for each in itertools.product(*grids)]

    def point(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that a config names: one to be tried, with nested names or with a/b. TuneError for an option that is not there."""
        found = {}
        for path, leaf in _leaves(config, ()):
            name = "/".join(path)
            if name in self._options:
                if leaf not in self._options[name]:
                    raise TuneError(f"points_to_evaluate: {name} has no option {leaf!r}; it has {self._options[name]}")
                found[name] = self.declared[name]["choice"][self._options[name].index(leaf)]
            elif name in self.declared:
                found[name] = leaf
        return found

    def config(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The config of a trial with these parameters."""
        found: dict[str, Any] = _filled(self._tree, (), lambda path, leaf: self._value("/".join(path), leaf, params))
        return found

    def _add(self, name: str, leaf: Any) -> None:
        if isinstance(leaf, Mapping):  # a grid
            self._grids[name] = len(leaf["grid_search"])
            self.declared[name] = self._choice(name, leaf["grid_search"])
        elif is_domain(leaf):
            spec = _spec_of(leaf)
            self.declared[name] = self._choice(name, spec["choice"]) if "choice" in spec else dict(spec)

    def _choice(self, name: str, options: Sequence[Any]) -> dict[str, Any]:
        """JSON's values as they are; other objects by their index."""
        is_plain = all(isinstance(one, (str, int, float, bool)) or one is None for one in options)
        is_plain = is_plain and len({repr(one) for one in options}) == len(options)
        self._options[name] = list(options)
        return {"choice": list(options) if is_plain else list(range(len(options)))}

    def _value(self, name: str, leaf: Any, params: Mapping[str, Any]) -> Any:
        if name not in self.declared:
            return leaf
        value = params[name]
        if name in self._options:
            index = next(i for i, one in enumerate(self.declared[name]["choice"]) if repr(one) == repr(value))
            return self._options[name][index]
        return value


def is_domain(leaf: Any) -> bool:
    """Whether it is searched: ours, or ray.tune's."""
    return isinstance(leaf, Domain) or type(leaf).__module__ == "ray.tune.search.sample"


def _leaves(node: Any, path: tuple[str, ...]) -> Any:
    if isinstance(node, Mapping) and set(node) != {"grid_search"}:
        for name, child in node.items():
            yield from _leaves(child, (*path, str(name)))
    else:
        yield path, node


def _filled(node: Any, path: tuple[str, ...], value: Any) -> Any:
    if isinstance(node, Mapping) and set(node) != {"grid_search"}:
        return {name: _filled(child, (*path, str(name)), value) for name, child in node.items()}
    return value(path, node)


def _spec_of(leaf: Any) -> Mapping[str, Any]:
    if isinstance(leaf, Domain):
        return leaf.spec
    kind, sampler, quantum = type(leaf).__name__, leaf.get_sampler(), None
    if type(sampler).__name__ == "Quantized":
        quantum, sampler = sampler.q, sampler.get_sampler()
    name = type(sampler).__name__.strip("_")
    if kind == "Categorical":
        return {"choice": list(leaf.categories)}
    if kind not in ("Float", "Integer") or name not in ("Uniform", "LogUniform", "Normal"):
        raise TuneError(f"{leaf!r} of ray.tune is not supported")
    if name == "Normal":
        return (qrandn(sampler.mean, sampler.sd, quantum) if quantum else randn(sampler.mean, sampler.sd)).spec
    is_log = name == "LogUniform"
    if kind == "Float":
        if quantum:
            return (qloguniform if is_log else quniform)(leaf.lower, leaf.upper, quantum).spec
        return (loguniform if is_log else uniform)(leaf.lower, leaf.upper).spec
    if quantum and quantum != 1:
        return (qlograndint if is_log else qrandint)(leaf.lower, leaf.upper, int(quantum)).spec
    return (lograndint if is_log else randint)(leaf.lower, leaf.upper).spec
