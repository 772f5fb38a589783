// "/s/<name>": a study. One filter of states and one set of brushes drive every picture and the table.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Mark } from "../charts/canvas.tsx";
import { History } from "../charts/history.tsx";
import { Intermediate } from "../charts/intermediate.tsx";
import { brushText, Parallel } from "../charts/parallel.tsx";
import { Pareto } from "../charts/pareto.tsx";
import { base } from "../data/base.ts";
import { brushed, fitScale, paramAxis, readBrush, writeBrush, type Axis, type Brush } from "../data/study/axes.ts";
import { ImportanceStore, kImportanceTrialsMin, type Importance } from "../data/study/importance_store.ts";
import { useLive } from "../data/live/live.ts";
import { frontOf, objectiveOf, promote, withObjective } from "../data/study/pareto.ts";
import { navigate, viewState } from "../data/page/router.ts";
import { bestTrial, countStates, isOver, kTrialStates, searchedParams, shownValue, topThreshold, isBetter, type Study, type StudyMetric, type Trial } from "../data/study/study.ts";
import { StudyStore } from "../data/study/study_store.ts";
import { homePath, runPath } from "../data/page/url.ts";
import { tuneApi } from "../data/wire.ts";
import { Empty, Fault, isMissing, Loading } from "../parts/feedback.tsx";
import { Select, Toggle } from "../parts/fields.tsx";
import { usePlace } from "../parts/shell.tsx";
import { StudyHead } from "./study_head.tsx";
import { TrialsTable } from "./trials_table.tsx";

const view = viewState({
    hide: [] as readonly string[],
    b: [] as readonly string[],
    log: false as boolean,
    top: 100,
    // Names of objectives, where there are several: the one of the other pictures, and those across and up the front's.
    of: "",
    x: "",
    y: "",
    sort: "-number",
    q: "",
});

/// More axes cannot be told apart; the most important ones are shown.
const kAxesMax = 16;

/// Where `name` stands among the objectives, else `fallback`.
function indexOf(metrics: readonly StudyMetric[], name: string, fallback: number): number {
    const at = metrics.findIndex((metric) => metric.name === name);
    return at < 0 ? fallback : at;
}

/// Parameters, then objectives; the first of `metrics` is the last axis.
function makeAxes(study: Study, metrics: readonly StudyMetric[], trials: readonly Trial[], isLog: boolean): Axis[] {
    const axes = searchedParams(study, trials).map((name) => paramAxis(name, study.space?.[name], trials));
    for (const k of [...metrics.keys()].slice(1).concat(0)) {
        const get = (trial: Trial) => {
            const value = objectiveOf(trial, k);
            return Number.isFinite(value) ? value : undefined;
        };
        axes.push({ name: metrics[k]!.name, scale: fitScale(trials.map((trial) => objectiveOf(trial, k)), isLog, 0.02), isObjective: true, get });
    }
    return axes;
}

/// What the pictures of one objective show: the first of `metrics` and of the trials' values.
function useShown(study: Study, metrics: readonly StudyMetric[], all: readonly Trial[], ranking: readonly Importance[]) {
    const { hide, b, log, top } = view.current.value;
    const { goal } = metrics[0]!;
    const trials = useMemo(() => all.filter((trial) => !hide.includes(trial.state)), [all, hide.join()]);
    const axes = useMemo(() => makeAxes(study, metrics, trials, log), [study.space, metrics, trials, log]);
    const brushes = useMemo(() => b.map(readBrush).filter((brush) => brush !== undefined), [b.join()]);
    const active = useMemo(() => {
        let kept = brushed(trials, axes, brushes);
        const limit = top < 100 ? topThreshold(trials, goal, top) : NaN;
        if (!Number.isNaN(limit))
            kept = kept.filter((trial) => trial.state === "complete" && !isBetter(limit, trial.value, goal));
        return new Set(kept.map((trial) => trial.number));
    }, [trials, axes, brushes, top, goal]);
    const drawnAxes = useMemo(() => {
        if (axes.length <= kAxesMax) return axes;
        const most = kAxesMax - metrics.length;
        const first = new Set(ranking.slice(0, most).map((entry) => entry.name));
        return axes.filter((axis, i) => axis.isObjective || (first.size > 0 ? first.has(axis.name) : i < most));
    }, [axes, ranking]);
    return { trials, axes: drawnAxes, brushes, active };
}

