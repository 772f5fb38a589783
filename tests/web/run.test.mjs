// The run page: live metrics, artifacts, logs; and the overlay charts of the runs page, live.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, eventually, live, TuneServer } from "./support.mjs";

const server = new TuneServer();
const browser = new Browser();
let experiment;

before(async () => {
    await server.start();
    await browser.start(server);
    experiment = await server.experiment("digits");
});
after(async () => {
    await browser.close();
    await server.close();
});

const kPng = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAYAAADED76LAAAAFElEQVQYV2P8z8Dwn4EIwDiqkL4KAVAOBgHVbWvyAAAAAElFTkSuQmCC", "base64");

test("the links that MLflow's clients print lead to the run and to the experiment", async () => {
    const run = await server.run(experiment, "linked");
    const page = await browser.open(`/#/experiments/${experiment}/runs/${run.id}`);
    await page.getByRole("heading", { name: "linked" }).waitFor();
    await page.waitForURL(`${server.url}/r/${run.id}`);
    await page.goto(`${server.url}/r/${run.id}#/experiments/${experiment}`);
    await page.getByRole("heading", { name: "digits" }).waitFor();
    await page.waitForURL(`${server.url}/e/${experiment}`);
    await page.context().close();
});

test("a metric logged now changes the value and the chart without a reload", async () => {
    const run = await server.run(experiment, "live", { params: { lr: 0.1 }, metrics: [["loss", 3, 0], ["loss", 2, 1]] });
    const page = await browser.open(`/r/${run.id}`);
    await live(page);
    await page.getByRole("img", { name: /Line chart of loss.*live ends at 2\./ }).waitFor();
    await page.evaluate(() => (window.sameDocument = true));
    await server.log(run.id, [["loss", 1.25, 2]]);
    await page.locator('[data-metric-value="loss"]').filter({ hasText: "1.25" }).waitFor();
    await page.getByRole("img", { name: /Line chart of loss.*live ends at 1\.25\./ }).waitFor();
    await page.locator('[data-metric="loss"]').getByText("3 points").waitFor();
    await server.log(run.id, [["new_metric", 7, 0]]);
    await page.locator('[data-metric="new_metric"]', { hasText: "7" }).waitFor();
    await server.log(run.id, [["new_metric", 8, 1]]);
    await page.getByRole("img", { name: /Line chart of new_metric over step, 1 curve\. live ends at 8/ }).waitFor();
    await server.mlflow("runs/log-parameter", { run_id: run.id, key: "late", value: "yes" });
    await page.getByRole("cell", { name: "late" }).waitFor();
    await server.mlflow("runs/update", { run_id: run.id, status: "FINISHED", end_time: Date.now() });
    await page.locator(".state", { hasText: "finished" }).waitFor();
    assert.equal(await page.evaluate(() => window.sameDocument), true);
    await page.context().close();
});

test("a long history: band, caption, NaN, logarithm, smoothing", async () => {
    const run = await server.run(experiment, "long");
    for (let first = 0; first < 5000; first += 1000)
        await server.log(run.id, Array.from({ length: 1000 }, (_, i) => ["loss", first + i === 1234 ? "NaN" : 1 + Math.sin((first + i) / 50), first + i]));
    const page = await browser.open(`/r/${run.id}?smooth=0.9`);
    const card = page.locator('[data-metric="loss"]');
    await card.getByText(/^\d+ of 5,000 points, band: min to max$/).waitFor();
    await card.getByText("1 NaN").waitFor();
    await card.getByRole("button", { name: "log" }).click();
    await card.locator('button[aria-pressed="true"]').waitFor();
    assert.equal(await page.getByRole("slider", { name: "Smoothing" }).inputValue(), "0.9");
    const [download] = await Promise.all([page.waitForEvent("download"), card.getByRole("button", { name: "Download loss as CSV" }).click()]);
    assert.equal(download.suggestedFilename(), "loss.csv");
    await page.context().close();
});

