// What a reader sees first: the metrics that matter, the best trial, numbers where there is no curve, long values that
// leave room for their names, distinct colours, honest bars and states, and an answer for every address.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, eventually, live, runTrial, seedStudy, TuneServer } from "./support.mjs";

const server = new TuneServer();
const browser = new Browser();
const kLong = `{"layers": [${Array.from({ length: 80 }, (_, i) => i * 10).join(", ")}]}`;
let sweep;

before(async () => {
    await server.start();
    await browser.start(server);
    // By its name alone the objective would be bookkeeping.
    await seedStudy(server, "sweep", 3, [], { metric: { name: "wall_time", goal: "min" }, budget: { trials: 30 } });
    sweep = await server.call("GET", "/api/2.0/tune/studies/sweep");
    const { runs } = await server.mlflow("runs/search", { experiment_ids: [sweep.experiment_id] });
    for (const { info } of runs.filter((run) => run.data.tags.some(({ key }) => key === "tune.trial")))
        for (let step = 0; step < 3; ++step)
            await server.log(info.run_id, ["epoch", "lr", "val_accuracy", "system/cpu", "gain"].map((key) => [key, step / 10, step]));
});
after(async () => {
    await browser.close();
    await server.close();
});

const grid = (page) => page.getByRole("grid", { name: "Runs" });
const study = (name) => server.call("GET", `/api/2.0/tune/studies/${name}`);

test("the objective and the metrics that matter come first: columns, charts, the run's values", async () => {
    const order = ["wall_time", "val_accuracy", "gain", "epoch", "lr"];
    const page = await browser.open(`/e/${sweep.experiment_id}`);
    await live(page);
    const headers = async () => (await grid(page).locator(".headers .kind-metrics").allTextContents()).map((text) => text.replace(/[▲▼]/g, ""));
    const cards = () => page.locator("[data-metric]").evaluateAll((all) => all.map((card) => card.dataset.metric));
    await eventually(headers, order);
    await eventually(cards, [...order, "system/cpu", "tune.value"]);
    await page.goto(`${server.url}/r/${sweep.best.run_id}`);
    await eventually(cards, [...order, "system/cpu", "tune.value"]);
    await eventually(() => page.getByRole("region", { name: "Metrics", exact: true }).locator("[data-metric-value]").evaluateAll((all) => all.map((cell) => cell.dataset.metricValue)), [...order, "system/cpu", "tune.value"]);
    await page.context().close();
});

test("a metric of one point is a number on a run and bars over runs", async () => {
    const experiment = await server.experiment("sklearn");
    const first = await server.run(experiment, "forest", { metrics: [["training_score", 0.9375, 0], ["test_score", 0.875, 0], ["loss", 3, 0], ["loss", 2, 1]] });
    await server.run(experiment, "boosting", { metrics: [["training_score", 0.75, 0]] });
    await server.run(experiment, "diverged", { metrics: [["training_score", -0.9375, 0]] });
    await server.run(experiment, "overflow", { metrics: [["training_score", "NaN", 0]] });
    const page = await browser.open(`/r/${first.id}`);
    const number = page.locator('[data-metric="training_score"]');
    await number.getByText("0.9375").waitFor();
    await page.getByRole("img", { name: /Line chart of loss/ }).waitFor();
    await eventually(() => page.getByRole("img", { name: /Line chart/ }).count(), 1);
    await page.goto(`${server.url}/e/${experiment}?sort=name`);
    const bars = page.getByRole("list", { name: "training_score by run" });
    await eventually(() => bars.getByRole("listitem").allTextContents(), ["boosting0.75", "diverged-0.9375", "forest0.9375", "overflowNaN"]);
    const boxes = await bars.locator(".track").evaluateAll((all) =>
        all.map((track) => {
            const [outer, bar] = [track.getBoundingClientRect(), track.firstElementChild?.getBoundingClientRect()];
            return bar && [bar.left - outer.left, bar.right - outer.left].map((x) => Math.round((100 * x) / outer.width));
        }),
    );
    // Both ways from zero, which is in the middle; what is not a number has no bar.
    assert.deepEqual(boxes, [[50, 90], [0, 50], [50, 100], undefined]);
    await page.context().close();
});

