// A study and its trials, as the study page draws them.
import { fromWire, type WireNumber } from "../wire.ts";

export type TrialState = "queued" | "running" | "complete" | "pruned" | "failed" | "cancelled";
export const kTrialStates: readonly TrialState[] = ["complete", "running", "pruned", "failed", "cancelled", "queued"];

export type ParamValue = string | number | boolean | null | ParamValue[];

export interface WireTrial {
    number: number;
    state: TrialState;
    attempt?: number;
    run_id?: string;
    params?: Record<string, ParamValue>;
    value?: WireNumber;
    /// Of all objectives, where there are several.
    values?: WireNumber[];
    /// The same of a running trial, once each has arrived.
    values_now?: WireNumber[];
    /// How far beyond the bounds of the constraints; 0: feasible.
    violation?: WireNumber;
    reason?: string;
    start_ms?: number | null;
    end_ms?: number | null;
    /// Of its ended attempts together; the time between them does not count.
    ran_ms?: number;
    worker?: string;
    /// Population based training: the trial whose checkpoint this one continues, whose turn it was, and the steps
    /// that it trains from and to.
    parent?: number | null;
    member?: number;
    steps?: [number, number];
    intermediate?: [number, WireNumber][];
    intermediate_last?: [number, WireNumber] | { step: number; value: WireNumber } | null;
}

export interface Trial {
    number: number;
    state: TrialState;
    attempt: number;
    runId: string;
    params: Record<string, ParamValue>;
    /// NaN: none (yet).
    value: number;
    /// Of the objectives after the first; empty where there is one, or not all have arrived.
    moreValues: number[];
    /// Above 0: the trial breaks a constraint and is never the best.
    violation: number;
    reason: string;
    start: number;
    end: number;
    /// How long its ended attempts ran, without the time between them.
    ran: number;
    worker: string;
    /// Of population based training; `parent` is undefined where the trial starts from nothing.
    origin: { parent: number | undefined; member: number; from: number; to: number } | undefined;
    steps: number[];
    values: number[];
}

export interface SpaceEntry {
    float?: [number, number];
    int?: [number, number];
    choice?: ParamValue[];
    ordinal?: ParamValue[];
    const?: ParamValue;
    log?: boolean;
}

export interface StudyMetric {
    name: string;
    goal: "min" | "max";
}

export interface BestTrial {
    number: number;
    value: WireNumber;
    values?: WireNumber[];
    params: Record<string, ParamValue>;
    run_id: string;
}

export interface Study {
    name: string;
    study_id?: string;
    experiment_id: string;
    run_id?: string;
    state: "running" | "paused" | "stopped" | "completed";
    /// The state, but "waiting" or "interrupted" where nobody works on a running study, and "deleted" where an MLflow client
    /// has deleted its experiment.
    status?: string;
    metric: StudyMetric;
    /// All objectives, where there are several; `metric` is the first.
    metrics?: StudyMetric[];
    constraints?: { name: string; min?: number; max?: number }[];
    space: Record<string, SpaceEntry>;
    /// The order of declaration, where it is not that of the alphabet.
    space_order?: string[];
    sampler?: { type?: string; seed?: number } | null;
    pruner?: { type?: string } | null;
    budget?: { trials?: number; time?: string | number; parallel?: number } | null;
    command?: string[] | string;
    created_ms: number;
    /// A sentence about why the study stands where it does; may be empty.
    note?: string;
    /// Why no registered agent can run its trials, while none runs.
    waits_for?: string;
    counts: Partial<Record<TrialState, number>>;
    /// Of the failed ones, those that failed before any had succeeded: they use up no budget.
    excused?: number;
    best: BestTrial | null;
    /// The Pareto front, where there are several objectives; `best` is null then.
    best_trials?: BestTrial[];
}

function emptyTrial(number: number): Trial {
    return {
        number, state: "queued", attempt: 0, runId: "", params: {}, value: NaN, moreValues: [], violation: 0, reason: "", start: 0, end: 0, ran: 0,
        worker: "", origin: undefined, steps: [], values: [],
    };
}

