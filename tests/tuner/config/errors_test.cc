// Bad input of every kind: each error names line and column, what was found and what was expected.

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "tuner/config/study_config.h"
#include "tuner/space/reachable.h"

namespace tune::tuner {
namespace {

std::string error_of(const std::string& text, const std::string& file = "s.yaml") {
    StudySource source;
    source.text = text;
    source.file = file;
    const Result<StudyConfig> config = read_study(source);
    if (config) return "accepted";
    EXPECT_EQ(config.error().code, Code::kInvalidParameterValue);
    return config.error().text();
}

struct Case {
    const char* text;
    const char* error;
};

void expect_errors(std::initializer_list<Case> cases, const std::string& file = "s.yaml") {
    for (const Case& one : cases)
        EXPECT_EQ(error_of(one.text, file), file + ": " + one.error) << one.text;
}

TEST(Errors, Domains) {
    expect_errors({
        {"space:\n  lr: {float: [0.1, 0]}",
         "line 2, column 15: space.lr: the lower bound 0.1 is above the upper bound 0.0; expected "
         "[low, high]"},
        {"space:\n  lr: {float: [0, 1], log: true}",
         "line 2, column 15: space.lr: a log scale needs bounds above 0, found 0.0; start at a "
         "small "
         "number such as 1e-6"},
        {"space:\n  n: {int: [0, 8], log: true}",
         "line 2, column 12: space.n: a log scale needs bounds above 0, found 0; start at 1"},
        {"space:\n  n: {int: [1, 8], log: true, step: 4}",
         "line 2, column 37: space.n: on a log scale the lower bound must be above half a step; 1 "
         "is "
         "not above 2.0"},
        {"space:\n  x: {float: [0.1, 1], log: true, step: 0.1}",
         "line 2, column 41: space.x: a float on a log scale cannot have a step; drop 'step', or "
         "use "
         "an int or an ordinal"},
        {"space:\n  x: {float: [0, 1], step: 3}",
         "line 2, column 28: space.x: step 3.0 is larger than the range 0.0..1.0, so only one "
         "value "
         "would be left"},
        {"space:\n  x: {float: [0, 1], step: -1}",
         "line 2, column 28: space.x: a step must be above 0, found -1.0"},
        {"space:\n  x: {float: [0, 1], step: 0}",
         "line 2, column 28: space.x.step: a step must be above 0"},
        {"space:\n  n: {int: [1, 2.5]}",
         "line 2, column 12: space.n: an int needs integer bounds, found 1.0 and 2.5; use float "
         "for "
         "real numbers"},
        {"space:\n  n: {int: [1, 8], step: 0.5}",
         "line 2, column 26: space.n: an int needs an integer step, found 0.5"},
        {"space:\n  n: {int: [0, 1e17]}",
         "line 2, column 12: space.n: integers beyond 2^53 are not exact; expected smaller bounds"},
        {"space:\n  x: {float: [0, .inf]}",
         "line 2, column 14: space.x: bounds must be finite numbers"},
        {"space:\n  x: {float: [0, .nan]}",
         "line 2, column 14: space.x: bounds must be finite numbers"},
        {"space:\n  x: {float: [-1.7e308, 1.7e308]}",
         "line 2, column 14: space.x: the range from -1.7e+308 to 1.7e+308 is too large for a "
         "double"},
        {"space:\n  x: {float: [0, 1.7e308]}",
         "line 2, column 14: space.x: the range from 0.0 to 1.7e+308 is too large for a double"},
        {"space:\n  x: {float: [0, 5e-324]}",
         "line 2, column 14: space.x: the range from 0.0 to 5e-324 is too narrow for a double"},
        {"space:\n  x: {float: [10000000000.0, 10000000000.000002], log: true}",
         "line 2, column 14: space.x: the range from 10000000000.0 to 10000000000.000002 is too "
         "narrow for a double"},
        {"space:\n  x: {float: [1e9, 1000000001], step: 1e-7}",
         "line 2, column 39: space.x: step 1e-07 is too fine beside 1000000001.0: doubles have 16 "
         "digits"},
        {"space:\n  x: {choice: [1, .inf]}",
         "line 2, column 15: space.x: infinity and NaN are no values of JSON; write the text that "
         "your program reads, such as \"inf\""},
        {"space:\n  x: {choice: [[1, {a: .nan}], 2]}",
         "line 2, column 15: space.x: infinity and NaN are no values of JSON; write the text that "
         "your program reads, such as \"inf\""},
        {"space:\n  x: {const: -.inf}",
         "line 2, column 14: space.x: infinity and NaN are no values of JSON; write the text that "
         "your program reads, such as \"inf\""},
        {"space:\n  x: {float: [0, one]}",
         "line 2, column 18: space.x.float: expected a number, found the text 'one'"},
        {"space:\n  x: {float: 3}",
         "line 2, column 14: space.x.float: expected [low, high], both included, found the number "
         "3"},
        {"space:\n  x: {float: [1, 2, 3]}",
         "line 2, column 14: space.x.float: expected [low, high], both included, found the list "
         "[1,2,3]"},
        {"space:\n  x: {choice: []}",
         "line 2, column 15: space.x: the list of values is empty; expected at least one"},
        {"space:\n  x: {choice: a}",
         "line 2, column 15: space.x.choice: expected a list of values, found the text 'a'"},
        {"space:\n  x: {choice: [a, b, a]}",
         "line 2, column 15: space.x: the value \"a\" is listed twice"},
        {"space:\n  x: {choice: [1, 1.0]}",
         "line 2, column 15: space.x: the value 1 is listed twice"},
        {"space:\n  x: {float: [0, 1], init: 2}",
         "line 2, column 28: space.x.init: 2.0 lies outside 0.0..1.0"},
        {"space:\n  x: {choice: [a, b], init: c}",
         "line 2, column 29: space.x.init: 'c' is not one of its values; known: a, b"},
    });
}

TEST(Errors, Shapes) {
    expect_errors({
        {"space: [1]",
         "line 1, column 8: space: expected a map of parameters, each such as lr: {float: [0, 1]}, "
         "found the list [1]"},
        {"space: {x: 3}",
         "line 1, column 12: space.x: expected {float: [0, 1]}, {int: [1, 8]}, {choice: [a, b]}, "
         "{ordinal: [1, 2, 4]}, {const: 3} or {normal: [0, 1], low: -5, high: 5}, found the number "
         "3"},
        {"space: {x: {}}",
         "line 1, column 12: space.x: expected {float: [0, 1]}, {int: [1, 8]}, {choice: [a, b]}, "
         "{ordinal: [1, 2, 4]}, {const: 3} or {normal: [0, 1], low: -5, high: 5}, found the map "
         "{}"},
        {"space: {x: {flaot: [0, 1]}}",
         "line 1, column 13: space.x: unknown key 'flaot'; did you mean 'float'? Known: float, "
         "int, "
         "choice, ordinal, const"},
        {"space: {x: {uniform: [0, 1]}}",
         "line 1, column 13: space.x: unknown key 'uniform'; write {float: [low, high]}"},
        {"space: {x: {loguniform: [-5, -1]}}",
         "line 1, column 13: space.x: unknown key 'loguniform'; write {float: [low, high], log: "
         "true} "
         "(bounds are the values themselves)"},
        {"space: {x: {step: 3}}",
         "line 1, column 12: space.x: its kind is missing; expected {float: [0, 1]}, {int: [1, "
         "8]}, "
         "{choice: [a, b]}, {ordinal: [1, 2, 4]}, {const: 3} or {normal: [0, 1], low: -5, "
         "high: 5}"},
        {"space: {x: {float: [0, 1], int: [0, 1]}}",
         "line 1, column 28: space.x: 'float' and 'int' exclude each other; a parameter is of one "
         "kind"},
        {"space: {x: {float: [0, 1], stp: 3}}",
         "line 1, column 28: space.x: unknown key 'stp'; did you mean 'step'? Known: float, log, "
         "step, normal, lognormal, init, when"},
        {"space: {x: {choice: [1, 2], log: true}}",
         "line 1, column 29: space.x: unknown key 'log'; known: choice, weights, init, when"},
        {"space: {x: {float: [0, 1], log: 1}}",
         "line 1, column 33: space.x.log: expected true or false, found the number 1"},
        {"space: {x: 0..1:lgo}",
         "line 1, column 12: space.x: in 'x=0..1:lgo', column 8: unknown flag 'lgo'; expected log, "
         "int, ord, if(name=value), normal(mean,deviation), lognormal(median,deviation), "
         "weights(a,b) or a number (the step); did you mean 'log'?"},
        {"space: {'a b': {float: [0, 1]}}",
         "line 1, column 9: space: the name 'a b' is not usable; expected a letter or '_', then "
         "letters, digits, '_', '-', '.', '/'"},
        {"space: {args: {float: [0, 1]}}",
         "line 1, column 9: space: the name 'args' is taken by the placeholder {args}; choose "
         "another"},
    });
}

TEST(Errors, Conditions) {
    expect_errors({
        {"space:\n  a: {choice: [x, y]}\n  b: {float: [0, 1], when: {aa: x}}",
         "line 3, column 29: space.b.when: the space has no parameter 'aa'; did you mean 'a'? "
         "Known: "
         "a, b"},
        {"space:\n  a: {choice: [x, y]}\n  b: {float: [0, 1], when: {a: z}}",
         "line 3, column 32: space.b.when.a: 'z' is not one of its values; known: x, y"},
        {"space:\n  a: {int: [1, 4]}\n  b: {float: [0, 1], when: {a: [1, 9]}}",
         "line 3, column 36: space.b.when.a: 9.0 lies outside 1..4"},
        {"space:\n  a: {float: [0, 1]}\n  b: {float: [0, 1], when: {a: 0.5}}",
         "line 3, column 32: space.b.when.a: 'a' is a float without step and never exactly one "
         "value; "
         "expected a comparison such as {\">=\": 0.5}"},
        {"space:\n  a: {int: [1, 4]}\n  b: {float: [0, 1], when: {a: {'>=': 5}}}",
         "line 3, column 32: space.b.when: the condition can never hold: 'a' has no value in that "
         "range"},
        {"space:\n  a: {int: [1, 4]}\n  b: {float: [0, 1], when: {a: {'>=': 3, '<': 3}}}",
         "line 3, column 32: space.b.when: the condition can never hold: 'a' has no value in that "
         "range"},
        {"space:\n  a: {int: [1, 4]}\n  b: {float: [0, 1], when: {a: {'=>': 3}}}",
         "line 3, column 33: space.b.when.a: unknown key '=>'; did you mean '>='? Known: >=, >, "
         "<=, <"},
        {"space:\n  a: {choice: [1, 4]}\n  b: {float: [0, 1], when: {a: {'>=': 3}}}",
         "line 3, column 32: space.b.when.a: the values of a choice have no order; expected a "
         "value "
         "or a list of values"},
        {"space:\n  a: {const: 1}\n  b: {float: [0, 1], when: {a: 2}}",
         "line 3, column 32: space.b.when.a: '2' is not one of its values; known: 1"},
        {"space:\n  a: {int: [1, 4]}\n  b: {float: [0, 1], when: {a: []}}",
         "line 3, column 32: space.b.when.a: the list is empty, so the condition never holds"},
        {"space:\n  a: {int: [1, 4]}\n  b: {float: [0, 1], when: a}",
         "line 3, column 28: space.b.when: expected a map such as {opt: sgd}, found the text 'a'"},
        {"space:\n  b: {int: [0, 1], when: {b: 1}}",
         "line 2, column 27: space.b.when: a parameter cannot depend on itself"},
        {"space:\n  a: {int: [0, 1], when: {b: 1}}\n  b: {int: [0, 1], when: {c: 1}}\n"
         "  c: {int: [0, 1], when: {a: 1}}",
         "line 2, column 26: space.a.when: the conditions form a cycle: a -> b -> c -> a"},
        {"space:\n  a: {choice: [1, 2]}\n  b: {float: [0, 1], when: {a: '1'}}",
         "line 3, column 32: space.b.when.a: the text '1' is not one of its values, but the number "
         "1 is"},
        {"space:\n  a: {choice: ['1', '2']}\n  b: {float: [0, 1], when: {a: 1}}",
         "line 3, column 32: space.b.when.a: the number 1 is not one of its values, but the text "
         "'1' is"},
        {"space:\n  a: {choice: [true]}\n  b: {float: [0, 1], when: {a: 'true'}}",
         "line 3, column 32: space.b.when.a: the text 'true' is not one of its values, but the "
         "value true is"},
        {"space: {x: {choice: [1, 2]}}\nforbid: [\"x == '1'\"]",
         "line 2, column 10: forbid[0]: in 'x == '1'', column 6: the text '1' is not one of its "
         "values, but the number 1 is"},
    });
}

constexpr const char* kTogether =
    "the conditions can never hold together: they, or those of the parameters they name, ask for "
    "values of 'a' that exclude each other";

TEST(Errors, ParametersThatNoPointCanHave) {
    const std::string a = "space:\n  a: {int: [1, 4]}\n";
    const std::string b = "  b: {choice: [1, 2], when: {a: 1}}\n";
    const std::pair<std::string, std::string> cases[] = {
        {a + b + "  x: {float: [0, 1], when: {a: 2, b: 1}}",
         std::string("line 4, column 28: space.x.when: ") + kTogether},
        {a + b + "  c: {choice: [1], when: {a: {'>': 1}}}\n  x: {int: [0, 1], when: {b: 2, c: 1}}",
         std::string("line 5, column 26: space.x.when: ") + kTogether},
        {a + "  b: {const: 1, when: {a: {'>': 1, '<=': 3}}}\n"
             "  x: {int: [0, 1], when: {b: 1, a: [1, 4]}}",
         std::string("line 4, column 26: space.x.when: ") + kTogether},
        {a + "  x: {int: [0, 1], when: {a: {'>': 2, '<': 3}}}",
         "line 3, column 26: space.x.when: the condition can never hold: 'a' has no such value"},
        {"space:\n  a: {float: [0, 1], step: 0.3}\n  x: {int: [0, 1], when: {a: {'>': 0.6, '<': "
         "0.9}}}",
         "line 3, column 26: space.x.when: the condition can never hold: 'a' has no such value"},
    };
    for (const auto& [text, error] : cases) EXPECT_EQ(error_of(text), "s.yaml: " + error) << text;
    for (const std::string& fine :
         {a + b + "  x: {float: [0, 1], when: {a: [1, 2], b: 1}}",
          a + "  b: {const: 1, when: {a: {'>': 1}}}\n  x: {int: [0, 1], when: {b: 1, a: [1, 4]}}",
          std::string("space:\n  a: {float: [0, 1]}\n  b: {const: 1, when: {a: {'>=': 0.5}}}\n"
                      "  x: {int: [0, 1], when: {b: 1, a: {'<=': 0.5}}}"),
          std::string("space:\n  a: {float: [0, 1], step: 0.3}\n"
                      "  x: {int: [0, 1], when: {a: {'>': 0.6, '<=': 0.9}}}")}) {
        StudySource source;
        source.text = fine;
        const Result<StudyConfig> read = read_study(source);
        EXPECT_TRUE(read) << fine << "\n" << (read ? "" : read.error().message);
    }
}

/// JSON has no lines: a recorded study must load, a new one over REST is refused by name.
TEST(Errors, ParametersThatNoPointCanHaveInJson) {
    const Result<Json> json = parse_json(
        R"({"a": {"int": [1, 4]}, "b": {"const": 1, "when": {"a": 1}},
            "x": {"int": [0, 1], "when": {"a": 2, "b": 1}}})");
    ASSERT_TRUE(json.has_value());
    const Result<Space> space = Space::from_json(*json);
    ASSERT_TRUE(space.has_value());
    const Result<void> refused = check_reachable(*space);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().message, std::string("space.x.when: ") + kTogether);
    EXPECT_TRUE(check_reachable(Space()).has_value());
}

