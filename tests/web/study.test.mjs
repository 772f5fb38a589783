// The study page: pictures, table and counts of a real study, live; and the page through a restart of the server.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, eventually, live, pixelsOf, runTrial, seedStudy, TuneServer } from "./support.mjs";

const server = new TuneServer();
const browser = new Browser();

before(async () => {
    await server.start();
    await browser.start(server);
    await seedStudy(server, "digits", 16, [2, 5, 9]);
});
after(async () => {
    await browser.close();
    await server.close();
});

const best = async () => (await server.call("GET", "/api/2.0/tune/studies/digits")).best;
const shown = (value) => Number(value.toPrecision(5)).toString();
const trials = (page) => page.getByRole("grid", { name: "Trials" });

test("best value, counts and pictures agree with the server", async () => {
    const page = await browser.open("/s/digits");
    await page.locator("[data-best]", { hasText: shown((await best()).value) }).waitFor();
    await eventually(() => page.locator('[data-count="complete"]').textContent(), "13");
    await eventually(() => page.locator('[data-count="pruned"]').textContent(), "3");
    await page.getByRole("application", { name: /^16 trials of val_loss\. Best so far/ }).waitFor();
    await page.getByRole("img", { name: /Parallel coordinates of 16 trials over lr, momentum, optimizer, width, val_loss/ }).waitFor();
    await page.getByRole("img", { name: /Reported values of 16 trials over steps 0 to 5; 3 were pruned/ }).waitFor();
    await eventually(() => trials(page).getAttribute("aria-rowcount"), "17");
    await page.context().close();
});

test("the bars of importance are the server's, and follow the trials that end", async () => {
    await seedStudy(server, "ranked", 9);
    const page = await browser.open("/s/ranked");
    await page.getByText("Importance needs 10 complete trials; there are 9 so far.").waitFor();
    await runTrial(server, "ranked");
    const bars = page.locator("section", { has: page.locator("#importance") }).locator("dl.bars");
    await bars.waitFor();
    const { importances, trials } = await server.call("GET", "/api/2.0/tune/studies/ranked/importance");
    assert.equal(trials, 10);
    assert.deepEqual(await bars.locator("dt").allTextContents(), importances.map(({ name }) => name));
    assert.deepEqual(await bars.locator("dd.num").allTextContents(), importances.map(({ share }) => `${Math.round(share * 100)}%`));
    await page.context().close();
});

test("pruned trials are marked in their own colour and shape, in every theme", async () => {
    for (const theme of ["light", "dark"]) {
        const page = await browser.open("/s/digits", { theme });
        const history = 'canvas[aria-label^="16 trials"]';
        await page.locator(history).waitFor();
        await page.waitForFunction((selector) => document.querySelector(selector).width > 100, history);
        await eventually(async () => (await pixelsOf(page, history, "--pruned")) > 20, true, theme);
        const before = await pixelsOf(page, history, "--pruned");
        await eventually(async () => (await pixelsOf(page, 'canvas[aria-label^="Reported"]', "--pruned")) > 20, true);
        await eventually(async () => (await pixelsOf(page, history, "--best")) > 100, true);
        await page.getByRole("button", { name: /^pruned/ }).click();
        await page.locator('canvas[aria-label^="13 trials"]').waitFor();
        await eventually(async () => (await pixelsOf(page, 'canvas[aria-label^="13 trials"]', "--pruned")) < before / 4, true);
        await page.context().close();
    }
});

test("a running study: trials start, report, are pruned and finish before the reader's eyes", async () => {
    const page = await browser.open("/s/digits");
    await live(page);
    await page.locator('[data-count="complete"]', { hasText: "13" }).waitFor();
    await page.evaluate(() => (window.sameDocument = true));
    const asked = (await server.tune("studies/digits/ask", { count: 1 })).trials[0];
    await page.locator('[data-count="running"]', { hasText: "1" }).waitFor();
    await server.tune("studies/digits/report", { number: asked.number, attempt: asked.attempt, step: 0, value: 0.75 });
    const row = trials(page).getByRole("row").filter({ has: page.getByRole("link", { name: String(asked.number), exact: true }) });
    await row.filter({ hasText: "running" }).filter({ hasText: "0.75" }).waitFor();
    await server.tune("studies/digits/tell", { number: asked.number, attempt: asked.attempt, state: "pruned", reason: "worse than the median" });
    await row.filter({ hasText: "pruned" }).waitFor();
    await page.locator('[data-count="pruned"]', { hasText: "4" }).waitFor();
    await page.getByRole("img", { name: /; 4 were pruned/ }).waitFor();
    const next = (await server.tune("studies/digits/ask", { count: 1 })).trials[0];
    await server.tune("studies/digits/tell", { number: next.number, attempt: next.attempt, value: 0.0001 });
    await page.locator("[data-best]", { hasText: "0.0001" }).waitFor();
    await page.getByText(`trial ${next.number}`, { exact: true }).waitFor();
    assert.equal(await page.evaluate(() => window.sameDocument), true);
    await page.context().close();
});

