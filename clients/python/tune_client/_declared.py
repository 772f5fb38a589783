"""Optuna's suggest_* against a declared space: a call names a parameter, the value was chosen when the trial was asked for."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping, Sequence

_PRIORS = ("normal", "lognormal")


def numeric_spec(kind: str, low: float, high: float, step: float | None, log: bool) -> dict[str, Any]:
    """The declaration, as in study.yaml, that a suggest_float ("float") or suggest_int ("int") asks for."""
    spec: dict[str, Any] = {kind: [low, high]}
    if log:
        spec["log"] = True
    if step is not None and not (kind == "int" and step == 1):
        spec["step"] = step
    return spec


def check_numeric(call: str, name: str, declared: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """ValueError unless the parameter is declared with the range that the call asks for."""
    kind = "int" if "int" in wanted else "float"
    if kind in declared and _range(kind, declared) == _range(kind, wanted):
        has_prior = any(prior in declared for prior in _PRIORS)
        if has_prior or bool(declared.get("log")) == bool(wanted.get("log")):
            return
    raise _differs(call, name, declared, wanted)


def choice_of(call: str, name: str, declared: Mapping[str, Any], choices: Sequence[Any], value: Any) -> Any:
    """The one of `choices` that is `value`; ValueError unless the parameter is declared with these choices, in any order."""
    known = declared.get("choice", declared.get("ordinal", [declared["const"]] if "const" in declared else None))
    plain = [_plain(choice) for choice in choices]
    if known is None or sorted(map(_key, known)) != sorted(map(_key, plain)):
        raise _differs(call, name, declared, {"choice": plain})
    return next(choice for choice, text in zip(choices, plain) if _key(text) == _key(value))


def undeclared(call: str, study: str, name: str, wanted: Mapping[str, Any]) -> ValueError:
    """For a parameter that the space does not have, with the words that declare it."""
    return ValueError(f"{call}: study {study!r} has no parameter {name!r}. A space is declared when the study is created: "
                      f"space={{{name!r}: {_shown(wanted)}, ...}}")


def inactive(call: str, number: int, declared: Mapping[str, Any]) -> ValueError:
    """For a parameter that its condition switches off in this trial."""
    return ValueError(f"{call}: it is switched off in trial {number}, for the space says when={_shown(declared.get('when'))}; "
                      "ask for it only where that holds")


def _differs(call: str, name: str, declared: Mapping[str, Any], wanted: Mapping[str, Any]) -> ValueError:
    shown = {key: part for key, part in declared.items() if key not in ("when", "init", "weights")}
    return ValueError(f"{call}: the study declares {name!r} as {_shown(shown)}, and this call asks for {_shown(wanted)}; "
                      "make them equal")


def _range(kind: str, spec: Mapping[str, Any]) -> tuple[float, ...]:
    low, high = map(float, spec[kind])
    step = float(spec.get("step") or (1 if kind == "int" else 0))
    if step > 0:  # the last value of the grid, as Optuna has it
        high = low + math.floor((high - low) / step + 1e-9) * step
    return tuple(float(f"{number:.12g}") for number in (low, high, step))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _key(value: Any) -> str:
    """Equal for equal JSON values; 1 and 1.0 are one number, 1 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, default=str)


def _shown(value: Any) -> str:
    """As Python writes it."""
    return repr(value)