TEST(Errors, Settings) {
    expect_errors({
        {"smapler: tpe",
         "line 1, column 1: unknown key 'smapler'; did you mean 'sampler'? Known: version, study, "
         "command, metric, constraints, space, forbid, derive, initial, sampler, pruner, budget, "
         "resources, priority, retry, stop_after_failures, scrape, log_rules, checkpoints, "
         "register, grace, timeout, env, "
         "working_dir, engine, warm_start"},
        {"version: 2",
         "line 1, column 10: version: expected 1, found the number 2; a later version needs a "
         "later "
         "tune"},
        {"study: a/b",
         "line 1, column 8: study: expected a name without '/', and not blank at its ends, found "
         "the "
         "text 'a/b'"},
        {"register: a/b",
         "line 1, column 11: register: expected the name of a registered model, without '/' and "
         "':', found the text 'a/b'"},
        {"register: 3", "line 1, column 11: register: expected a text, found the number 3"},
        {"metric: {name: a, goal: low}",
         "line 1, column 25: metric.goal: expected min or max, found the text 'low'"},
        {"metric: {name: a, take: mean_last_0}",
         "line 1, column 25: metric.take: expected best, last or mean_last_N (N from 1 to "
         "1000), "
         "found the text 'mean_last_0'"},
        {"sampler: tpee",
         "line 1, column 10: sampler.type: unknown sampler 'tpee'; did you mean 'tpe'? Known: tpe, "
         "gp, auto, cmaes, random, qmc, grid, nsga2, nsga3, pbt"},
        {"sampler: {type: random, startup: 3}",
         "line 1, column 25: sampler: unknown key 'startup'; known: type, seed, duplicates"},
        {"sampler: {type: pbt, duplicates: allow}",
         "line 1, column 22: sampler: unknown key 'duplicates'; known: type, seed, population, "
         "interval, warmup, max, quantile, resample_probability, factors"},
        {"sampler: {type: pbt, population: 1}",
         "line 1, column 34: sampler.population: expected an integer from 2 to 1000, found the "
         "number 1"},
        {"sampler: {type: pbt, interval: 0}",
         "line 1, column 32: sampler.interval: expected an integer from 1 to 9007199254740992, "
         "found the number 0"},
        {"sampler: {type: pbt, quantile: 0.6}",
         "line 1, column 32: sampler.quantile: expected a number from 0.0 to 0.5, found the number "
         "0.6"},
        {"sampler: {type: pbt, factors: []}",
         "line 1, column 31: sampler.factors: expected a list of 1 to 16 numbers from 0.01 to 100 "
         "such as [0.8, 1.2], found a list of 0"},
        {"sampler: {type: pbt, factors: [0.8, -1]}",
         "line 1, column 37: sampler.factors: expected a list of 1 to 16 numbers from 0.01 to 100 "
         "such as [0.8, 1.2], found the number -1"},
        {"sampler: {type: pbt, factors: [0.8, .nan]}",
         "line 1, column 37: sampler.factors: expected a list of 1 to 16 numbers from 0.01 to 100 "
         "such as [0.8, 1.2], found the number nan"},
        {"sampler: {type: tpe, constraints: both}",
         "line 1, column 35: sampler.constraints: expected joint or each, found the text 'both'"},
        {"sampler: {type: tpe, seed: -1}",
         "line 1, column 28: sampler.seed: expected an integer from 0 to 9007199254740991, found "
         "the "
         "number -1"},
        {"sampler: {type: gp, warp: maybe}",
         "line 1, column 27: sampler.warp: expected auto, on or off, found the text 'maybe'"},
        {"sampler: {type: auto, noise: much}",
         "line 1, column 30: sampler.noise: expected auto or a number, the standard deviation of "
         "one value, found the text 'much'"},
        {"sampler: {type: gp, noise: -1}",
         "line 1, column 28: sampler.noise: expected a number from 0.0 to 1e+300, found the number "
         "-1"},
        {"sampler: {type: tpe, noise: 1}",
         "line 1, column 22: sampler: unknown key 'noise'; known: type, seed, startup, candidates, "
         "preset, window, constraints, duplicates"},
        {"pruner: {type: median, eta: 3}",
         "line 1, column 24: pruner: unknown key 'eta'; known: type, startup, warmup, interval, "
         "min_trials"},
        {"pruner: percentile",
         "line 1, column 9: pruner: 'percentile' is missing: the share of trials to keep, 0 to "
         "100"},
        {"pruner: {type: asha, min: 9, max: 9}",
         "line 1, column 35: pruner.max: max 9 is not above min 9, so there would be no rung"},
        {"pruner: {type: asha, bootstrap: 2}",
         "line 1, column 9: pruner: 'bootstrap' needs a fixed 'min', not auto"},
        {"budget: {trials: 0}",
         "line 1, column 18: budget.trials: expected an integer from 1 to 10000000, found the "
         "number "
         "0"},
        {"budget: {trials: 1.5}",
         "line 1, column 18: budget.trials: expected an integer from 1 to 10000000, found the "
         "number "
         "1.5"},
        {"budget: {time: 1x}",
         "line 1, column 16: budget.time: expected a duration such as 90s, 1h30m, 250ms or 2d, "
         "found "
         "'1x'"},
        {"retry: {max: 1, on: [oom, crash]}",
         "line 1, column 27: retry.on: unknown end of an attempt: the text 'crash'; known: "
         "preempted, "
         "oom, failed, timeout"},
        {"scrape: \"loss=[0-9.]+\"",
         "line 1, column 9: scrape: the pattern 'loss=[0-9.]+' has no group; put the number in "
         "brackets: loss=([0-9.e+-]+)"},
        {"command: [python, {args}]",
         "line 1, column 19: command: expected a word of the command, found the map "
         "{\"args\":null}; "
         "quote a word that holds braces: \"{args}\""},
        {"command: python {lrr}\nspace: {lr: 0..1}",
         "line 1, column 10: command: unknown placeholder {lrr} in '{lrr}'; did you mean 'lr'? "
         "Known: "
         "lr, args, study, trial, attempt, run_id, seed (to have the text itself, write {{lrr}})"},
        {"env: {A: [1]}",
         "line 1, column 10: env.A: expected a text or number, found the list [1]"},
    });
    EXPECT_EQ(error_of("scrape: \"loss=([0-9\"")
                  .find("s.yaml: line 1, column 9: scrape: the pattern "
                        "'loss=([0-9' is not a regular expression"),
              0u);
}