/// The importances of parameters for `metric`, which the server computes anew whenever trials have ended.
function useRanking(study: Study, metric: string, all: readonly Trial[]): readonly Importance[] {
    const store = useMemo(() => new ImportanceStore(study.name), [study.name]);
    const finished = useMemo(() => all.filter((trial) => trial.state === "complete" && Number.isFinite(trial.value)).length, [all]);
    const space = useMemo(() => JSON.stringify(study.space), [study.space]);
    useEffect(() => store.ask(metric, finished, space), [store, metric, finished, space]);
    useEffect(() => () => store.close(), [store]);
    return store.ranking.value;
}

function StateFilter({ trials }: { trials: readonly Trial[] }) {
    const { hide } = view.current.value;
    const counts = countStates(trials);
    return (
        <div class="toolbar" role="group" aria-label="Trials shown, by state">
            {kTrialStates.filter((state) => counts[state] > 0).map((state) => {
                const isShown = !hide.includes(state);
                return (
                    <button
                        key={state}
                        class="button small"
                        type="button"
                        aria-pressed={isShown}
                        data-state={state}
                        onClick={() => view.set({ hide: isShown ? [...hide, state] : hide.filter((other) => other !== state) }, true)}
                    >
                        <Mark state={state} /> {state} <b class="num">{counts[state]}</b>
                    </button>
                );
            })}
        </div>
    );
}

function Importances({ ranking, finished, isFinal }: { ranking: readonly Importance[]; finished: number; isFinal: boolean }) {
    if (ranking.length === 0)
        return (
            <Empty title={isFinal ? "Too few trials" : "Not enough trials yet"}>
                Importance needs {kImportanceTrialsMin} complete trials; {isFinal ? `this study has ${finished}.` : `there ${finished === 1 ? "is" : "are"} ${finished} so far.`}
            </Empty>
        );
    return (
        <dl class="bars">
            {ranking.slice(0, 10).map(({ name, share }) => [
                <dt key={`${name}-name`} title={name}>{name}</dt>,
                <dd key={`${name}-bar`} class="track"><i style={{ width: `${share * 100}%` }} /></dd>,
                <dd key={`${name}-share`} class="num">{Math.round(share * 100)}%</dd>,
            ])}
        </dl>
    );
}

function BrushChips({ brushes, axes }: { brushes: Brush[]; axes: readonly Axis[] }) {
    const set = (next: Brush[]) => view.set({ b: next.map(writeBrush) });
    return (
        <div class="chips">
            {brushes.map((brush) => (
                <button key={brush.axis} class="button small" type="button" aria-label={`Remove brush ${brushText(brush, axes)}`} onClick={() => set(brushes.filter((other) => other !== brush))}>
                    {brushText(brush, axes)} ×
                </button>
            ))}
        </div>
    );
}

function Legend({ states }: { states: readonly string[] }) {
    return (
        <div class="legend">
            {states.map((state) => <span key={state}><Mark state={state} /> {state === "best" ? "best so far" : state}</span>)}
        </div>
    );
}

interface ChartProps {
    trials: readonly Trial[];
    active: ReadonlySet<number>;
    isLog: boolean;
    hovered: number | undefined;
    onHover: (trial: number | undefined) => void;
    onOpen: (trial: Trial) => void;
}

function FrontCard({ metrics, front, ...shared }: ChartProps & { metrics: readonly StudyMetric[]; front: readonly Trial[] }) {
    const { x, y } = view.current.value;
    const across = indexOf(metrics, x, 0);
    const up = indexOf(metrics, y, across === 1 ? 0 : 1);
    const numbers = useMemo(() => new Set(front.map((trial) => trial.number)), [front]);
    const { trials } = shared;
    const names = metrics.map(({ name }) => [name, name] as const);
    const kinds = ["front", "complete", ...(trials.some((trial) => trial.violation > 0) ? ["infeasible"] : []), ...(trials.some((trial) => trial.state === "running") ? ["running"] : [])];
    return (
        <section class="card span-12" aria-labelledby="front">
            <header>
                <h2 id="front">Pareto front <small>{metrics.length > 2 ? `over all ${metrics.length} objectives; the line is the front of the two shown` : "trials that no other trial beats on both objectives"}</small></h2>
                <span class="grow" />
                {metrics.length > 2 && (
                    <>
                        <Select label="across" value={metrics[across]!.name} options={names} onChange={(name) => view.set({ x: name, ...(name === metrics[up]!.name && { y: metrics[across]!.name }) }, true)} />
                        <Select label="up" value={metrics[up]!.name} options={names} onChange={(name) => view.set({ y: name, ...(name === metrics[across]!.name && { x: metrics[up]!.name }) }, true)} />
                    </>
                )}
                <Legend states={kinds} />
            </header>
            <div class="body">
                <Pareto {...shared} metrics={metrics} front={numbers} across={across} up={up} height={380} />
            </div>
        </section>
    );
}

