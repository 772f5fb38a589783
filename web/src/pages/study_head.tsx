// The head of a study: how it goes and how good it is.
import { Mark } from "../charts/canvas.tsx";
import { ago, duration, number, paramText } from "../data/format.ts";
import { bestTrial, countStates, elapsed, endedCount, isOver, kTrialStates, searchedParams, shownState, type Study, type Trial } from "../data/study/study.ts";
import type { StudyStore } from "../data/study/study_store.ts";
import { experimentPath, runPath } from "../data/page/url.ts";
import { nowMs } from "../parts/clock.ts";
import { State } from "../parts/feedback.tsx";
import { Tally } from "./home.tsx";
import { StudyControls } from "./study_controls.tsx";

/// How many links stand in the figure; the table has them all.
const kFrontLinksMax = 6;

function BestFigure({ study, best, front }: { study: Study; best: Trial | undefined; front: readonly Trial[] | undefined }) {
    if (!front)
        return (
            <div class="figure">
                <span>best {study.metric.name}</span>
                <strong class="best" data-best>{best ? number(best.value, 5) : "–"}</strong>
                {best ? <a href={runPath(best.runId)}>trial {best.number}</a> : <span>{(study.constraints ? "no trial meets the constraints" : "no trial is complete") + (isOver(study) ? "" : " yet")}</span>}
            </div>
        );
    return (
        <div class="figure">
            <span>best trials (Pareto front)</span>
            <strong class="best" data-best>{front.length}</strong>
            <span class="links">
                {front.slice(0, kFrontLinksMax).map((trial) => (
                    <a key={trial.number} href={runPath(trial.runId)}>{trial.number}</a>
                ))}
                {front.length > kFrontLinksMax && "…"}
            </span>
        </div>
    );
}

/// `front`: the trials that no other one beats, where there are several objectives.
export function StudyHead({ study, trials, front, store }: { study: Study; trials: readonly Trial[]; front: readonly Trial[] | undefined; store: StudyStore }) {
    const best = front ? undefined : bestTrial(trials, study.metric.goal);
    const counts = trials.length > 0 ? countStates(trials) : (study.counts ?? {});
    const ended = endedCount(study, counts);
    const budget = study.budget?.trials;
    return (
        <>
            <div class="head">
                <div class="grow">
                    <div class="title"><h1>{study.name}</h1><State name={shownState({ ...study, counts })} pill /></div>
                    <div class="facts">
                        {(study.metrics ?? [study.metric]).map((metric) => (
                            <span key={metric.name}>{metric.goal === "min" ? "minimize" : "maximize"} <b>{metric.name}</b></span>
                        ))}
                        {study.constraints?.map((bound) => (
                            <span key={bound.name}>
                                {bound.min !== undefined && `${bound.min} ≤ `}<b>{bound.name}</b>{bound.max !== undefined && ` ≤ ${bound.max}`}
                            </span>
                        ))}
                        <a href={experimentPath(study.experiment_id)}>all runs</a>
                        {study.sampler?.type && <span>sampler {study.sampler.type}{study.sampler.seed !== undefined && `, seed ${study.sampler.seed}`}</span>}
                        {study.pruner?.type && study.pruner.type !== "none" && <span>pruner {study.pruner.type}</span>}
                        <span>created {ago(study.created_ms, nowMs.value)}</span>
                    </div>
                    {study.note && <p class="muted">{study.note}</p>}
                    {study.waits_for && <p class="muted">Waits: {study.waits_for}.</p>}
                </div>
                <StudyControls study={study} store={store} />
            </div>
            <section class="card figures" aria-label="Summary">
                <BestFigure study={study} best={best} front={front} />
                <div class="figure">
                    <span>finished trials</span>
                    <strong data-ended>{ended}{budget ? <span class="faint"> / {budget}</span> : null}</strong>
                    <span>{counts.running ? `${counts.running} running` : study.state === "running" ? "none running" : ""}</span>
                    {study.excused ? <span title="They failed before any trial had succeeded">{study.excused} failed ones do not count</span> : null}
                </div>
                <div class="figure">
                    <span>elapsed</span>
                    <strong>{duration(elapsed(study, trials, nowMs.value))}</strong>
                </div>
                <div class="figure grow" style={{ minWidth: "220px", gap: "7px" }}>
                    <span>trials by state</span>
                    <Tally study={study} counts={counts} />
                    <div class="legend">
                        {kTrialStates.filter((state) => counts[state]).map((state) => (
                            <span key={state}><Mark state={state} /> {state} <b data-count={state}>{counts[state]}</b></span>
                        ))}
                    </div>
                </div>
                {best && (
                    <div class="figure" style={{ gap: "6px", maxWidth: "460px" }}>
                        <span>best parameters</span>
                        <div class="chips">
                            {searchedParams(study, [best]).filter((name) => best.params[name] !== undefined).slice(0, 12).map((name) => (
                                <span class="chip" key={name} title={String(best.params[name])}>{name} <b>{paramText(best.params[name])}</b></span>
                            ))}
                        </div>
                    </div>
                )}
            </section>
        </>
    );
}