test("the best trial is marked in the runs table, and the mark moves", async () => {
    const page = await browser.open(`/e/${sweep.experiment_id}`);
    await live(page);
    const star = page.getByRole("img", { name: "Best trial of sweep" });
    const holder = () => grid(page).locator("[role=row].data").filter({ has: star }).getByRole("link").getAttribute("href");
    await eventually(holder, `/r/${sweep.best.run_id}`);
    await eventually(() => grid(page).getByRole("img").count(), 1);
    const { number, attempt } = (await server.tune("studies/sweep/ask", { count: 1 })).trials[0];
    await server.tune("studies/sweep/tell", { number, attempt, value: 1e-6 });
    const better = (await study("sweep")).best.run_id;
    assert.notEqual(better, sweep.best.run_id);
    await eventually(holder, `/r/${better}`);
    await eventually(() => star.count(), 1);
    await page.context().close();
});

test("a long value leaves its name its width, is cut, and opens by mouse and by keyboard", async () => {
    const experiment = await server.experiment("autolog");
    const run = await server.run(experiment, "long", {
        params: { architecture: kLong, lr: 0.1, [`p${"x".repeat(200)}`]: "short" },
        tags: { "estimator_class": `sklearn.${"pipeline.".repeat(20)}Pipeline` },
    });
    for (const width of [1440, 390]) {
        const page = await browser.open(`/r/${run.id}`, { width });
        const row = page.getByRole("row").filter({ has: page.getByText("architecture", { exact: true }) });
        const heights = await row.evaluate((element) => [element.offsetHeight, element.querySelector("span").offsetHeight, element.nextElementSibling.offsetHeight]);
        assert.ok(heights[0] < 40 && heights[1] < 24, `one line each, got ${heights}`);
        const whole = row.getByText(kLong, { exact: true });
        assert.equal(await whole.isVisible(), false);
        await row.locator("summary").focus();
        await page.keyboard.press("Enter");
        await whole.waitFor();
        assert.ok((await whole.boundingBox()).width > 200, "an open value has the row's width");
        await row.locator("summary").click();
        await whole.waitFor({ state: "hidden" });
        const tag = page.getByText("estimator_class", { exact: true });
        assert.ok((await tag.boundingBox()).height < 24);
        const region = await page.getByRole("group", { name: "Params" }).evaluate((box) => [box.scrollWidth, box.clientWidth]);
        assert.ok(region[0] <= region[1], `params are ${region[0]} px wide in ${region[1]} px`);
        // A name of several lines beside a short value: one line below the row, none below its cells.
        const lines = await page.getByRole("group", { name: "Params" }).locator("tr").evaluateAll((rows) =>
            rows.map((row) => [row, ...row.cells].map((box) => parseFloat(getComputedStyle(box).borderBottomWidth))));
        assert.deepEqual(lines, lines.map((_, i) => [i + 1 < lines.length ? 1 : 0, 0, 0]));
        await page.context().close();
    }
});

test("runs of one chart have distinct colours, and the table has the same", async () => {
    const experiment = await server.experiment("colours");
    for (let i = 0; i < 7; ++i) await server.run(experiment, `run-${i}`, { metrics: [["loss", i + 1, 0]] });
    const page = await browser.open(`/e/${experiment}?sort=name`);
    const colours = (selector) => page.locator(selector).evaluateAll((all) => all.map((element) => element.style.background));
    await eventually(async () => new Set(await colours(".run-bars i")).size, 7);
    assert.deepEqual(await colours("[role=row].data .swatch"), await colours(".run-bars i"));
    await page.context().close();
});

