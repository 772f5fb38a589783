// The arithmetic of axes: scales, ticks, and the axes of the parallel plot. Pure.
import type { ParamValue, SpaceEntry, Trial } from "./study.ts";

export type Scale =
    | { kind: "linear" | "log"; low: number; high: number; isWhole?: boolean }
    | { kind: "category"; values: string[] };

/// 0..1 along the axis; NaN when the value is not on it.
export function position(scale: Scale, value: number | string): number {
    if (scale.kind === "category") {
        const at = scale.values.indexOf(String(value));
        if (at < 0) return NaN;
        return scale.values.length === 1 ? 0.5 : at / (scale.values.length - 1);
    }
    const x = Number(value);
    const { low, high } = scale;
    if (low === high) return Number.isFinite(x) ? 0.5 : NaN;
    if (scale.kind === "linear") return (x - low) / (high - low);
    return x > 0 ? Math.log(x / low) / Math.log(high / low) : NaN;
}

/// The value at 0..1 of a numeric scale.
export function valueAt(scale: Scale, at: number): number {
    if (scale.kind === "category") return NaN;
    const { low, high } = scale;
    return scale.kind === "log" ? low * (high / low) ** at : low + (high - low) * at;
}

const kSteps = [1, 2, 2.5, 5, 10];

/// About `countWanted` round numbers from `low` to `high`.
export function linearTicks(low: number, high: number, countWanted: number): number[] {
    if (!(high > low) || !Number.isFinite(high - low)) return [low];
    const raw = (high - low) / Math.max(1, countWanted);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * kSteps.find((s) => s * power >= raw * 0.999)!;
    const ticks: number[] = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
        ticks.push(Number((i * step).toPrecision(12)));
    return ticks;
}

/// Powers of ten (thinned out where there are many); within one decade, round numbers.
export function logTicks(low: number, high: number, countWanted: number): number[] {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const last = Math.floor(Math.log10(high) + 1e-9);
    if (last - first < 1) {
        const within = [1, 2, 3, 5, 7].flatMap((m) => [m * 10 ** (first - 1), m * 10 ** first, m * 10 ** (first + 1)]);
        const ticks = within.filter((v) => v >= low * 0.999999 && v <= high * 1.000001).sort((a, b) => a - b);
        return ticks.length >= 2 ? ticks.map((v) => Number(v.toPrecision(12))) : linearTicks(low, high, countWanted);
    }
    const every = Math.max(1, Math.ceil((last - first + 1) / Math.max(2, countWanted)));
    const ticks: number[] = [];
    for (let e = first; e <= last; e += every) ticks.push(Number(`1e${e}`));
    return ticks;
}

export function ticks(scale: Scale, countWanted: number): (number | string)[] {
    if (scale.kind === "category") return scale.values;
    const all = (scale.kind === "log" ? logTicks : linearTicks)(scale.low, scale.high, countWanted);
    return scale.isWhole ? all.filter(Number.isInteger) : all;
}

/// A scale around `values` with a margin of `pad` of its length; log only when all are positive.
export function fitScale(values: Iterable<number>, wantsLog: boolean, pad = 0.05): Scale {
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
        if (!Number.isFinite(value) || (wantsLog && value <= 0)) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
    }
    if (low > high) return { kind: "linear", low: 0, high: 1 };
    if (wantsLog) {
        const margin = low === high ? 2 : (high / low) ** pad;
        return { kind: "log", low: low / margin, high: high * margin };
    }
    const margin = low === high ? Math.abs(low) * 0.1 || 1 : (high - low) * pad;
    return { kind: "linear", low: low - margin, high: high + margin };
}

// --- parallel coordinates ------------------------------------------------------------------------

export interface Axis {
    /// Parameter name, or the metric's.
    name: string;
    scale: Scale;
    isObjective: boolean;
    /// What a trial has on this axis; undefined: the parameter is inactive there.
    get: (trial: Trial) => number | string | undefined;
}

export function paramKey(value: ParamValue): number | string {
    return typeof value === "number" ? value : typeof value === "string" ? value : JSON.stringify(value);
}

/// The axis of one parameter: the declared domain, or, where there is none, what the trials hold.
export function paramAxis(name: string, entry: SpaceEntry | undefined, trials: readonly Trial[]): Axis {
    const get = (trial: Trial) => {
        const value = trial.params[name];
        return value === undefined || value === null ? undefined : paramKey(value);
    };
    const choices = entry?.choice ?? entry?.ordinal;
    if (choices) {
        const scale: Scale = { kind: "category", values: choices.map((value) => String(paramKey(value))) };
        return { name, scale, isObjective: false, get };
    }
    const range = entry?.float ?? entry?.int;
    if (range) {
        const isLog = entry?.log === true && range[0] > 0;
        return { name, scale: { kind: isLog ? "log" : "linear", low: range[0], high: range[1] }, isObjective: false, get };
    }
    const seen = trials.map(get).filter((value) => value !== undefined);
    if (seen.every((value) => typeof value === "number"))
        return { name, scale: fitScale(seen as number[], false, 0), isObjective: false, get };
    const values = [...new Set(seen.map(String))].sort();
    return { name, scale: { kind: "category", values }, isObjective: false, get };
}

export interface Brush {
    axis: string;
    /// 0..1, low <= high.
    low: number;
    high: number;
}

/// Trials that lie within every brush. One that has no value on a brushed axis is out.
export function brushed(trials: readonly Trial[], axes: readonly Axis[], brushes: readonly Brush[]): Trial[] {
    return trials.filter((trial) =>
        brushes.every((brush) => {
            const axis = axes.find((candidate) => candidate.name === brush.axis);
            if (!axis) return true;
            const value = axis.get(trial);
            const at = value === undefined ? NaN : position(axis.scale, value);
            return at >= brush.low - 1e-9 && at <= brush.high + 1e-9;
        }),
    );
}

export function writeBrush(brush: Brush): string {
    const short = (x: number) => String(Number(x.toFixed(4)));
    return `${brush.axis}:${short(brush.low)}:${short(brush.high)}`;
}

export function readBrush(text: string): Brush | undefined {
    const match = /^(.+):([\d.]+):([\d.]+)$/.exec(text);
    if (!match) return undefined;
    const low = Number(match[2]);
    const high = Number(match[3]);
    return Number.isFinite(low) && Number.isFinite(high) && low <= high ? { axis: match[1]!, low, high } : undefined;
}
