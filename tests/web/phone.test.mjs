// Phones: at 390 pixels every page fits, titles and names are read in words and not in letters, and what matters comes first.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axeFaults, Browser, eventually, live, seedStudy, TuneServer } from "./support.mjs";

const server = new TuneServer();
const browser = new Browser();
const kPhone = { width: 390, height: 844 };
let pages;

before(async () => {
    await server.start();
    await browser.start(server);
    const experiment = await server.experiment("handwritten-digits-baseline");
    let run;
    for (let i = 0; i < 12; ++i)
        run = await server.run(experiment, `convolution-${i}`, {
            params: { learning_rate: 0.1 / (i + 1), optimizer: i % 2 ? "adamw" : "sgd", path: `/data/${"deep/".repeat(80)}` },
            tags: { "mlflow.source.name": "train.py", team: "vision" },
            metrics: [...Array.from({ length: 20 }, (_, step) => ["val_loss", 1 / (step + 1) + i, step]), ["training_balanced_accuracy_score", 0.9, 0]],
            status: i % 3 ? "FINISHED" : undefined,
        });
    await server.artifact(run, "tables/confusion_matrix.csv", `digit,${Array.from({ length: 10 }, (_, i) => `predicted_${i}`).join()}\n${Array.from({ length: 10 }, (_, i) => `${i},${"12345,".repeat(9)}1`).join("\n")}\n`);
    await server.artifact(run, "logs/stdout.log", "epoch 1\n");
    await server.artifact(run, "logs/stderr.log", "warning\n");
    await seedStudy(server, "digits-with-a-longer-name", 14, [3, 4, 5]);
    pages = [
        "/", `/e/${experiment}`, `/r/${run.id}`, `/r/${run.id}?tab=artifacts&path=tables/confusion_matrix.csv`, `/r/${run.id}?tab=logs`,
        "/s/digits-with-a-longer-name", "/#/models/a/versions/1", "/nowhere",
    ];
});
after(async () => {
    await browser.close();
    await server.close();
});

const top = async (locator) => (await locator.first().boundingBox()).y;

test("every page fits the screen, and its header and title stand on their lines", async () => {
    for (const route of pages) {
        const page = await browser.open(route, kPhone);
        await live(page);
        await page.locator("h1").first().waitFor();
        await page.locator(".loading").waitFor({ state: "detached" });
        const [content, bar, overlaps, title, frame] = await page.evaluate(() => {
            const parts = [...document.querySelector(".bar").children].map((part) => part.getBoundingClientRect()).filter((box) => box.width > 0);
            return [
                document.documentElement.scrollWidth,
                document.querySelector(".bar").offsetHeight,
                parts.some((box, i) => i > 0 && box.left < parts[i - 1].right - 1) || parts.at(-1).right > innerWidth,
                document.querySelector("h1").offsetHeight,
                Math.max(0, ...[...document.querySelectorAll(".frame > header")].map((header) => header.offsetHeight)),
            ];
        });
        assert.ok(content <= kPhone.width, `${route} is ${content} px wide`);
        assert.equal(bar, 46, route);
        assert.equal(overlaps, false, `the header's parts overlap at ${route}`);
        assert.ok(title <= 48, `${route} has a title of ${title} px: more than two lines`);
        assert.ok(frame <= 52, `the table's header at ${route} is ${frame} px: the last row would be cut`);
        assert.deepEqual(await axeFaults(page), [], route);
        await page.context().close();
    }
});

test("names in tables stay in one or two lines", async () => {
    for (const route of [pages[0], pages[2]]) {
        const page = await browser.open(route, kPhone);
        await page.locator("table.plain td:first-child").first().waitFor();
        const tall = await page.locator("table.plain td:first-child").evaluateAll((all) => all.filter((cell) => cell.firstElementChild.offsetHeight > 42).map((cell) => cell.textContent));
        assert.deepEqual(tall, [], route);
        await page.context().close();
    }
});

test("a run: metrics, params, charts, then tags; an experiment: its runs, then charts, in one scroll", async () => {
    const page = await browser.open(pages[2], kPhone);
    const region = (name) => page.getByRole("region", { name, exact: true });
    await page.getByRole("img", { name: /Line chart of val_loss/ }).waitFor();
    const order = [await top(region("Metrics")), await top(region("Params")), await top(page.getByRole("tablist")), await top(region("Tags"))];
    assert.deepEqual([...order].sort((a, b) => a - b), order);
    await page.goto(server.url + pages[1]);
    await page.getByRole("img", { name: /Line chart of val_loss/ }).waitFor();
    const grid = await page.getByRole("grid", { name: "Runs" }).boundingBox();
    assert.ok(grid.height > 300 && (await top(page.locator("[data-metric]"))) > grid.y + grid.height, JSON.stringify(grid));
    const inner = await page.getByRole("group", { name: "Metric charts" }).evaluate((box) => box.scrollHeight - box.clientHeight);
    assert.ok(inner <= 1, `the charts scroll by themselves, ${inner} px`);
    // Beside the pinned name there is room for two values.
    const pinned = await page.locator(".grid .headers .pin-last").evaluate((cell) => cell.getBoundingClientRect().right);
    assert.ok(pinned < 200, `${pinned} px are pinned`);
    await page.context().close();
});

test("the theme is chosen in the help, and panels stay on the screen", async () => {
    const page = await browser.open(pages[1], kPhone);
    await live(page);
    await page.getByRole("button", { name: "Columns" }).click();
    const panel = await page.getByRole("dialog", { name: "Choose columns" }).boundingBox();
    assert.ok(panel.x >= 0 && panel.x + panel.width <= kPhone.width, JSON.stringify(panel));
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Keys and filters" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Dark theme" }).click();
    await eventually(() => page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await page.context().close();
});

test("nothing was written to the console and no other host was asked", () => {
    assert.deepEqual(browser.faults, []);
});