TEST(Errors, Yaml) {
    expect_errors({
        {"a: &x [1]\nb: *x",
         "line 1, column 4: anchor '&x' is not supported; write the value out in each place"},
        {"study: *x", "line 1, column 8: invalid YAML: the referenced anchor is not defined"},
        {"study: !!str a",
         "line 1, column 8: tag 'tag:yaml.org,2002:str' is not supported; quote the value to "
         "make "
         "it a text"},
        {"study: a\nstudy: b", "line 2, column 1: the key 'study' is given twice"},
        {"study: a\n---\nstudy: b",
         "line 3, column 1: a second document starts here; expected one study per file"},
        {"? [1, 2]\n: 3", "line 1, column 3: a list or map cannot be a key; expected a name"},
        {"space:\n\tlr: 3",
         "line 2, column 4: invalid YAML: illegal map value (the line is indented with a tab; YAML "
         "wants spaces)"},
        {"space:\n  m:{float: [0, 1]}\n  lr: {float: [0, 1]}",
         "line 2, column 19: invalid YAML: illegal flow end (a blank is missing after ':')"},
        {"- a",
         "line 1, column 1: study: expected a map with the keys version, study, command, "
         "metric, constraints, space, forbid, derive, initial, sampler, pruner, budget, resources, "
         "priority, retry, "
         "stop_after_failures, "
         "scrape, log_rules, checkpoints, register, grace, "
         "timeout, env, "
         "working_dir, engine, warm_start, found the list [\"a\"]"},
    });
    EXPECT_EQ(error_of("space: [").find("s.yaml: line "), 0u);
}