test("a bar shows the share of the budget; a study whose trials all failed says so; studies stand by activity", async () => {
    await seedStudy(server, "part", 1, [], { budget: { trials: 15 } });
    await seedStudy(server, "broken", 0, [], { budget: { trials: 2 } });
    for (let i = 0; i < 2; ++i) {
        const { number, attempt } = (await server.tune("studies/broken/ask", { count: 1 })).trials[0];
        await server.tune("studies/broken/tell", { number, attempt, state: "failed", reason: "exit code 1" });
    }
    await eventually(async () => (await study("broken")).state, "completed");
    const page = await browser.open("/");
    await live(page);
    const bar = page.getByRole("img", { name: "1 complete of 15" });
    const share = () => bar.evaluate((element) => Math.round((100 * element.firstElementChild.offsetWidth) / element.offsetWidth));
    await eventually(share, 7);
    const names = () => page.getByRole("region", { name: "Studies" }).locator("tbody tr td:first-child").allTextContents();
    await eventually(async () => (await names()).slice(0, 2), ["broken", "part"]);
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "broken", exact: true }) }).first();
    const state = row.locator(".state");
    assert.equal(await state.textContent(), "all failed");
    const [colour, failed] = await state.evaluate((element) => {
        const probe = document.createElement("b");
        probe.style.color = "var(--failed-text)";
        element.append(probe);
        const wanted = getComputedStyle(probe).color;
        probe.remove();
        return [getComputedStyle(element).color, wanted];
    });
    assert.equal(colour, failed);
    await runTrial(server, "part");
    await eventually(async () => (await names())[0], "part");
    await page.getByRole("link", { name: "broken", exact: true }).first().click();
    await page.locator(".title .state", { hasText: "all failed" }).waitFor();
    await page.context().close();
});

test("a study that its first failures stopped counts none of them, and says nothing of what is to come", async () => {
    await server.tune("studies", { name: "stopped", metric: { name: "loss", goal: "min" }, space: { x: { float: [0, 1] } }, budget: { trials: 5 } });
    for (let i = 0; i < 3; ++i) {
        const { trials: [{ number, attempt }] } = await server.tune("studies/stopped/ask", { count: 1 });
        await server.tune("studies/stopped/tell", { number, attempt, state: "failed", reason: "no data" });
    }
    const page = await browser.open("/s/stopped");
    await page.getByText("Too few trials", { exact: true }).waitFor();
    await page.getByText("this study has 0.").waitFor();
    await page.getByText("No values", { exact: true }).waitFor();
    await server.tune("studies/stopped/resume", {});
    const { trials: [{ number, attempt }] } = await server.tune("studies/stopped/ask", { count: 1 });
    await server.tune("studies/stopped/tell", { number, attempt, value: 1 });
    await eventually(() => page.locator("[data-ended]").textContent(), "1 / 5");
    await page.getByText("3 failed ones do not count", { exact: true }).waitFor();
    await page.goto(`${server.url}/`);
    await eventually(() => page.getByRole("row").filter({ has: page.getByText("stopped", { exact: true }) }).first().locator("td.right").first().textContent(), "1 / 5");
    await page.context().close();
});

test("addresses without a page say what is there instead", async () => {
    await server.mlflow("registered-models/create", { name: "digits" });
    const page = await browser.open("/#/models/digits");
    await page.getByRole("heading", { name: "There is no page for registered models yet" }).waitFor();
    const answer = await fetch(new URL(await page.getByRole("link", { name: "digits as JSON" }).getAttribute("href"), server.url));
    assert.equal((await answer.json()).registered_model.name, "digits");
    await page.goto(`${server.url}/#/models`);
    await page.getByRole("link", { name: "All registered models as JSON" }).waitFor();
    await page.goto(`${server.url}/#/traces/abc`);
    await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    await page.getByText("#/traces/abc").waitFor();
    await page.getByRole("link", { name: "All experiments", exact: true }).click();
    await page.getByRole("heading", { name: "Experiments and studies" }).waitFor();
    assert.equal(new URL(page.url()).hash, "");
    await page.context().close();
});

test("nothing was written to the console and no other host was asked", () => {
    assert.deepEqual(browser.faults, []);
});