/// Why there is nothing to draw: the reason of the last trial that failed is mostly that of all.
function NoValues({ trials, metric, isFinal }: { trials: readonly Trial[]; metric: string; isFinal: boolean }) {
    const failed = trials.filter((trial) => trial.state === "failed").at(-1);
    if (!failed && isFinal) return <Empty title="No values">No trial has reported {metric}.</Empty>;
    if (!failed) return <Empty title="No values yet">Trials appear here as soon as they report {metric}.</Empty>;
    return (
        <Empty title={isFinal ? "No values" : "No values yet"} command={failed.reason || undefined}>
            Trial {failed.number} failed. {failed.runId && <a href={`${runPath(failed.runId)}?tab=logs`}>Show its log</a>}
        </Empty>
    );
}

function Pictures({ study, whole, front }: { study: Study; whole: readonly Trial[]; front: readonly Trial[] | undefined }) {
    const { log, top, of, sort, q } = view.current.value;
    const objectives = study.metrics ?? [study.metric];
    const chosen = indexOf(objectives, of, 0);
    const key = JSON.stringify(objectives);
    const metrics = useMemo(() => promote(objectives, chosen), [key, chosen]);
    const all = useMemo(() => withObjective(whole, chosen), [whole, chosen]);
    const ranking = useRanking(study, metrics[0]!.name, all);
    const { trials, axes, brushes, active } = useShown(study, metrics, all, ranking);
    const shownWhole = useMemo(() => whole.filter((trial) => !view.current.value.hide.includes(trial.state)), [whole, trials]);
    const [hovered, setHovered] = useState<number>();
    const open = (trial: Trial) => navigate(runPath(trial.runId));
    const { goal, name: metric } = metrics[0]!;
    const best = useMemo(() => (front ? undefined : bestTrial(all, goal)), [all, goal, front]);
    const states = kTrialStates.filter((state) => state !== "queued" && trials.some((trial) => trial.state === state));
    const hasValues = all.some((trial) => Number.isFinite(shownValue(trial)));
    const hasCurves = trials.some((trial) => trial.steps.length > 1);
    const linked = { active, isLog: log, hovered, onHover: setHovered, onOpen: open };
    const shared = { ...linked, trials, goal, metric };
    return (
        <>
            <div class="toolbar">
                <StateFilter trials={whole} />
                <span class="grow" />
                {front && <Select label="objective" value={metric} options={objectives.map(({ name }) => [name, name] as const)} onChange={(name) => view.set({ of: name === objectives[0]!.name ? "" : name }, true)} />}
                <Toggle on={top < 100} onChange={(on) => view.set({ top: on ? 10 : 100 }, true)} title={`Show only the best 10% of complete trials${front ? ` by ${metric}` : ""}`}>top 10%</Toggle>
                <Toggle on={log} onChange={(on) => view.set({ log: on }, true)} title="Log scale for the objective in every chart">log {front ? "objectives" : metric}</Toggle>
            </div>
            <div class="columns">
                {front && hasValues && <FrontCard {...linked} trials={shownWhole} metrics={objectives} front={front} />}
                <section class="card span-8" aria-labelledby="history">
                    <header><h2 id="history">History {front && <small>{metric}</small>}{trials.some((trial) => trial.origin) && <small>lines join each trial to those that continued it; the bold one leads to the best</small>}</h2><span class="grow" /><Legend states={["best", ...states]} /></header>
                    <div class="body">{hasValues ? <History {...shared} height={300} /> : <NoValues trials={all} metric={metric} isFinal={isOver(study)} />}</div>
                </section>
                <section class="card span-4" aria-labelledby="importance">
                    <header><h2 id="importance">Parameter importance <small>for {front ? metric : "reaching the top 10%"}</small></h2></header>
                    <div class="body"><Importances ranking={ranking} finished={all.filter((trial) => trial.state === "complete").length} isFinal={isOver(study)} /></div>
                </section>
                {hasValues && <section class="card span-12" aria-labelledby="parallel">
                    <header>
                        <h2 id="parallel">Parallel coordinates <small>{brushes.length > 0 || top < 100 ? `${active.size} of ${trials.length} trials` : "drag along an axis to select"}</small></h2>
                        <span class="grow" />
                        <BrushChips brushes={brushes} axes={axes} />
                    </header>
                    <div class="body wide" tabIndex={0} role="group" aria-label="Parallel coordinates" style={{ "--width": `${axes.length * 76}px` }}>
                        <Parallel {...shared} axes={axes} brushes={brushes} height={330} onBrush={(next) => view.set({ b: next.map(writeBrush) })} />
                    </div>
                </section>}
                {chosen === 0 && hasValues && (
                    <section class="card span-12" aria-labelledby="intermediate">
                        <header><h2 id="intermediate">Reported values <small>{metric} by step; pruned trials end in a diamond</small></h2><span class="grow" /><Legend states={["best", ...states]} /></header>
                        <div class="body">
                            {hasCurves ? (
                                <Intermediate {...shared} best={best?.number} height={300} />
                            ) : (
                                <Empty title={isOver(study) ? "No curves" : "No curves yet"} command={`mlflow.log_metric("${metric}", value, step=epoch)`}>
                                    Trials that report {metric} at several steps show their curves here, and can be pruned.
                                </Empty>
                            )}
                        </div>
                    </section>
                )}
            </div>
            <TrialsTable
                study={study}
                trials={shownWhole.filter((trial) => active.has(trial.number))}
                stars={front ?? (best ? [best] : [])}
                sort={sort}
                find={q}
                onSort={(sort) => view.set({ sort }, true)}
                onFind={(q) => view.set({ q })}
                onOpen={open}
            />
        </>
    );
}

