// Metric histories as the charts draw them: decoded, extended by live points, smoothed, laid side by side.
import { fromWire, type WireNumber, type WireSeries } from "../wire.ts";

/// Points in step order. `last` is the line; `min` and `max` the band behind it, equal to it where a
/// point stands for itself. NaN is a gap.
export interface Series {
    runId: string;
    step: number[];
    time: number[];
    last: number[];
    min: number[];
    max: number[];
    counts: number[];
    /// Points that the server has, and how many of them are NaN.
    count: number;
    nanCount: number;
    /// Points added live since the last read.
    added: number;
}

const orNaN = (value: number | null) => value ?? NaN;

export function decodeSeries(wire: WireSeries): Series {
    const last = wire.last.map(orNaN);
    return {
        runId: wire.run_id,
        step: wire.step,
        time: wire.time,
        last,
        min: wire.min?.map(orNaN) ?? [...last],
        max: wire.max?.map(orNaN) ?? [...last],
        counts: wire.counts ?? wire.step.map(() => 1),
        count: wire.count,
        nanCount: wire.nan_count,
        added: 0,
    };
}

export function emptySeries(runId: string): Series {
    return { runId, step: [], time: [], last: [], min: [], max: [], counts: [], count: 0, nanCount: 0, added: 0 };
}

/// Adds a live point. A step that is already the last one replaces or joins it; an earlier step is put
/// where it belongs, so the line never runs backwards.
export function appendPoint(series: Series, step: number, time: number, wire: WireNumber): void {
    const value = fromWire(wire);
    ++series.count;
    ++series.added;
    if (Number.isNaN(value)) ++series.nanCount;
    let at = series.step.length;
    while (at > 0 && series.step[at - 1]! > step) --at;
    if (at > 0 && series.step[at - 1] === step) {
        --at;
        series.last[at] = value;
        series.time[at] = time;
        series.counts[at]!++;
        if (!Number.isNaN(value)) {
            series.min[at] = Number.isNaN(series.min[at]!) ? value : Math.min(series.min[at]!, value);
            series.max[at] = Number.isNaN(series.max[at]!) ? value : Math.max(series.max[at]!, value);
        }
        return;
    }
    series.step.splice(at, 0, step);
    series.time.splice(at, 0, time);
    series.last.splice(at, 0, value);
    series.min.splice(at, 0, value);
    series.max.splice(at, 0, value);
    series.counts.splice(at, 0, 1);
}

/// Whether so many live points came that the history should be read (and down-sampled) anew.
export function isStale(series: Series, buckets: number): boolean {
    return series.added > buckets && series.step.length > buckets * 2;
}

/// A smoothing of 1 would flatten every curve to its first value.
export const kSmoothingMax = 0.999;

/// Debiased exponential moving average. `counts` says for how many raw points each value stands, so that the
/// same data smooths alike however it was sampled. Constants stay constant, gaps stay gaps.
export function smooth(values: readonly number[], counts: readonly number[], weight: number): number[] {
    const w = Math.min(Math.max(weight, 0), kSmoothingMax);
    if (w === 0) return [...values];
    let sum = 0;
    let mass = 0;
    return values.map((value, i) => {
        if (!Number.isFinite(value)) return value;
        const keep = w ** (counts[i] ?? 1);
        sum = sum * keep + value * (1 - keep);
        mass = mass * keep + (1 - keep);
        return sum / mass;
    });
}

export type XAxis = "step" | "time" | "relative";

/// The x values of a series: its steps, its times in seconds, or seconds since its first point.
export function xValues(series: Series, axis: XAxis): number[] {
    if (axis === "step") return series.step;
    const first = axis === "relative" ? (series.time[0] ?? 0) : 0;
    return series.time.map((ms) => (ms - first) / 1000);
}

/// Lays curves with different x side by side as uPlot wants them: one ascending x, then one array a curve
/// with undefined where it has no point there (the line goes on) and null where it has a gap.
export function align(curves: readonly { x: readonly number[]; y: readonly number[] }[]): {
    x: number[];
    ys: (number | null | undefined)[][];
} {
    const x = [...new Set(curves.flatMap((curve) => [...curve.x]))].sort((a, b) => a - b);
    const place = new Map(x.map((value, i) => [value, i]));
    const ys = curves.map((curve) => {
        const y = new Array<number | null | undefined>(x.length).fill(undefined);
        curve.x.forEach((value, i) => {
            const point = curve.y[i]!;
            y[place.get(value)!] = Number.isFinite(point) ? point : null;
        });
        return y;
    });
    return { x, ys };
}

/// "1,000 of 25,000 points, 3 NaN": what a chart's caption says.
export function describe(all: readonly Series[]): { shown: number; total: number; nan: number } {
    return {
        shown: all.reduce((sum, series) => sum + series.step.length, 0),
        total: all.reduce((sum, series) => sum + series.count, 0),
        nan: all.reduce((sum, series) => sum + series.nanCount, 0),
    };
}
