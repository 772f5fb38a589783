// Which parameters matter: PED-ANOVA (Watanabe et al. 2023). For each parameter, one-dimensional Parzen densities of
// the best tenth of the trials and of all of them; how far the first is from the second (Pearson's
// divergence) is what that parameter does to being among the best. Cost O(trials * grid), so it runs live.
import type { Axis } from "./axes.ts";
import { position } from "./axes.ts";
import { isBetter, type Trial } from "./study.ts";

const kGrid = 50;
const kTopShare = 0.1;
/// Fewer finished trials say nothing about importance.
export const kImportanceTrialsMin = 10;

function gridIndexes(axis: Axis, trials: readonly Trial[], size: number): number[] {
    const indexes: number[] = [];
    for (const trial of trials) {
        const value = axis.get(trial);
        const at = value === undefined ? NaN : position(axis.scale, value);
        if (Number.isFinite(at)) indexes.push(Math.min(size - 1, Math.max(0, Math.round(at * (size - 1)))));
    }
    return indexes;
}

function quantile(sorted: readonly number[], q: number): number {
    const at = q * (sorted.length - 1);
    const low = Math.floor(at);
    return sorted[low]! + (at - low) * ((sorted[low + 1] ?? sorted[low]!) - sorted[low]!);
}

/// Scott's rule on grid cells, never below half a cell at 1.64 sigma.
function bandwidth(indexes: readonly number[]): number {
    const n = indexes.length;
    const mean = indexes.reduce((sum, x) => sum + x, 0) / n;
    const deviation = Math.sqrt(indexes.reduce((sum, x) => sum + (x - mean) ** 2, 0) / Math.max(1, n - 1));
    const sorted = [...indexes].sort((a, b) => a - b);
    const spread = Math.min((quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.34, deviation);
    return Math.max(1.059 * spread * n ** -0.2, 0.5 / 1.64);
}

/// A density on the grid that sums to 1; categories are counted with one pseudo-observation for all.
function density(indexes: readonly number[], size: number, isCategory: boolean): number[] {
    const counts = new Array<number>(size).fill(0);
    for (const index of indexes) ++counts[index]!;
    let weights: number[];
    if (isCategory) {
        weights = counts.map((count) => count + 1 / size);
    } else {
        const sigma = bandwidth(indexes);
        weights = counts.map((_, x) =>
            counts.reduce((sum, count, at) => sum + (count === 0 ? 0 : count * Math.exp(-(((x - at) / sigma) ** 2) / 2)), 1e-12),
        );
    }
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return weights.map((weight) => weight / total);
}

function divergence(axis: Axis, top: readonly Trial[], all: readonly Trial[]): number {
    const isCategory = axis.scale.kind === "category";
    const size = axis.scale.kind === "category" ? axis.scale.values.length : kGrid;
    const topIndexes = gridIndexes(axis, top, size);
    const allIndexes = gridIndexes(axis, all, size);
    if (size < 2 || topIndexes.length === 0 || allIndexes.length < 2) return 0;
    const p = density(topIndexes, size, isCategory);
    const q = density(allIndexes, size, isCategory);
    return p.reduce((sum, value, i) => sum + q[i]! * (value / q[i]! - 1) ** 2, 0);
}

export interface Importance {
    name: string;
    /// Shares of 1, descending.
    share: number;
}

/// Empty when too few trials are complete.
export function importances(trials: readonly Trial[], axes: readonly Axis[], goal: "min" | "max"): Importance[] {
    const finished = trials.filter((trial) => trial.state === "complete" && Number.isFinite(trial.value));
    if (finished.length < kImportanceTrialsMin) return [];
    finished.sort((a, b) => (a.value === b.value ? 0 : isBetter(a.value, b.value, goal) ? -1 : 1));
    const top = finished.slice(0, Math.max(2, Math.ceil(finished.length * kTopShare)));
    const raw = axes
        .filter((axis) => !axis.isObjective)
        .map((axis) => ({ name: axis.name, share: divergence(axis, top, finished) }));
    const total = raw.reduce((sum, entry) => sum + entry.share, 0);
    if (total === 0) return raw;
    return raw.map((entry) => ({ ...entry, share: entry.share / total })).sort((a, b) => b.share - a.share);
}