export function StudyPage({ name }: { name: string }) {
    const store = useMemo(() => new StudyStore(name), [name]);
    useLive(name, [`study:${name}`], { read: () => void store.read(), event: (type, data) => store.apply(type, data) });
    useEffect(() => () => store.close(), [store]);
    usePlace({ text: "studies", href: homePath() }, { text: name });
    const study = store.study.value;
    const trials = store.trials.value;
    const metrics = study?.metrics;
    const front = useMemo(() => metrics && frontOf(trials, metrics).sort((a, b) => a.number - b.number), [trials, JSON.stringify(metrics)]);
    if (!study) {
        if (isMissing(store.error.value)) return <Empty isPage title={`There is no study “${name}”`}><a href={homePath()}>All studies</a></Empty>;
        return store.error.value ? <Fault error={store.error.value} retry={() => void store.read()} /> : <Loading />;
    }
    return (
        <>
            <StudyHead study={study} trials={trials} front={front} store={store} />
            {store.error.value !== undefined && <Fault error={store.error.value} retry={() => void store.read()} />}
            {trials.length === 0 ? (
                <section class="card" aria-label="No trials">
                    {isOver(study) || study.status === "deleted" ? (
                        <Empty title="No trials">The study has ended without one.</Empty>
                    ) : study.command?.length ? (
                        <Empty title="No trials yet" command={`tune agent --server ${location.origin}${base}`}>
                            The study is waiting for a worker. Start one on any machine:
                        </Empty>
                    ) : (
                        <Empty title="No trials yet" command={`curl ${location.origin}${base}${tuneApi}/studies/${encodeURIComponent(name)}/ask -H 'Content-Type: application/json' -H "Authorization: Bearer $TUNE_TOKEN" -d '{"count": 1}'`}>
                            The study has no command that an agent could run. Ask for trials with the Python client, or with:
                        </Empty>
                    )}
                </section>
            ) : (
                <Pictures study={study} whole={trials} front={front} />
            )}
        </>
    );
}

