// For everybody and against everybody: axe finds nothing on any page in either theme, narrow screens work, and
// hostile text from scripts stays text.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axeFaults, Browser, live, seedStudy, TuneServer } from "./support.mjs";

const server = new TuneServer();
const browser = new Browser();
const kEvil = `"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>{{7*7}}'`;
let pages;
let evil;

before(async () => {
    await server.start();
    await browser.start(server);
    const experiment = await server.experiment("digits");
    let run;
    for (let i = 0; i < 12; ++i)
        run = await server.run(experiment, `run-${i}`, {
            params: { lr: 0.1 / (i + 1), optimizer: i % 2 ? "adamw" : "sgd" },
            tags: { team: "vision" },
            metrics: Array.from({ length: 20 }, (_, step) => ["loss", 1 / (step + 1) + i, step]),
            status: i % 3 ? "FINISHED" : undefined,
        });
    await server.artifact(run, "table.csv", "a,b\n1,2\n");
    await server.artifact(run, "logs/stdout.log", "hello\n");
    await seedStudy(server, "sweep", 14, [3, 4, 5]);
    const empty = await server.experiment("empty");
    pages = [
        "/", `/e/${experiment}`, `/e/${experiment}?g=params.optimizer&f=${encodeURIComponent("bad filter")}`, `/e/${empty}`, `/r/${run.id}`,
        `/r/${run.id}?tab=artifacts&path=table.csv`, `/r/${run.id}?tab=logs`, "/s/sweep", "/s/sweep?hide=pruned&top=10&log=1", "/nowhere/at/all",
    ];
    evil = await server.experiment(`evil ${kEvil}`);
});
after(async () => {
    await browser.close();
    await server.close();
});

for (const theme of ["light", "dark"])
    test(`axe finds nothing on any page, ${theme}`, async () => {
        for (const route of pages) {
            const page = await browser.open(route, { theme });
            await live(page);
            await page.locator("h1").first().waitFor();
            await page.locator(".loading").waitFor({ state: "detached" });
            assert.deepEqual(await axeFaults(page), [], `${route} in ${theme}`);
            await page.context().close();
        }
    });

test("open panels and dialogs are accessible too", async () => {
    const page = await browser.open(pages[1]);
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("dialog", { name: "Choose columns" }).waitFor();
    assert.deepEqual(await axeFaults(page), []);
    await page.keyboard.press("Escape");
    await page.locator("body").click({ position: { x: 5, y: 300 } });
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys and filters" }).waitFor();
    assert.deepEqual(await axeFaults(page), []);
    await page.context().close();
});

test("the theme is the system's until one is chosen, and the choice stays", async () => {
    const page = await browser.open("/", { theme: "dark" });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await background();
    await page.getByRole("button", { name: "Light theme" }).click();
    const light = await background();
    assert.notEqual(light, dark);
    await page.reload();
    await page.getByRole("button", { name: "Light theme" }).waitFor();
    assert.equal(await background(), light);
    await page.goto(`${server.url}/?theme=dark`);
    await page.getByRole("button", { name: "Dark theme" }).waitFor();
    assert.equal(await background(), dark);
    await page.context().close();
});

test("a tablet shows every page without scrolling sideways", async () => {
    for (const route of pages) {
        const page = await browser.open(route, { width: 768, height: 1024 });
        await page.locator("h1").first().waitFor();
        await page.locator(".loading").waitFor({ state: "detached" });
        const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(content <= window, `${route} is ${content} px wide on ${window} px`);
        await page.context().close();
    }
});

test("hostile names, values, files and studies stay text", async () => {
    const run = await server.run(evil, kEvil, {
        params: { p: kEvil, q: "javascript:window.hacked=1" },
        tags: { t: kEvil, "tune.state": kEvil, "mlflow.user": kEvil },
        metrics: [["loss", 1, 0], ["loss", 2, 1]],
    });
    await server.artifact(run, "page.html", `<script>window.hacked=1</script><h1>${kEvil}</h1>`);
    await server.artifact(run, "picture.svg", `<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8" onload="window.hacked=1"><script>window.hacked=1</script></svg>`);
    await server.artifact(run, "cells.csv", `a,b\n${kEvil.replace(/"/g, "'")},=cmd()\n`);
    await server.artifact(run, "logs/stdout.log", `${kEvil}\n`);
    await seedStudy(server, "evil", 12, [2], { space: { lr: { float: [1e-4, 1e-1], log: true }, choice: { choice: [kEvil, "fine"] } } });
    const routes = [
        "/", `/e/${evil}?cols=params.p,params.q,tags.t,user,status`, `/e/${evil}?g=params.p`, `/e/${evil}?f=${encodeURIComponent(kEvil)}&q=${encodeURIComponent(kEvil)}`, `/r/${run.id}`,
        `/r/${run.id}?tab=artifacts&path=page.html`, `/r/${run.id}?tab=artifacts&path=picture.svg`, `/r/${run.id}?tab=artifacts&path=cells.csv`,
        `/r/${run.id}?tab=logs`, "/s/evil", `/s/${encodeURIComponent(kEvil)}`, `/r/${encodeURIComponent(kEvil)}`,
    ];
    for (const route of routes) {
        const page = await browser.open(route);
        await page.locator("h1").first().waitFor();
        await page.locator(".loading").waitFor({ state: "detached" });
        await page.waitForLoadState("load");
        assert.equal(await page.evaluate(() => window.hacked), undefined, route);
        assert.equal(await page.locator('img[src="x"], #app script').count(), 0, route);
        await page.context().close();
    }
    const page = await browser.open(`/r/${run.id}?tab=artifacts&path=page.html`);
    await page.locator(".preview pre", { hasText: "<script>window.hacked=1</script>" }).waitFor();
    assert.ok((await page.getByRole("heading", { level: 1 }).textContent()).includes("<img src=x"));
    await page.context().close();
});

test("an artifact opened by itself cannot run in the page's name", async () => {
    const run = await server.run(evil, "direct");
    await server.artifact(run, "page.html", "<script>window.hacked=1</script>");
    const answer = await fetch(`${server.url}/api/2.0/mlflow-artifacts/artifacts/${run.uri.replace(/^mlflow-artifacts:\/*/, "")}/page.html`);
    assert.match(answer.headers.get("content-security-policy") ?? "", /sandbox/);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
});

test("nothing was written to the console and no other host was asked", () => {
    const expected = /status of (400|404)/; // pages of things that do not exist
    assert.deepEqual(browser.faults.filter((fault) => !expected.test(fault)), []);
});