test("a brush on an axis keeps its trials in every picture and in the table", async () => {
    const page = await browser.open("/s/digits");
    const canvas = page.locator('canvas[aria-label^="Parallel"]');
    await canvas.scrollIntoViewIfNeeded();
    const box = await canvas.boundingBox();
    // The objective is the last axis; brush its lower third: the best trials.
    const x = box.x + box.width - 58;
    await page.mouse.move(x, box.y + box.height - 19);
    await page.mouse.down();
    await page.mouse.move(x, box.y + box.height * 0.7, { steps: 5 });
    await page.mouse.up();
    await page.getByRole("button", { name: /Remove brush val_loss/ }).waitFor();
    await page.waitForFunction(() => {
        const kept = Number(document.querySelector('[aria-label="Trials"]').getAttribute("aria-rowcount")) - 1;
        return kept > 0 && kept < 18;
    });
    await page.waitForURL(/b=val_loss:0\.\d+:0\.\d+/);
    await page.reload();
    await page.getByRole("button", { name: /Remove brush val_loss/ }).click();
    await page.waitForFunction(() => document.querySelector('[aria-label="Trials"]').getAttribute("aria-rowcount") === "19");
    await page.context().close();
});

test("the table of trials sorts, finds and leads to the run", async () => {
    const page = await browser.open("/s/digits?sort=value");
    await trials(page).locator('[aria-sort="ascending"]').waitFor();
    const firstCell = trials(page).locator("[role=row].data").first();
    await firstCell.getByTitle("The best trial").waitFor();
    await page.getByRole("textbox", { name: "Find trials" }).fill("pruned");
    await page.waitForFunction(() => document.querySelector('[aria-label="Trials"]').getAttribute("aria-rowcount") === "5");
    await firstCell.getByRole("link").click();
    await page.locator(".title .state", { hasText: "pruned" }).waitFor();
    await page.locator(".facts").getByRole("link", { name: "digits" }).click();
    await page.getByRole("heading", { name: "digits" }).waitFor();
    await page.context().close();
});

test("pause, resume and stop from the page", async () => {
    await seedStudy(server, "steered", 1);
    const page = await browser.open("/s/steered");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.locator(".title .state", { hasText: "paused" }).waitFor();
    assert.equal((await server.call("GET", "/api/2.0/tune/studies/steered")).state, "paused");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.locator(".title .state", { hasText: "running" }).waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Stop all trials now" }).click();
    await page.locator(".title .state", { hasText: "stopped" }).waitFor();
    await page.context().close();
});

test("a study is renamed, deleted and brought back on the page", async () => {
    await seedStudy(server, "old name", 1);
    const before = browser.faults.length;
    const page = await browser.open("/s/old%20name");
    await page.getByRole("button", { name: "Rename or delete" }).click();
    const rename = page.getByRole("button", { name: "Rename", exact: true });
    assert.equal(await rename.isDisabled(), true, "nothing to rename yet");
    await page.getByLabel("Name", { exact: true }).fill("digits");
    await rename.click();
    await page.locator(".toast", { hasText: "digits" }).first().waitFor();
    for (const fault of browser.faults.splice(before)) assert.match(fault, /400/);
    await page.getByLabel("Name", { exact: true }).fill("new name");
    await rename.click();
    await page.getByRole("heading", { name: "new name" }).waitFor();
    assert.equal(new URL(page.url()).pathname, "/s/new%20name");
    await page.getByRole("button", { name: "Rename or delete" }).click();
    await page.getByRole("button", { name: "Delete study and its runs" }).click();
    await page.getByRole("heading", { name: "Experiments and studies" }).waitFor();
    await page.getByText("new name is deleted.").waitFor();
    assert.equal((await server.call("GET", "/api/2.0/tune/studies")).studies.some((study) => study.name === "new name" && study.status !== "deleted"), false);
    await page.getByRole("button", { name: "Restore" }).click();
    await page.getByRole("heading", { name: "new name" }).waitFor();
    assert.equal((await server.call("GET", "/api/2.0/tune/studies/new%20name")).name, "new name");
    await page.context().close();
});

