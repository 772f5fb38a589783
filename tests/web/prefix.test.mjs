// The page under `tune server --static-prefix`: every request stays below it (the browser's fault list says so).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, live, TuneServer } from "./support.mjs";

const server = new TuneServer();
const browser = new Browser();
let experiment;
let run;

before(async () => {
    await server.start(0, ["--static-prefix", "/team/ml"]);
    await browser.start(server);
    experiment = await server.experiment("digits");
    run = await server.run(experiment, "first", { metrics: [["loss", 0.5, 0], ["loss", 0.25, 1]], status: "FINISHED" });
    await server.artifact(run, "notes.txt", "some notes");
});
after(async () => {
    await browser.close();
    await server.close();
});

test("pages, links, live events and files stay below the prefix", async () => {
    const page = await browser.open("/");
    await live(page);
    await page.getByRole("link", { name: "digits", exact: true }).click();
    await page.waitForURL((url) => url.pathname === `/team/ml/e/${experiment}`);
    await page.getByRole("link", { name: "first" }).click();
    await page.getByRole("link", { name: "digits" }).waitFor();
    await page.waitForURL((url) => url.pathname === `/team/ml/r/${run.id}`);
    await page.reload();
    await live(page);
    assert.equal(await page.getByRole("link", { name: "digits" }).getAttribute("href"), `/team/ml/e/${experiment}`);
    await page.locator("a.brand").click();
    await page.waitForURL((url) => url.pathname === "/team/ml/");
    await page.goBack();
    await page.waitForURL((url) => url.pathname === `/team/ml/r/${run.id}`);
    await page.context().close();
    assert.deepEqual(browser.faults, []);
});
