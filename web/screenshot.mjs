// Takes the pictures of the README: a running server's study page, light and dark.
//
//   node web/screenshot.mjs URL STUDY [OUT_DIR]      writes OUT_DIR/page-light.png and page-dark.png (default: docs)
//   --path /e/1                                      another page instead of the study's
//   --width 1440 --height 1500                       in CSS pixels; the pictures have twice as many
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { chromium } from "playwright-core";

function options(argv) {
    const named = { path: undefined, width: "1440", height: "1500" };
    const words = [];
    for (let i = 0; i < argv.length; ++i) {
        const name = argv[i].replace(/^--/, "");
        if (argv[i].startsWith("--") && name in named) named[name] = argv[++i];
        else words.push(argv[i]);
    }
    const [url, study, out = "docs"] = words;
    if (!url || (!study && !named.path)) {
        console.error("usage: node web/screenshot.mjs URL STUDY [OUT_DIR] [--path PATH] [--width N] [--height N]");
        process.exit(2);
    }
    return { url, route: named.path ?? `/s/${encodeURIComponent(study)}`, out, width: Number(named.width), height: Number(named.height) };
}

const { url, route, out, width, height } = options(process.argv.slice(2));
await mkdir(out, { recursive: true });
const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
for (const theme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, deviceScaleFactor: 2 });
    const page = await context.newPage();
    await page.goto(new URL(route, url).href);
    await page.locator('[data-live="live"]').waitFor();
    await page.locator(".loading").waitFor({ state: "detached" });
    // Every canvas has been drawn once its bitmap has a size and a frame has passed.
    await page.waitForFunction(() => [...document.querySelectorAll("canvas")].every((canvas) => canvas.width > 0));
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    const file = path.join(out, `page-${theme}.png`);
    await page.screenshot({ path: file });
    console.log(file);
    await context.close();
}
await browser.close();