TEST(Errors, Json) {
    expect_errors(
        {
            {"{\n  \"space\": {\"lr\": {\"float\": [0, \"x\"]}}}",
             "line 2, column 33: space.lr.float: expected a number, found the text 'x'"},
            {"{ // one\n /* two\n */ \"smapler\": 1}",
             "line 3, column 5: unknown key 'smapler'; did you mean 'sampler'? Known: version, "
             "study, "
             "command, metric, constraints, space, forbid, derive, initial, sampler, pruner, "
             "budget, resources, priority, retry, stop_after_failures, "
             "scrape, log_rules, checkpoints, register, grace, timeout, env, "
             "working_dir, engine, warm_start"},
            {"{\"budget\": {\"trials\": 0,\n\"parallel\": 1}}",
             "line 1, column 23: budget.trials: expected an integer from 1 to 10000000, found the "
             "number 0"},
            {"{\"budget\": {\"parallel\": 1,\n \"trials\": -7}}",
             "line 2, column 12: budget.trials: expected an integer from 1 to 10000000, found the "
             "number -7"},
            {"{\"study\": \"a\", \"study\": \"b\"}",
             "line 1, column 16: the key 'study' is given twice"},
        },
        "s.json");
    EXPECT_EQ(error_of("{\"a\": ", "s.json").find("s.json: invalid JSON at line 1"), 0u);
}

