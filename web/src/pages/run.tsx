// "/r/<id>": one run: what went in, what came out, what it says right now.
import { useEffect, useMemo, useState } from "preact/hooks";
import { useFirstCharts } from "../charts/first_charts.tsx";
import { SeriesCard } from "../charts/series_card.tsx";
import { date, duration, number } from "../data/format.ts";
import { useLive } from "../data/live/live.ts";
import { isInternal, leadingMetrics, orderMetrics } from "../data/runs/metric_order.ts";
import { viewState } from "../data/page/router.ts";
import { RunState, type RunView } from "../data/runs/run_page.ts";
import type { XAxis } from "../data/curves/series.ts";
import { SeriesBook } from "../data/curves/series_book.ts";
import { experimentPath, homePath, runPath, studyPath } from "../data/page/url.ts";
import type { Study } from "../data/study/study.ts";
import { getJson, mlflow, tuneApi } from "../data/wire.ts";
import { nowMs } from "../parts/clock.ts";
import { copy, Empty, Fault, isMissing, Loading, State } from "../parts/feedback.tsx";
import { usePlace } from "../parts/shell.tsx";
import { Name, Value } from "../parts/value.tsx";
import { Artifacts } from "./artifacts.tsx";
import { Logs } from "./logs.tsx";
import { ChartBar, matchMetrics } from "./runs_charts.tsx";

const view = viewState({ tab: "charts", m: "", x: "step", smooth: 0, path: "", log: "" });
const kTabs = [
    ["charts", "Charts"],
    ["artifacts", "Artifacts"],
    ["logs", "Logs"],
] as const;