/// Adds a point where its step belongs; an equal step is replaced.
function addIntermediate(trial: Trial, step: number, value: number): void {
    let at = trial.steps.length;
    while (at > 0 && trial.steps[at - 1]! > step) --at;
    if (at > 0 && trial.steps[at - 1] === step) {
        trial.values[at - 1] = value;
        return;
    }
    trial.steps.splice(at, 0, step);
    trial.values.splice(at, 0, value);
}

/// `trial` with what `wire` says; fields that it leaves out stay.
export function mergeTrial(trial: Trial | undefined, wire: WireTrial): Trial {
    const next: Trial = trial ? { ...trial } : emptyTrial(wire.number);
    next.state = wire.state;
    next.attempt = wire.attempt ?? next.attempt;
    next.runId = wire.run_id ?? next.runId;
    next.params = wire.params ?? next.params;
    if (wire.value !== undefined) next.value = fromWire(wire.value);
    const all = wire.values ?? wire.values_now;
    if (all) next.moreValues = all.slice(1).map(fromWire);
    else if (wire.state !== "running" && wire.state !== "complete") next.moreValues = [];
    if (wire.violation !== undefined) next.violation = fromWire(wire.violation);
    next.reason = wire.reason ?? next.reason;
    next.start = wire.start_ms ?? next.start;
    next.end = wire.end_ms ?? next.end;
    next.ran = wire.ran_ms ?? next.ran;
    next.worker = wire.worker ?? next.worker;
    if (wire.member !== undefined && wire.steps)
        next.origin = { parent: wire.parent ?? undefined, member: wire.member, from: wire.steps[0], to: wire.steps[1] };
    if (wire.intermediate) {
        next.steps = [];
        next.values = [];
        for (const [step, value] of wire.intermediate) addIntermediate(next, step, fromWire(value));
    } else if (wire.intermediate_last) {
        const last = wire.intermediate_last;
        next.steps = [...next.steps];
        next.values = [...next.values];
        if (Array.isArray(last)) addIntermediate(next, last[0], fromWire(last[1]));
        else addIntermediate(next, last.step, fromWire(last.value));
    }
    return next;
}

/// The objective as plots show it: a complete trial's value, else (pruned, running) the last one reported.
export function shownValue(trial: Trial): number {
    if (Number.isFinite(trial.value)) return trial.value;
    return trial.values.length > 0 ? trial.values[trial.values.length - 1]! : NaN;
}

export function isBetter(a: number, b: number, goal: "min" | "max"): boolean {
    return goal === "min" ? a < b : a > b;
}

/// Complete with a value, and within the constraints.
export function counts(trial: Trial): boolean {
    return trial.state === "complete" && Number.isFinite(trial.value) && !(trial.violation > 0);
}

/// The best value of complete trials up to each of `trials` (ordered as given); NaN before the first.
export function bestSoFar(trials: readonly Trial[], goal: "min" | "max"): number[] {
    let best = NaN;
    return trials.map((trial) => {
        if (counts(trial))
            if (Number.isNaN(best) || isBetter(trial.value, best, goal)) best = trial.value;
        return best;
    });
}

/// The best complete trial; the earlier one of equals.
export function bestTrial(trials: readonly Trial[], goal: "min" | "max"): Trial | undefined {
    let best: Trial | undefined;
    for (const trial of trials) {
        if (!counts(trial)) continue;
        if (!best || isBetter(trial.value, best.value, goal)) best = trial;
    }
    return best;
}

/// The numbers of the trials whose training is in this one, itself among them; empty outside population based training.
export function lineage(trials: ReadonlyMap<number, Trial>, number: number | undefined): Set<number> {
    const numbers = new Set<number>();
    let at = number === undefined ? undefined : trials.get(number);
    // A parent is older than its child.
    while (at?.origin && !numbers.has(at.number)) {
        numbers.add(at.number);
        at = at.origin.parent === undefined ? undefined : trials.get(at.origin.parent);
    }
    return numbers;
}

