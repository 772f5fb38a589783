// Values as people read them. Every function is pure; `nowMs` comes in where time matters.

/// MLflow clamps infinities to the largest double; shown as what they were.
const kLargest = 1.7976931348623157e308;

/// toLocaleString would make a formatter for every cell.
const grouped = new Intl.NumberFormat("en-US");

/// Four significant digits: "0.03163", "1,797", "2.5e-7". "NaN", "∞" and "−∞" as such.
export function number(value: number, digits = 4): string {
    if (Number.isNaN(value)) return "NaN";
    if (value >= kLargest) return "∞";
    if (value <= -kLargest) return "−∞";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (Number.isInteger(value) && size < 1e7) return grouped.format(value);
    if (size < 1e-4 || size >= 1e7) return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
    const text = value.toPrecision(digits);
    if (text.includes("e")) return grouped.format(Math.round(value));
    return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

/// "12 s", "3 min 5 s", "2 h 10 min", "3 d 4 h"; below a second in ms.
export function duration(ms: number): string {
    if (!Number.isFinite(ms) || ms < 0) return "–";
    if (ms < 1000) return `${Math.round(ms)} ms`;
    const s = ms / 1000;
    if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
    const minutes = Math.floor(s / 60);
    if (minutes < 60) return join(minutes, "min", Math.floor(s % 60), "s");
    const hours = Math.floor(minutes / 60);
    if (hours < 24) return join(hours, "h", minutes % 60, "min");
    return join(Math.floor(hours / 24), "d", hours % 24, "h");
}

function join(large: number, largeUnit: string, small: number, smallUnit: string): string {
    return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/// "now", "5 min ago", "3 d ago", then the date.
export function ago(timeMs: number, nowMs: number): string {
    if (!(timeMs > 0)) return "–";
    const s = (nowMs - timeMs) / 1000;
    if (s < 10) return "now";
    if (s < 60) return `${Math.floor(s)} s ago`;
    if (s < 3600) return `${Math.floor(s / 60)} min ago`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
    if (s < 86400 * 14) return `${Math.floor(s / 86400)} d ago`;
    return date(timeMs).slice(0, 10);
}

/// Local time as "2026-11-21 03:15:42".
export function date(timeMs: number): string {
    if (!(timeMs > 0)) return "–";
    const at = new Date(timeMs);
    const two = (n: number) => String(n).padStart(2, "0");
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/// "512 B", "3.4 kB", "12 MB".
export function bytes(count: number): string {
    if (count < 1000) return `${count} B`;
    const units = ["kB", "MB", "GB", "TB"];
    let value = count;
    let unit = -1;
    do {
        value /= 1000;
        ++unit;
    } while (value >= 999.5 && unit < units.length - 1);
    return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/// "1 run", "2 runs".
export function count(n: number, noun: string, plural = `${noun}s`): string {
    return `${grouped.format(n)} ${n === 1 ? noun : plural}`;
}

/// A JSON value of a parameter as one short text.
export function paramText(value: unknown): string {
    if (typeof value === "number") return number(value);
    if (typeof value === "string") return value;
    if (value === undefined || value === null) return "–";
    return JSON.stringify(value);
}