test("artifacts: a tree, and previews of table, JSON, image, text and binary", async () => {
    const run = await server.run(experiment, "files");
    await server.artifact(run, "tables/confusion.csv", 'digit,recall\n0,0.99\n1,"0.97"\n');
    await server.artifact(run, "config.json", '{"layers":[64,10]}');
    await server.artifact(run, "plot.png", kPng);
    await server.artifact(run, "weights.bin", Buffer.from([0, 1, 2, 255]));
    const page = await browser.open(`/r/${run.id}?tab=artifacts`);
    await page.getByRole("button", { name: "tables" }).click();
    await page.getByRole("button", { name: "confusion.csv" }).click();
    await page.getByRole("cell", { name: "0.97" }).waitFor();
    await page.getByRole("button", { name: "config.json" }).click();
    await page.locator(".preview pre", { hasText: '"layers": [' }).waitFor();
    await page.getByRole("button", { name: "plot.png" }).click();
    await page.waitForFunction(() => document.querySelector(".preview img")?.naturalWidth === 8);
    await page.getByRole("button", { name: "weights.bin" }).click();
    await page.getByText("No preview").waitFor();
    await page.reload();
    await page.getByText("No preview").waitFor();
    await server.artifact(run, "later.txt", "hello");
    await page.getByRole("button", { name: "later.txt" }).click();
    await page.locator(".preview pre", { hasText: "hello" }).waitFor();
    await page.context().close();
});

test("logs: the tail follows the file while it grows", async () => {
    const run = await server.run(experiment, "talks");
    const lines = (n) => Array.from({ length: n }, (_, i) => `\x1b[32mepoch\x1b[0m ${i}`).join("\n") + "\n";
    await server.artifact(run, "logs/stdout.log", lines(200));
    await server.artifact(run, "logs/stderr.log", "a warning\n");
    const page = await browser.open(`/r/${run.id}?tab=logs`);
    await live(page);
    const log = page.getByRole("log");
    await log.getByText("epoch 199").waitFor();
    assert.ok(!(await log.textContent()).includes("\x1b"));
    const isAtEnd = () => log.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 24);
    await eventually(isAtEnd, true);
    await server.artifact(run, "logs/stdout.log", lines(260));
    await log.getByText("epoch 259").waitFor();
    assert.equal((await log.textContent()).match(/epoch 150\n/g).length, 1);
    await page.getByRole("button", { name: "stderr.log" }).click();
    await page.getByRole("log").getByText("a warning").waitFor();
    await page.context().close();
});

test("the runs page: new runs, values and curves come in live", async () => {
    const own = await server.experiment("overlay");
    const first = await server.run(own, "alpha", { metrics: [["loss", 2, 0]] });
    const page = await browser.open(`/e/${own}`);
    await live(page);
    await page.getByRole("list", { name: "loss by run" }).getByRole("listitem").filter({ hasText: /alpha.*2/ }).waitFor();
    await server.log(first.id, [["loss", 0.125, 1]]);
    await page.getByRole("gridcell", { name: "0.125" }).waitFor();
    await page.getByRole("img", { name: /alpha ends at 0\.125\./ }).waitFor();
    const second = await server.run(own, "beta", { params: { depth: 3 }, metrics: [["loss", 5, 0]] });
    await page.getByRole("gridcell", { name: "beta" }).waitFor();
    await page.getByRole("img", { name: /2 curves.*beta ends at 5/ }).waitFor();
    await server.mlflow("runs/delete", { run_id: second.id });
    await page.getByRole("gridcell", { name: "beta" }).waitFor({ state: "detached" });
    await page.context().close();
});

test("a run of another part of MLflow's world: parent, tags, user", async () => {
    const parent = await server.run(experiment, "parent");
    const child = await server.run(experiment, "child", { tags: { "mlflow.parentRunId": parent.id, "mlflow.user": "ada", "mlflow.source.name": "train.py" } });
    const page = await browser.open(`/r/${child.id}`);
    await page.getByRole("link", { name: parent.id.slice(0, 8) }).click();
    await page.getByRole("heading", { name: "parent" }).waitFor();
    await page.getByText("No metrics yet").first().waitFor();
    await page.context().close();
});

test("a thousand metrics: the first hundred charts, more on request, any by its name", async () => {
    const other = await server.experiment("wide");
    const metrics = Array.from({ length: 1000 }, (_, i) => [`m${String(i).padStart(3, "0")}`, i, 0]);
    const wide = await server.run(other, "wide", { metrics });
    for (const path of [`/r/${wide.id}`, `/e/${other}`]) {
        const page = await browser.open(path);
        const cards = page.locator("[data-metric]");
        await page.getByText("100 of 1000 metrics").waitFor();
        await eventually(() => cards.count(), 100, path);
        await page.getByRole("button", { name: "show 100 more" }).click();
        await page.getByText("200 of 1000 metrics").waitFor();
        await eventually(() => cards.count(), 200, path);
        await page.getByLabel(/Find metrics/).fill("m99");
        await page.locator('[data-metric="m999"]').waitFor();
        await eventually(() => cards.count(), 10, path);
        await page.context().close();
    }
});

test("nothing was written to the console and no other host was asked", () => {
    assert.deepEqual(browser.faults, []);
});
