import assert from "node:assert/strict";
import test from "node:test";
import { load } from "./load.mjs";

const { parseCsv, writeCsv } = await load("data/files/csv.ts");
const { cleanLog, looksLikeText, previewKind } = await load("data/files/logs.ts");
const { artifactUrl } = await load("data/wire.ts");
const { kPalette, lineStyles, preferredStyle } = await load("data/curves/colors.ts");

test("CSV with quotes, line breaks and a missing last newline", () => {
    assert.deepEqual(parseCsv('a,b\r\n"x, ""y""","1\n2"\nlast,', 10), [["a", "b"], ['x, "y"', "1\n2"], ["last", ""]]);
    assert.deepEqual(parseCsv("", 10), []);
    assert.equal(parseCsv("a\nb\nc\n", 2).length, 2);
    assert.deepEqual(parseCsv("a\tb", 2, "\t"), [["a", "b"]]);
});

test("CSV written is CSV read; formulas are disarmed, numbers are not", () => {
    const text = writeCsv([["name", "v"], ['say "hi", twice', -1.5], ["=HYPERLINK(1)", undefined], ["-3e-5", 2]]);
    assert.deepEqual(parseCsv(text, 10), [["name", "v"], ['say "hi", twice', "-1.5"], ["'=HYPERLINK(1)", ""], ["-3e-5", "2"]]);
});

test("logs lose escape codes and what progress bars overwrote", () => {
    assert.equal(cleanLog("\x1b[32mok\x1b[0m\r\n10%\r50%\r100%\nend\x07"), "ok\n100%\nend");
    assert.equal(cleanLog("a\r"), "a");
    assert.equal(cleanLog("\x1b]0;title\x07text\ttab"), "text\ttab");
});

test("text is told from binary", () => {
    assert.equal(looksLikeText(new TextEncoder().encode("grün €")), true);
    assert.equal(looksLikeText(new TextEncoder().encode("€").subarray(0, 2)), true);
    assert.equal(looksLikeText(Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0)), false);
    assert.equal(looksLikeText(Uint8Array.of(0xff, 0xfe, 0x41)), false);
    assert.equal(looksLikeText(new Uint8Array()), true);
});

test("previews by name; HTML is text", () => {
    assert.deepEqual(["a.PNG", "b.json", "c.csv", "d.html", "README", "x.tar.gz"].map(previewKind), ["image", "json", "table", "text", "text", "text"]);
});

test("artifact addresses cannot leave the artifact route", () => {
    assert.equal(artifactUrl("mlflow-artifacts:/1/abc/artifacts", "a b/c#d?.txt"), "/api/2.0/mlflow-artifacts/artifacts/1/abc/artifacts/a%20b/c%23d%3F.txt");
});

test("a run keeps its colour; runs that share one get other dashes", () => {
    const ids = Array.from({ length: 15 }, (_, i) => `run-${i}`);
    const styles = lineStyles(ids);
    assert.equal(new Set(styles.map((style) => style.token + style.dash.join())).size >= 14, true);
    assert.equal(styles[3].token, lineStyles([ids[3]])[0].token);
    assert.equal(preferredStyle("abc"), preferredStyle("abc"));
});

test("runs of one chart have distinct colours as far as the palette goes, then distinct dashes", () => {
    for (let seed = 0; seed < 50; ++seed) {
        const ids = Array.from({ length: 28 }, (_, i) => `${seed}-${i}`);
        const styles = lineStyles(ids);
        assert.equal(new Set(styles.slice(0, 7).map((style) => style.token)).size, 7, ids[0]);
        assert.equal(new Set(styles.map((style) => style.token + style.dash.join())).size, 28, ids[0]);
        // The first of those that prefer a colour has it.
        assert.equal(styles[0].token, kPalette[preferredStyle(ids[0])]);
    }
});