/// `isLate`: on a narrow screen it stands below the charts.
function Rows({ title, entries, empty, isLate }: { title: string; entries: [string, preact.ComponentChildren][]; empty: string; isLate?: boolean }) {
    return (
        <section class={`card ${isLate ? "late" : ""}`} aria-label={title}>
            <header><h2>{title} <small>{entries.length || ""}</small></h2></header>
            {entries.length === 0 ? (
                <p class="body faint">{empty}</p>
            ) : (
                <div class="scroll" tabIndex={0} role="group" aria-label={title}>
                    <table class="plain pairs" role="table">
                        <tbody role="rowgroup">
                            {entries.map(([key, value]) => (
                                <tr key={key} role="row">
                                    <td class="name" role="cell"><span><Name text={key} /></span></td>
                                    <td class="right" role="cell">{typeof value === "string" ? <Value text={value} /> : value}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </div>
            )}
        </section>
    );
}

/// Tags that the page shows elsewhere, or that are for programs.
const kQuietTags = /^(mlflow\.(runName|user|log-model\.history|parentRunId|loggedArtifacts|autologging)|tune\.(state|study|trial|attempt))$/;

/// A run that has ended logs none any more.
function noMetrics(run: RunView): string {
    return run.status === "RUNNING" || run.status === "SCHEDULED" ? "No metrics yet" : "No metrics";
}

function Side({ run, leading }: { run: RunView; leading: readonly string[] }) {
    const sorted = <V,>(map: Map<string, V>) => [...map].sort(([a], [b]) => a.localeCompare(b));
    return (
        <div class="side facts-side">
            <Rows
                title="Metrics"
                entries={orderMetrics(run.metrics.keys(), leading).map((key) => {
                    const { value, step } = run.metrics.get(key)!;
                    return [
                        key,
                        <span title={`${value} at step ${step}`}>
                            <b data-metric-value={key}>{number(value, 5)}</b> {step !== 0 && <span class="faint">@{step}</span>}
                        </span>,
                    ];
                })}
                empty={`${noMetrics(run)}.`}
            />
            <Rows title="Params" entries={sorted(run.params)} empty="This run logged no params." />
            <Rows title="Tags" entries={sorted(run.tags).filter(([key]) => !kQuietTags.test(key))} empty="No tags." isLate />
            {run.datasets.length > 0 && <Rows title="Datasets" entries={run.datasets.map((set) => [set.name, set.digest])} empty="" isLate />}
        </div>
    );
}

function Head({ run }: { run: RunView }) {
    const study = run.tags.get("tune.study");
    const parent = run.tags.get("mlflow.parentRunId");
    const end = run.end ?? (run.status === "RUNNING" ? nowMs.value : undefined);
    return (
        <div class="head">
            <div class="grow">
                <div class="title">
                    <h1>{run.name || run.id}</h1>
                    <State name={run.tags.get("tune.state") ?? run.status} pill />
                    {run.isDeleted && <span class="chip">deleted</span>}
                </div>
                <div class="facts">
                    {study !== undefined && (
                        <span>
                            study <a href={studyPath(study)}>{study}</a>
                            {run.tags.has("tune.trial") && `, trial ${run.tags.get("tune.trial")}`}
                            {Number(run.tags.get("tune.attempt")) > 1 && `, attempt ${run.tags.get("tune.attempt")}`}
                        </span>
                    )}
                    {study === undefined && parent !== undefined && <span>part of <a href={runPath(parent)}>{parent.slice(0, 8)}</a></span>}
                    <span>started {date(run.start)}</span>
                    {end !== undefined && run.start > 0 && <span>{run.end ? "took" : "for"} {duration(end - run.start)}</span>}
                    {run.user && <span>by {run.user}</span>}
                    <button class="button quiet small" type="button" title="Copy the run id" onClick={() => void copy(run.id, "the run id")}>
                        <code>{run.id.slice(0, 12)}…</code>
                    </button>
                </div>
            </div>
        </div>
    );
}

/// Metrics by the part of their name before the first slash, each where its first metric stands.
function sections(metrics: readonly string[]): [string, string[]][] {
    const found = new Map<string, string[]>();
    for (const metric of metrics) {
        const slash = metric.indexOf("/");
        const name = slash > 0 ? metric.slice(0, slash) : isInternal(metric) ? "tune" : "";
        found.set(name, [...(found.get(name) ?? []), metric]);
    }
    return [...found];
}

/// Metrics logged once: a number says what a chart of one point would.
function Numbers({ run, metrics }: { run: RunView; metrics: readonly string[] }) {
    if (metrics.length === 0) return null;
    return (
        <dl class="card numbers">
            {metrics.map((metric) => {
                const { value, step } = run.metrics.get(metric)!;
                return (
                    <div key={metric} data-metric={metric}>
                        <dt title={metric}><Name text={metric.slice(metric.indexOf("/") + 1)} /></dt>
                        <dd title={String(value)}>{number(value, 5)} {step !== 0 && <small>step {step}</small>}</dd>
                    </div>
                );
            })}
        </dl>
    );
}

function Charts({ run, book, leading }: { run: RunView; book: SeriesBook; leading: readonly string[] }) {
    const { m, x, smooth } = view.current.value;
    const metrics = matchMetrics(orderMetrics(run.metrics.keys(), leading), m);
    const [first, more] = useFirstCharts(metrics);
    const runs = [{ id: run.id, label: run.name || run.id.slice(0, 8) }];
    // Scripts that log a metric once mostly leave its step at 0.
    const isSingle = (metric: string) => book.isSingle(run.id, metric, run.metrics.get(metric)!.step === 0);
    if (run.metrics.size === 0)
        return (
            <section class="card" aria-label={noMetrics(run)}>
                <Empty title={noMetrics(run)} command={`mlflow.log_metric("loss", 0.31, step=4)\n# or print a line to stdout:\nprint('tune: {"loss": 0.31, "step": 4}')`}>
                    The first point appears here the moment it is logged.
                </Empty>
            </section>
        );
    return (
        <>
            <ChartBar pattern={m} xAxis={x} smoothing={smooth} onChange={(change) => view.set(change)} />
            {metrics.length === 0 && <Empty title="No metric matches" />}
            {sections(first).map(([name, all]) => (
                <div key={name} class="side">
                    {name && <h2 class="section-title">{name}</h2>}
                    <Numbers run={run} metrics={all.filter(isSingle)} />
                    <div class="chart-grid">
                        {all.filter((metric) => !isSingle(metric)).map((metric) => (
                            <SeriesCard key={metric} metric={metric} book={book} runs={runs} xAxis={x as XAxis} smoothing={smooth} latest={run.metrics.get(metric)?.value} />
                        ))}
                    </div>
                </div>
            ))}
            {more}
        </>
    );
}

function useExperimentName(id: string | undefined): string {
    const [name, setName] = useState("");
    useEffect(() => {
        if (id === undefined) return;
        getJson<{ experiment: { name: string } }>(`${mlflow}/experiments/get?experiment_id=${encodeURIComponent(id)}`).then(
            (answer) => setName(answer.experiment.name),
            () => setName(""), // The link works without the name.
        );
    }, [id]);
    return name || `experiment ${id ?? ""}`;
}

/// The metrics that the study names, once it has been read; empty outside a study.
function useLeading(study: string | undefined): readonly string[] {
    const [leading, setLeading] = useState<readonly string[]>([]);
    useEffect(() => {
        setLeading([]);
        if (study === undefined) return;
        getJson<Study>(`${tuneApi}/studies/${encodeURIComponent(study)}`).then(
            (found) => setLeading(leadingMetrics([found])),
            () => {}, // A study that is gone: the metrics' names decide.
        );
    }, [study]);
    return leading;
}

export function RunPage({ id }: { id: string }) {
    const book = useMemo(() => new SeriesBook(), [id]);
    const state = useMemo(() => new RunState(id, book), [id]);
    book.setRuns([id]);
    useLive(id, [`run:${id}`], { read: () => void state.read(), event: (type, data) => state.apply(type, data) });
    useEffect(() => () => book.close(), [book]);
    const run = state.run.value;
    const experiment = useExperimentName(run?.experimentId);
    const study = run?.tags.get("tune.study");
    const leading = useLeading(study);
    usePlace(
        ...(run ? [{ text: experiment, href: experimentPath(run.experimentId) }] : []),
        ...(study !== undefined ? [{ text: study, href: studyPath(study) }] : []),
        { text: run?.name || id.slice(0, 12) },
    );
    if (!run) {
        if (isMissing(state.error.value)) return <Empty isPage title={`There is no run ${id}`}><a href={homePath()}>All experiments</a></Empty>;
        return state.error.value ? <Fault error={state.error.value} retry={() => void state.read()} /> : <Loading />;
    }
    const { tab, path, log } = view.current.value;
    return (
        <>
            <Head run={run} />
            {state.error.value !== undefined && <Fault error={state.error.value} retry={() => void state.read()} />}
            <div class="run-page">
                <Side run={run} leading={leading} />
                <div class="side">
                    <div class="tabs" role="tablist" aria-label="Parts of the run">
                        {kTabs.map(([name, text]) => (
                            <button key={name} id={`tab-${name}`} type="button" role="tab" aria-selected={tab === name} aria-controls="tab-panel" onClick={() => view.set({ tab: name }, true)}>
                                {text}
                            </button>
                        ))}
                    </div>
                    <div id="tab-panel" class="side" role="tabpanel" aria-labelledby={`tab-${tab}`}>
                        {tab === "artifacts" ? (
                            <Artifacts run={run} state={state} path={path} onPath={(next) => view.set({ path: next })} />
                        ) : tab === "logs" ? (
                            <Logs run={run} state={state} file={log} onFile={(next) => view.set({ log: next })} />
                        ) : (
                            <Charts run={run} book={book} leading={leading} />
                        )}
                    </div>
                </div>
            </div>
        </>
    );
}
