// "/": all studies and experiments.
import { useMemo, useState } from "preact/hooks";
import { ago, count, number } from "../data/format.ts";
import { useLive, type Listener } from "../data/live/live.ts";
import { viewState } from "../data/page/router.ts";
import { fromWire, getJson, ApiError, tuneApi, type ExperimentRow } from "../data/wire.ts";
import { byActivity, endedCount, kTrialStates, shownState, withStudy, type Study } from "../data/study/study.ts";
import { experimentPath, studyPath } from "../data/page/url.ts";
import { nowMs } from "../parts/clock.ts";
import { Empty, Fault, Loading, State } from "../parts/feedback.tsx";
import { TextFilter } from "../parts/fields.tsx";
import { usePlace } from "../parts/shell.tsx";
import { Name } from "../parts/value.tsx";

const view = viewState({ q: "" });
const kReread_ms = 500;

interface Lists {
    experiments: ExperimentRow[];
    studies: Study[];
}

async function readStudies(): Promise<Study[]> {
    try {
        return (await getJson<{ studies?: Study[] }>(`${tuneApi}/studies`)).studies ?? [];
    } catch (error) {
        // A tracking server without a tuner has no such route.
        if (error instanceof ApiError && error.status === 404) return [];
        throw error;
    }
}

function useLists(): { lists: Lists | undefined; error: unknown; read: () => void } {
    const [lists, setLists] = useState<Lists>();
    const [error, setError] = useState<unknown>();
    const work = useMemo(() => {
        let timer: ReturnType<typeof setTimeout> | undefined;
        const read = async () => {
            try {
                const [experiments, studies] = await Promise.all([
                    getJson<{ experiments: ExperimentRow[] }>("/api/ui/experiments"),
                    readStudies(),
                ]);
                setLists({ experiments: experiments.experiments, studies });
                setError(undefined);
            } catch (fault) {
                setError(fault);
            }
        };
        const soon = () => {
            timer ??= setTimeout(() => {
                timer = undefined;
                void read();
            }, kReread_ms);
        };
        return { read, soon };
    }, []);
    const listener: Listener = {
        read: () => void work.read(),
        event: (type, data) => {
            if (type === "activity" || type === "experiment") work.soon();
            if (type !== "study") return;
            const changed = data as Study;
            setLists((old) => old && { ...old, studies: withStudy(old.studies, changed) });
        },
    };
    useLive("home", ["experiments", "studies"], listener);
    return { lists, error, read: () => void work.read() };
}

/// Trials by state, as parts of the budget where there is one.
export function Tally({ study: { budget }, counts }: { study: Study; counts: Study["counts"] }) {
    const total = Math.max(budget?.trials ?? 0, kTrialStates.reduce((sum, state) => sum + (counts[state] ?? 0), 0));
    const parts = kTrialStates.filter((state) => counts[state]).map((state) => `${counts[state]} ${state}`);
    const text = (parts.join(", ") || "no trials") + (budget?.trials ? ` of ${budget.trials}` : "");
    return (
        <div class="tally" role="img" aria-label={text} title={text}>
            {kTrialStates.map((state) => (counts[state] ? <i key={state} style={{ width: `${(100 * counts[state]!) / total}%`, background: `var(--${state})` }} /> : null))}
        </div>
    );
}

function StudyRows({ studies, names }: { studies: Study[]; names: Map<string, string> }) {
    return (
        <div class="scroll">
            <table class="plain lists">
                <thead>
                    <tr>
                        <th scope="col">Study</th>
                        <th scope="col">State</th>
                        <th scope="col" class="phone-hidden" style={{ width: "22%" }}>Trials</th>
                        <th scope="col" class="right">Done</th>
                        <th scope="col" class="right phone-hidden">Running</th>
                        <th scope="col" class="phone-hidden">Metric</th>
                        <th scope="col" class="right">Best</th>
                        <th scope="col" class="phone-hidden">Experiment</th>
                        <th scope="col" class="right phone-hidden">Created</th>
                    </tr>
                </thead>
                <tbody>
                    {studies.map((study) => {
                        const counts = study.counts ?? {};
                        const done = endedCount(study, counts);
                        return (
                            <tr key={study.name}>
                                <td><a href={studyPath(study.name)}><b><Name text={study.name} /></b></a></td>
                                <td><State name={shownState(study)} /></td>
                                <td class="phone-hidden"><Tally study={study} counts={counts} /></td>
                                <td class="right">
                                    {done}
                                    {study.budget?.trials ? <span class="faint"> / {study.budget.trials}</span> : null}
                                </td>
                                <td class="right phone-hidden">{counts.running || <span class="faint">–</span>}</td>
                                <td class="phone-hidden">
                                    {study.metric.name} <span class="faint">{study.metric.goal}</span>
                                </td>
                                <td class="right"><b>{study.best ? number(fromWire(study.best.value)) : study.best_trials?.length ? `front of ${study.best_trials.length}` : "–"}</b></td>
                                <td class="phone-hidden"><a href={experimentPath(study.experiment_id)}>{names.get(study.experiment_id) ?? study.experiment_id}</a></td>
                                <td class="right muted phone-hidden">{ago(study.created_ms, nowMs.value)}</td>
                            </tr>
                        );
                    })}
                </tbody>
            </table>
        </div>
    );
}