TEST(Errors, ARestBodyNamesThePath) {
    const auto refused =
        study_config_from_json(parse_json(R"({"space": {"lr": {"float": [1, 0]}}})").value());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "space.lr: the lower bound 1.0 is above the upper bound 0.0; expected [low, high]");
}

TEST(Errors, BombsAndDepthsAreRefusedQuickly) {
    std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
    for (char c = 'b'; c < 'k'; ++c) {
        bomb += std::string(1, c) + ": &" + c + " [";
        for (int i = 0; i < 9; ++i)
            bomb += std::string(i == 0 ? "*" : ",*") + static_cast<char>(c - 1);
        bomb += "]\n";
    }
    EXPECT_NE(error_of(bomb).find("anchor '&a' is not supported"), std::string::npos);
    EXPECT_NE(error_of("a: " + std::string(100'000, '[')), "accepted");
    EXPECT_NE(error_of("a: " + std::string(100, '[') + std::string(100, ']'))
                  .find("nested deeper than 64 levels"),
              std::string::npos);
    EXPECT_NE(error_of(std::string(1'000'000, '['), "s.json"), "accepted");
    EXPECT_NE(error_of(std::string(9u << 20, ' ')).find("a study may have at most 8388608"),
              std::string::npos);
    EXPECT_NE(error_of(std::string("study: a\0b", 10)).find("NUL byte"), std::string::npos);
    std::string deep;
    for (int i = 0; i < 200; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
    EXPECT_NE(error_of(deep), "accepted");
    Json nested = 1;
    for (int i = 0; i < 100; ++i) nested = Json::array({nested});
    EXPECT_FALSE(study_config_from_json(Json{{"study", nested}}));
}

TEST(Errors, TenThousandParametersInOneFile) {
    std::string text = "space:\n";
    for (int i = 0; i < 10'000; ++i)
        text += "  parameter_" + std::to_string(i) + ": {float: [1e-5, 1e-1], log: true}\n";
    EXPECT_EQ(error_of(text), "accepted");
    EXPECT_EQ(error_of(text + "  x: {float: [0, 1], when: {parameter_77777: 1}}\n").substr(0, 30),
              "s.yaml: line 2, column 3: spac");
}

TEST(Errors, DamagedTextNeverCrashes) {
    const std::string good =
        "study: a\nmetric: {name: l, goal: min}\nspace:\n  lr: {float: [1e-5, 1e-1], log: true}\n"
        "  m: {float: [0, 1], when: {opt: [sgd, \"x\"]}}\n  opt: {choice: [sgd, x, 'y']}\n"
        "pruner: {type: asha, min: 1}\nbudget: {trials: 9, time: 1h}\ncommand: [a, \"{args}\"]\n";
    EXPECT_EQ(error_of(good), "accepted");
    std::mt19937 random(7);
    const std::string alphabet =
        "{}[]:,\"'&*!|>%@`#-?\n\t \x80\xff"
        "09aez.";
    for (int i = 0; i < 4'000; ++i) {
        std::string bad = good;
        for (unsigned k = 0; k < 1 + random() % 3; ++k) {
            const std::size_t at = random() % bad.size();
            switch (random() % 3) {
                case 0: bad[at] = alphabet[random() % alphabet.size()]; break;
                case 1: bad.insert(at, 1, alphabet[random() % alphabet.size()]); break;
                default: bad.erase(at, 1 + random() % 5); break;
            }
        }
        (void)error_of(bad, random() % 4 == 0 ? "s.json" : "s.yaml");
    }
}

}  // namespace
}  // namespace tune::tuner
