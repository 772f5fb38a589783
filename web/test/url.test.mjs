import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { readView, writeView, fromMlflow, parsePath, runPath, studyPath, experimentPath } = await load("data/page/url.ts");
const defaults = { f: "", smooth: 0, charts: true, cols: [], sort: "-start" };

test("defaults are left out of the address", () => {
    assert.equal(writeView({ ...defaults }, defaults), "");
    assert.equal(writeView({ ...defaults, smooth: 0.6 }, defaults), "smooth=0.6");
});

test("a view comes back as it went", () => {
    const views = [
        { f: "metrics.loss < 0.3 AND params.x = 'a&b=c#d'", smooth: 0.25, charts: false, cols: ["metrics.a,b", "params.50%", "x"], sort: "name" },
        { f: "+ +", smooth: 0, charts: true, cols: ["ü", "日本"], sort: "" },
    ];
    for (const view of views) assert.deepEqual(readView(writeView(view, defaults), defaults), view);
});

test("what people read in an address stays readable", () => {
    assert.equal(writeView({ ...defaults, cols: ["metrics.val_loss", "params.lr"] }, defaults), "cols=metrics.val_loss,params.lr");
});

test("unknown keys and values of the wrong type are ignored", () => {
    assert.deepEqual(readView("zzz=1&smooth=abc&charts=maybe", defaults), { ...defaults, charts: false });
    assert.deepEqual(readView("smooth=", defaults), defaults);
    assert.deepEqual(readView("cols=%25E0%25A4%25A", defaults).cols.length, 1);
});

test("paths of pages", () => {
    assert.deepEqual(parsePath("/"), { page: "home" });
    assert.deepEqual(parsePath("/e/3"), { page: "experiment", id: "3" });
    assert.deepEqual(parsePath(studyPath("a/b c%")), { page: "study", name: "a/b c%" });
    assert.deepEqual(parsePath(runPath("0af")), { page: "run", id: "0af" });
    assert.deepEqual(parsePath(experimentPath("0")), { page: "experiment", id: "0" });
    assert.equal(parsePath("/x/1").page, "lost");
    assert.equal(parsePath("/e/1/2").page, "lost");
    assert.equal(parsePath("/s/%").page, "study");
    assert.deepEqual(parsePath("/studies/a%20b"), { page: "study", name: "a b" });
    assert.equal(parsePath("/studies").page, "lost");
});

test("an address of MLflow's page that we have no page for is told apart from home", () => {
    assert.deepEqual(parsePath("/", "#/models/digits/versions/3"), { page: "models", name: "digits", version: "3" });
    assert.deepEqual(parsePath("/", "#/models/a%20b"), { page: "models", name: "a b", version: "" });
    assert.deepEqual(parsePath("/models"), { page: "models", name: "", version: "" });
    assert.deepEqual(parsePath("/", "#/traces?x=1"), { page: "lost", path: "#/traces?x=1" });
    for (const hash of ["", "#", "#/", "#/experiments", "#/experiments/", "#/?x=1", "#content"]) assert.deepEqual(parsePath("/", hash), { page: "home" }, hash);
});

test("the addresses that MLflow's clients print lead to our pages", () => {
    assert.equal(fromMlflow("#/experiments/0/runs/0af"), "/r/0af");
    assert.equal(fromMlflow("#/experiments/12"), "/e/12");
    assert.equal(fromMlflow("#/experiments/12?searchFilter=x"), "/e/12");
    for (const other of ["", "#", "#front", "#/models/m", "#/experiments/"]) assert.equal(fromMlflow(other), undefined);
});
