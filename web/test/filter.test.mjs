import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";
import { makeTable } from "./table.mjs";

const { applyFilter, parseFilter, quickFind } = await load("data/runs/filter.ts");

const table = makeTable();
const all = [0, 1, 2, 3, 4];
const ids = (text) => applyFilter(table, all, parseFilter(text)).map((row) => table.ids[row]).join("");

test("filters keep the runs that MLflow would", () => {
    const cases = [
        ["", "abcde"],
        ["metrics.loss < 0.3", "b"],
        ["metrics.loss <= 0.5 and metrics.loss > 0", "ab"],
        ["metric.loss != 0.5", "bce"],
        ["metrics.\"val/acc %\" > 0.92", "b"],
        ["metrics.`loss` >= 2", "e"],
        ["params.opt = 'sgd'", "ac"],
        ["params.opt != 'sgd'", "bde"],
        ["parameters.opt LIKE 's_d'", "ac"],
        ["param.opt ILIKE 'ADAM%'", "bd"],
        ["params.opt LIKE 'ADAM%'", ""],
        ["params.opt = 'it''s'", "e"],
        ["params.opt IN ('sgd', 'it''s')", "ace"],
        ["params.opt NOT IN ('sgd')", "bde"],
        ["params.lr IS NULL", "d"],
        ["params.lr IS NOT NULL", "abce"],
        ["params.lr < 0.05", "bc"],
        ["params.lr = 0.1", "ae"],
        ["params.lr = '0.1'", "ae"],
        ["tags.team ilike 'vision%'", "ac"],
        ["tags.tune.state = 'pruned'", "d"],
        ["status = 'RUNNING'", "b"],
        ["attributes.status != 'RUNNING'", "acde"],
        ["attr.run_name = \"Ann\"", "a"],
        ["run_name LIKE 'eve\\%'", ""],
        ["start_time >= 3000", "abc"],
        ["end_time < 4000", "cd"],
        ["run_id IN ('a','e',)", "ae"],
        ["user_id = 'u2' AND status = 'FAILED'", "c"],
    ];
    for (const [text, kept] of cases) assert.equal(ids(text), kept, text);
});

test("a run without the key fails every comparison, NaN every order", () => {
    assert.equal(ids("metrics.loss < 1e9"), "abe");
    assert.equal(ids("metrics.loss > -1e9"), "abe");
    assert.equal(ids("metrics.none = 1"), "");
    assert.equal(ids("params.none != 'x'"), "");
});

test("errors say what is wrong and where", () => {
    const cases = [
        ["loss < 1", /no attribute 'loss'; write metrics\.loss/, 0],
        ["metrics.loss", /Expected a comparison.*text ends/, 12],
        ["metrics.loss < 'x'", /Expected a number/, 15],
        ["params.opt = sgd", /text in quotes/, 13],
        ["params.opt > 'a'", /compares numbers/, 0],
        ["metrics.loss < 1 OR metrics.loss > 2", /Only AND/, 17],
        ["metrics.loss < 1 metrics.loss > 2", /Expected AND/, 17],
        ["params.opt = 'open", /never closed/, 13],
        ["foo.bar = 1", /none of metrics, params/, 0],
        ["metrics.loss IN ('a')", /does not work with numbers/, 0],
        ["params.opt IN 'a'", /Expected '\('/, 14],
        ["params.opt IN ('a'", /Expected ',' or '\)'/, 18],
        ["metrics. < 1", /Expected a key/, 9],
        ["status = 3", /text in quotes/, 9],
        ["; drop", /Unexpected ';'/, 0],
        ["__proto__ = 'x'", /no attribute/, 0],
        ["constructor.x = 'x'", /none of/, 0],
    ];
    for (const [text, message, at] of cases)
        assert.throws(() => parseFilter(text), (error) => message.test(error.message) && error.at === at, `${text}`);
});

test("a pattern in LIKE is not a regular expression", () => {
    assert.equal(ids("params.opt LIKE '.*'"), "");
    assert.equal(ids("run_name LIKE 'dan_1'"), "d");
    assert.equal(ids("run_name LIKE '%('"), "");
});

test("find needs every word, anywhere, in any case", () => {
    const find = (text) => quickFind(table, all, text).map((row) => table.ids[row]).join("");
    assert.equal(find("SGD vision"), "ac");
    assert.equal(find("  "), "abcde");
    assert.equal(find("x,y"), "c");
    assert.equal(find("nothing"), "");
});

test("100,000 rows are filtered in one go", () => {
    const big = { ...table, metrics: new Map([["loss", Array.from({ length: 100_000 }, (_, i) => i / 1e5)]]) };
    const rows = Array.from({ length: 100_000 }, (_, i) => i);
    assert.equal(applyFilter(big, rows, parseFilter("metrics.loss < 0.5")).length, 50_000);
});
