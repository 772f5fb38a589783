#!/usr/bin/env python3
"""Prints a Hyperopt space as JSON, for `tune space`: only Python can read a space made in Python.

    python hyperopt_space.py my_script.py:space > space.json
    tune space space.json > study.yaml

`space` is a variable of the script, or a function without arguments. In a script of yours:
print(json.dumps(hyperopt_space.tree(space))). Needs hyperopt; 0.3.0 was tried.
"""

import importlib.util
import json
import os
import sys
from typing import Any

WRAPPERS = ("float", "int")


class NotCarriedOver(ValueError):
    """The space holds something that has no counterpart."""


def _literal(node: Any) -> Any:
    value = node.obj
    if hasattr(value, "item"):  # numpy's numbers
        value = value.item()
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    raise NotCarriedOver(f"a value of type {type(value).__name__}: {value!r}")


def _arguments(node: Any) -> list:
    return [_literal(arg) for arg in node.pos_args] + [_literal(arg) for _, arg in node.named_args]


def _parameter(node: Any) -> dict:
    label, distribution = _literal(node.pos_args[0]), node.pos_args[1]
    return {"hp": distribution.name, "label": label, "args": _arguments(distribution)}


def _switch(node: Any) -> dict:
    parameter, *options = node.pos_args
    if parameter.name != "hyperopt_param":
        raise NotCarriedOver("a switch that no hp.choice made")
    label = _literal(parameter.pos_args[0])
    found = {"hp": "choice", "label": label, "options": [_node(option) for option in options]}
    distribution = parameter.pos_args[1]
    if distribution.name == "categorical":
        found["weights"] = [_literal(share) for share in distribution.pos_args[0].pos_args]
    return found


def _node(node: Any) -> dict:
    if node.name == "literal":
        return {"value": _literal(node)}
    if node.name == "dict":
        return {"map": {str(name): _node(value) for name, value in node.named_args}}
    if node.name == "pos_args":
        return {"list": [_node(item) for item in node.pos_args]}
    if node.name == "switch":
        return _switch(node)
    if node.name == "hyperopt_param":
        return _parameter(node)
    if node.name in WRAPPERS and len(node.pos_args) == 1:
        inner = _node(node.pos_args[0])
        is_whole = inner.get("hp") in ("randint", "quniform", "qnormal")
        if node.name == "int" and not is_whole:
            what = f"{inner.get('hp', 'a value')} {inner.get('label', '')}"
            raise NotCarriedOver(f"int() of {what}")
        return inner
    raise NotCarriedOver(f"an expression: {node.name}()")


def tree(space: Any) -> dict:
    """The space as `tune space` reads it. Raises NotCarriedOver for what it cannot hold."""
    from hyperopt.pyll import as_apply

    return {"hyperopt": 1, "space": _node(as_apply(space))}


def main(argv: list) -> int:
    if len(argv) != 2 or ":" not in argv[1]:
        print(__doc__, file=sys.stderr)
        return 2
    path, _, name = argv[1].rpartition(":")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # what the script imports lies beside it
    spec = importlib.util.spec_from_file_location("space_script", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    space = getattr(module, name)
    try:
        print(json.dumps(tree(space() if callable(space) else space), indent=1))
    except NotCarriedOver as error:
        print(f"{path}: {error} has no counterpart", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