test("a study whose experiment was deleted can be restored, and nothing else", async () => {
    await seedStudy(server, "bereft", 1);
    const page = await browser.open("/s/bereft");
    await live(page);
    await page.getByRole("button", { name: "Pause" }).waitFor();
    const { experiment_id } = await server.call("GET", "/api/2.0/tune/studies/bereft");
    await server.mlflow("experiments/delete", { experiment_id });
    const restore = page.getByRole("button", { name: "Restore the study and its experiment" });
    await restore.waitFor();
    for (const name of ["Pause", "Resume", "Stop"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
    await restore.click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    assert.equal((await server.call("GET", "/api/2.0/tune/studies/bereft")).status, "running");
    await page.context().close();
});

test("a page that was not opened by the printed address shows everything and changes nothing that runs", async () => {
    await seedStudy(server, "watched", 1);
    const before = browser.faults.length;
    const page = await browser.open("/s/watched", { isGuest: true });
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("this call needs a token of this server").waitFor();
    assert.equal((await server.call("GET", "/api/2.0/tune/studies/watched")).state, "running");
    for (const fault of browser.faults.splice(before)) assert.match(fault, /401/);
    await page.context().close();
});

test("the page survives a restart of the server: offline, then live with what it missed", async () => {
    const page = await browser.open("/s/digits");
    await live(page);
    await page.evaluate(() => (window.sameDocument = true));
    const before = browser.faults.length;
    await server.stop();
    await page.locator('[data-live="offline"]').waitFor();
    await server.start(server.port);
    const missed = await runTrial(server, "digits");
    await live(page);
    const link = () => trials(page).getByRole("link", { name: String(missed.number), exact: true });
    await link().waitFor();
    await runTrial(server, "digits", true);
    await trials(page).getByRole("link", { name: String(missed.number + 1), exact: true }).waitFor();
    assert.equal(await page.evaluate(() => window.sameDocument), true);
    // While the server was away the browser itself complained; nothing else may have.
    const during = browser.faults.splice(before);
    assert.deepEqual(during.filter((fault) => !/ERR_CONNECTION_(REFUSED|RESET|CLOSED|ABORTED)|ERR_SOCKET_NOT_CONNECTED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE/.test(fault)), []);
    await page.context().close();
});

test("population based training: who continued whom, in the picture and in the table", async () => {
    await seedStudy(server, "population", 12, [], { sampler: { type: "pbt", seed: 3, population: 4, interval: 5, max: 50 } });
    const { trials: known } = await server.call("GET", "/api/2.0/tune/studies/population/trials");
    const child = known.findLast((trial) => trial.parent !== null);
    const page = await browser.open("/s/population");
    const picture = page.getByRole("application", { name: /^12 trials of val_loss.*Lines join each trial to those that continued it/ });
    await picture.waitFor();
    await picture.focus();
    await page.keyboard.press("End");
    await page.locator(".tip", { hasText: `Trial ${child.number}` }).getByRole("row", { name: `continues trial ${child.parent}` }).waitFor();
    const row = trials(page).getByRole("row").filter({ has: page.getByRole("link", { name: String(child.number), exact: true }) });
    for (const text of [String(child.parent), String(child.member), `${child.steps[0]}–${child.steps[1]}`])
        await row.getByRole("gridcell", { name: text, exact: true }).first().waitFor();
    await page.goto(`${server.url}/s/digits`);
    await page.getByRole("application", { name: /^\d+ trials of val_loss\. Best so far [^ ]+ Arrow keys/ }).waitFor();
    assert.equal(await trials(page).getByRole("columnheader", { name: "Parent" }).count(), 0, "other studies have no such column");
    await page.context().close();
});

test("a study whose trials all failed says why, and where their output is", async () => {
    await seedStudy(server, "broken", 0);
    const page = await browser.open("/s/broken");
    await page.getByText(/The study has no command that an agent could run/).waitFor();
    await page.getByText(`curl ${server.url}/api/2.0/tune/studies/broken/ask`).waitFor();
    const { number, run_id: run } = (await server.tune("studies/broken/ask", { count: 1 })).trials[0];
    await page.getByText("Trials appear here as soon as they report val_loss.").waitFor();
    await server.tune("studies/broken/tell", { number, state: "failed", reason: "exit code 1: no module named torch" });
    await page.locator("pre", { hasText: "exit code 1: no module named torch" }).waitFor();
    await page.getByText("Trial 0 failed.").waitFor();
    assert.equal(await page.locator("canvas").count(), 0, "no empty frames");
    await page.getByRole("link", { name: "Show its log" }).click();
    await page.waitForURL(`**/r/${run}?tab=logs`);
    await page.context().close();
    await server.tune("studies/broken/stop", {});
});

test("a study that no agent can serve says what it waits for", async () => {
    await seedStudy(server, "waiting", 0, [], { command: ["true"], resources: { gpus: 2 } });
    const page = await browser.open("/s/waiting");
    await live(page);
    await page.getByText("Waits: no agent is registered; `tune agent` starts one.").waitFor();
    await server.tune("agents/register", { agent_id: "small", slots: 1, cpus: 4, gpus: ["g0"] });
    await page.reload();
    await page.getByText(/^Waits: no registered agent has the 2 GPUs that a trial needs; the largest has 1 GPU and 4 cores\.$/).waitFor();
    await server.tune("agents/register", { agent_id: "large", slots: 1, cpus: 8, gpus: ["g0", "g1"] });
    await page.reload();
    await live(page);
    assert.equal(await page.getByText(/^Waits:/).count(), 0);
    await page.context().close();
    await server.tune("studies/waiting/stop", {});
});

test("nothing was written to the console and no other host was asked", () => {
    assert.deepEqual(browser.faults, []);
});
