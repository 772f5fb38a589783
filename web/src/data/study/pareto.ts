// Studies of several objectives: the values of a trial in each of them, and which trials no other one beats. Pure.
import { counts, isBetter, shownValue, type StudyMetric, type Trial } from "./study.ts";

/// Objective number `k` of a trial as pictures show it; NaN: none (yet).
export function objectiveOf(trial: Trial, k: number): number {
    return k === 0 ? shownValue(trial) : (trial.moreValues[k - 1] ?? NaN);
}

/// `all` with number `k` in front, the others in their order.
export function promote<T>(all: readonly T[], k: number): T[] {
    return [all[k]!, ...all.filter((_, i) => i !== k)];
}

/// The trials with objective `k` in the first one's place, for pictures of one objective. Reported curves are of the
/// first one, so the others have none.
export function withObjective(trials: readonly Trial[], k: number): readonly Trial[] {
    if (k === 0) return trials;
    return trials.map((trial) => {
        const [value = NaN, ...moreValues] = promote([shownValue(trial), ...trial.moreValues], k);
        return { ...trial, value, moreValues, steps: [], values: [] };
    });
}

/// The complete, feasible trials that no other one beats, best in the first of `which` (indexes of objectives) first. One
/// trial beats another when it is as good in all of `which` and better in one. O(trials * front); of two, O(trials log).
export function frontOf(trials: readonly Trial[], metrics: readonly StudyMetric[], which = metrics.map((_, k) => k)): Trial[] {
    const points = trials
        .filter(counts)
        .map((trial) => ({ trial, losses: which.map((k) => objectiveOf(trial, k) * (metrics[k]!.goal === "min" ? 1 : -1)) }))
        .filter((point) => point.losses.every(Number.isFinite));
    // In this order nothing is beaten by what comes after it.
    points.sort((a, b) => {
        const k = a.losses.findIndex((loss, i) => loss !== b.losses[i]);
        return k < 0 ? 0 : a.losses[k]! - b.losses[k]!;
    });
    const front: typeof points = [];
    for (const point of points) {
        // Of two objectives the last one kept has the least of the second: it beats whatever any beats.
        const rivals = which.length === 2 ? front.slice(-1) : front;
        const isBeaten = rivals.some(
            (rival) => rival.losses.every((loss, i) => loss <= point.losses[i]!) && rival.losses.some((loss, i) => loss < point.losses[i]!),
        );
        if (!isBeaten) front.push(point);
    }
    return front.map((point) => point.trial);
}

/// Outliers (a diverged trial) would flatten everything else: the finite values without those beyond the fence on the
/// bad side. What lies outside is drawn at the edge.
export function fence(values: readonly number[], goal: "min" | "max"): number[] {
    const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
    if (sorted.length < 8) return sorted;
    const at = (q: number) => sorted[Math.floor(q * (sorted.length - 1))]!;
    const reach = 4 * (at(0.75) - at(0.25)) || Infinity;
    const end = goal === "min" ? at(0.75) + reach : at(0.25) - reach;
    return sorted.filter((value) => !isBetter(end, value, goal));
}