function ExperimentRows({ rows, best }: { rows: ExperimentRow[]; best: Map<string, Study> }) {
    return (
        <div class="scroll">
            <table class="plain lists">
                <thead>
                    <tr>
                        <th scope="col">Experiment</th>
                        <th scope="col" class="right">Runs</th>
                        <th scope="col" class="phone-hidden">Running now</th>
                        <th scope="col">Best</th>
                        <th scope="col" class="right">Last activity</th>
                    </tr>
                </thead>
                <tbody>
                    {rows.map((row) => (
                        <tr key={row.experiment_id}>
                            <td><a href={experimentPath(row.experiment_id)}><b><Name text={row.name} /></b></a></td>
                            <td class="right">{row.runs.toLocaleString("en-US")}</td>
                            <td class="phone-hidden">{row.running > 0 ? <span class="state running"><i />{row.running}</span> : <span class="faint">–</span>}</td>
                            <td class="num"><Best study={best.get(row.experiment_id)} /></td>
                            <td class="right muted" title={new Date(row.last_activity_ms).toString()}>{ago(row.last_activity_ms, nowMs.value)}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}

function Best({ study }: { study: Study | undefined }) {
    if (!study) return <span class="faint">–</span>;
    return <><span class="phone-hidden">{study.metric.name} </span>{number(fromWire(study.best!.value))}</>;
}

/// Of each experiment the first study that has a best value.
function bestByExperiment(studies: readonly Study[]): Map<string, Study> {
    return new Map(studies.filter((study) => study.best).reverse().map((study) => [study.experiment_id, study]));
}

const kFirstStudy = `tune run -n 20 -m loss:min lr=1e-5..1e-1:log -- python train.py {args}`;
const kFirstRun = `export MLFLOW_TRACKING_URI=${location.origin}
python train.py          # any script that logs with mlflow`;

export function HomePage() {
    usePlace();
    const { lists, error, read } = useLists();
    const { q } = view.current.value;
    const matches = (text: string) => text.toLowerCase().includes(q.toLowerCase());
    const names = new Map(lists?.experiments.map((row) => [row.experiment_id, row.name]));
    const activity = new Map(lists?.experiments.map((row) => [row.experiment_id, row.last_activity_ms]));
    const studies = byActivity(lists?.studies ?? [], activity).filter((study) => matches(study.name) || matches(names.get(study.experiment_id) ?? ""));
    const experiments = lists?.experiments.filter((row) => matches(row.name)) ?? [];
    const isEmpty = lists && lists.studies.length === 0 && lists.experiments.every((row) => row.runs === 0);
    return (
        <>
            <div class="head">
                <div class="grow">
                    <h1>Experiments and studies</h1>
                    {lists && <p class="muted">{count(lists.studies.length, "study", "studies")}, {count(lists.experiments.length, "experiment")}</p>}
                </div>
                <TextFilter value={q} onInput={(text) => view.set({ q: text })} label="Filter by name" placeholder="Filter by name" isMain />
            </div>
            {error !== undefined && <Fault error={error} retry={read} />}
            {!lists && error === undefined && <Loading />}
            {isEmpty && (
                <section class="card" aria-label="Getting started">
                    <Empty title="Nothing here yet" command={`${kFirstStudy}\n\n${kFirstRun}`}>
                        Start a study, or point any MLflow script at this server. Its runs appear here as they are logged.
                    </Empty>
                </section>
            )}
            {lists && lists.studies.length > 0 && (
                <section class="card" aria-labelledby="studies">
                    <header><h2 id="studies">Studies <small>{studies.length < lists.studies.length ? `${studies.length} of ${lists.studies.length}` : ""}</small></h2></header>
                    {studies.length > 0 ? <StudyRows studies={studies} names={names} /> : <Empty title={`No study matches “${q}”`} />}
                </section>
            )}
            {lists && !isEmpty && (
                <section class="card" aria-labelledby="experiments">
                    <header><h2 id="experiments">Experiments <small>{experiments.length < lists.experiments.length ? `${experiments.length} of ${lists.experiments.length}` : ""}</small></h2></header>
                    {experiments.length > 0 ? <ExperimentRows rows={experiments} best={bestByExperiment(lists.studies)} /> : <Empty title={`No experiment matches “${q}”`} />}
                </section>
            )}
        </>
    );
}