/// `studies` with the new state of one of them; a study that was not there comes first.
export function withStudy(studies: readonly Study[], changed: Study): Study[] {
    if (!studies.some((study) => study.name === changed.name)) return [changed, ...studies];
    return studies.map((study) => (study.name === changed.name ? { ...study, ...changed } : study));
}

/// The runs of the best trials, and what to say about each.
export function bestRuns(studies: readonly Study[]): Map<string, string> {
    const titles = new Map<string, string>();
    for (const { name, best, best_trials } of studies) {
        if (best) titles.set(best.run_id, `Best trial of ${name}`);
        for (const trial of best_trials ?? []) titles.set(trial.run_id, `On the Pareto front of ${name}`);
    }
    return titles;
}

/// The state as the page names it: a study that came to its end without one good trial is not just "completed", and one on
/// which nobody works is not "running".
export function shownState(study: Study): string {
    const { complete, pruned, failed, running } = study.counts ?? {};
    if (study.status === "deleted") return "deleted";
    if (study.state === "running") return running && study.status === "waiting" ? "running" : (study.status ?? "running");
    return study.state === "completed" && failed && !complete && !pruned ? "all failed" : study.state;
}

/// Latest activity first, as the experiments: that of the study's experiment; of two studies there, the newer one.
export function byActivity(studies: readonly Study[], lastActivity: ReadonlyMap<string, number>): Study[] {
    const at = (study: Study) => Math.max(study.created_ms, lastActivity.get(study.experiment_id) ?? 0);
    return [...studies].sort((a, b) => at(b) - at(a) || b.created_ms - a.created_ms);
}

/// Nothing more will come.
export const isOver = ({ state }: Pick<Study, "state">): boolean => state === "completed" || state === "stopped";

/// Time from the first start to `now`, or to the last end once nothing runs. NaN before the first start.
export function elapsed(study: Pick<Study, "state" | "status">, trials: readonly Trial[], now: number): number {
    const first = trials.reduce((least, trial) => (trial.start > 0 ? Math.min(least, trial.start) : least), Infinity);
    if (first === Infinity) return NaN;
    const isAlone = study.status === "deleted" || study.status === "interrupted";
    const isRunning = !isAlone && (study.state === "running" || trials.some((trial) => trial.state === "running"));
    const last = isRunning ? now : trials.reduce((most, trial) => Math.max(most, trial.end), first);
    return last - first;
}

/// Trials that have ended and count, as the budget counts them.
export function endedCount({ excused }: Pick<Study, "excused">, counts: Study["counts"]): number {
    const of = (state: TrialState) => counts[state] ?? 0;
    return of("complete") + of("pruned") + of("failed") + of("cancelled") - (excused ?? 0);
}

export function countStates(trials: readonly Trial[]): Record<TrialState, number> {
    const counts = { queued: 0, running: 0, complete: 0, pruned: 0, failed: 0, cancelled: 0 };
    for (const trial of trials) ++counts[trial.state];
    return counts;
}

/// The value below (above) which the best `percent` of the complete trials lie; NaN without any.
export function topThreshold(trials: readonly Trial[], goal: "min" | "max", percent: number): number {
    const values = trials.filter((t) => t.state === "complete" && Number.isFinite(t.value)).map((t) => t.value);
    if (values.length === 0) return NaN;
    values.sort((a, b) => (goal === "min" ? a - b : b - a));
    return values[Math.max(0, Math.ceil((values.length * percent) / 100) - 1)]!;
}

/// Names of parameters in the order of the space, then those that only trials have. Constants are left out.
export function searchedParams(study: Study, trials: readonly Trial[]): string[] {
    const declared = study.space_order ?? Object.keys(study.space ?? {});
    const names = declared.filter((name) => study.space[name]?.const === undefined);
    for (const trial of trials)
        for (const name of Object.keys(trial.params))
            if (!names.includes(name) && study.space?.[name]?.const === undefined) names.push(name);
    return names;
}
