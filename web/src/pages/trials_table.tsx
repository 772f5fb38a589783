// The trials as a grid, linked to their runs.
import { useMemo } from "preact/hooks";
import type { ColumnSpec } from "../data/runs/columns.ts";
import { download, writeCsv } from "../data/files/csv.ts";
import { date, duration, number, paramText } from "../data/format.ts";
import { sortRows } from "../data/runs/sorting.ts";
import { searchedParams, shownValue, type Study, type Trial } from "../data/study/study.ts";
import { runPath } from "../data/page/url.ts";
import { State } from "../parts/feedback.tsx";
import { TextFilter } from "../parts/fields.tsx";
import { Grid, type GridColumn } from "../parts/grid.tsx";
import { DownloadIcon } from "../parts/icons.tsx";

interface Props {
    study: Study;
    trials: readonly Trial[];
    /// The best trial, or the front.
    stars: readonly Trial[];
    sort: string;
    find: string;
    onSort: (sort: string) => void;
    onFind: (text: string) => void;
    onOpen: (trial: Trial) => void;
}

const orMissing = (value: number) => (value > 0 ? value : undefined);

/// Of population based training.
function lineageSpecs(trials: readonly Trial[]): ColumnSpec[] {
    return [
        { id: "parent", title: "Parent", kind: "number", get: (i) => trials[i]!.origin?.parent },
        { id: "member", title: "Member", kind: "number", get: (i) => trials[i]!.origin?.member },
        { id: "trained", title: "Steps", kind: "text", get: (i) => trials[i]!.origin && `${trials[i]!.origin!.from}–${trials[i]!.origin!.to}` },
    ];
}

/// Columns over `trials`, as the sorting understands them.
function specs(study: Study, trials: readonly Trial[]): ColumnSpec[] {
    const param = (name: string): ColumnSpec => {
        const isNumber = trials.every((trial) => trial.params[name] === undefined || typeof trial.params[name] === "number");
        return {
            id: `params.${name}`,
            title: name,
            kind: isNumber ? "number" : "text",
            get: (i) => {
                const value = trials[i]!.params[name];
                return value === undefined || value === null ? undefined : isNumber ? (value as number) : paramText(value);
            },
        };
    };
    return [
        { id: "number", title: "Trial", kind: "number", get: (i) => trials[i]!.number },
        { id: "state", title: "State", kind: "status", get: (i) => trials[i]!.state },
        { id: "value", title: study.metric.name, kind: "number", get: (i) => (Number.isNaN(shownValue(trials[i]!)) ? undefined : shownValue(trials[i]!)) },
        ...(study.metrics ?? []).slice(1).map((metric, k): ColumnSpec => ({
            id: `objective.${metric.name}`, title: metric.name, kind: "number", get: (i) => trials[i]!.moreValues[k],
        })),
        ...(study.constraints ? [{ id: "violation", title: "Violation", kind: "number", get: (i) => (trials[i]!.state === "complete" ? trials[i]!.violation : undefined) } as ColumnSpec] : []),
        ...(trials.some((trial) => trial.origin) ? lineageSpecs(trials) : []),
        { id: "step", title: "Last step", kind: "number", get: (i) => trials[i]!.steps.at(-1) },
        { id: "duration", title: "Duration", kind: "duration", get: (i) => (trials[i]!.end > 0 ? orMissing(trials[i]!.ran || trials[i]!.end - trials[i]!.start) : undefined) },
        ...searchedParams(study, trials).map(param),
        { id: "attempt", title: "Attempt", kind: "number", get: (i) => orMissing(trials[i]!.attempt) },
        { id: "worker", title: "Worker", kind: "text", get: (i) => trials[i]!.worker || undefined },
        { id: "start", title: "Started", kind: "time", get: (i) => orMissing(trials[i]!.start) },
        { id: "reason", title: "Reason", kind: "text", get: (i) => trials[i]!.reason || undefined },
    ];
}

const kWidths: Record<string, number> = { number: 88, state: 108, value: 112, parent: 92, member: 100, trained: 96, step: 104, duration: 104, attempt: 100, worker: 130, start: 158, reason: 420 };

function Cell({ column, row }: { column: ColumnSpec; row: number }) {
    const value = column.get(row);
    if (value === undefined) return <span class="none">–</span>;
    switch (column.kind) {
        case "status": return <State name={String(value)} />;
        case "time": return <span class="muted num">{date(value as number)}</span>;
        case "duration": return <span class="muted">{duration(value as number)}</span>;
        case "number": return <span title={String(value)}>{number(value as number)}</span>;
        case "text": return <span class="clip" title={String(value)}>{value}</span>;
    }
}

export function TrialsTable(props: Props) {
    const { study, trials } = props;
    const columns = useMemo(() => specs(study, trials), [study, trials]);
    const stars = useMemo(() => new Set(props.stars.map((trial) => trial.number)), [props.stars]);
    const isDescending = props.sort.startsWith("-");
    const sortId = props.sort.replace(/^-/, "");
    const rows = useMemo(() => {
        const words = props.find.toLowerCase().split(/\s+/).filter((word) => word !== "");
        const all = trials.map((_, i) => i).filter((i) => {
            if (words.length === 0) return true;
            const text = columns.map((column) => String(column.get(i) ?? "")).join("\n").toLowerCase();
            return words.every((word) => text.includes(word));
        });
        const by = columns.find((column) => column.id === sortId);
        return by ? sortRows(all, by, isDescending) : all;
    }, [trials, columns, props.sort, props.find]);
    const gridColumns = columns.map((column): GridColumn => ({
        id: column.id,
        title: column.title,
        kind: column.id.split(".")[0],
        width_px: Math.max(kWidths[column.id] ?? 100, Math.min(220, column.title.length * 8 + 56)),
        isRight: column.kind === "number" || column.kind === "duration",
        isPinned: column.id === "number",
        isSortable: true,
        render: (i) => {
            const trial = trials[rows[i]!]!;
            if (column.id !== "number") return <Cell column={column} row={rows[i]!} />;
            return (
                <>
                    {stars.has(trial.number) && <span class="star" title={study.metrics ? "On the Pareto front" : "The best trial"}>★</span>}
                    {trial.runId ? <a tabIndex={-1} href={runPath(trial.runId)}>{trial.number}</a> : trial.number}
                </>
            );
        },
    }));
    const exportCsv = () =>
        download(`${study.name.replace(/[^\w.-]+/g, "_")}.csv`, writeCsv([["run_id", ...columns.map((c) => c.id)], ...rows.map((row) => [trials[row]!.runId, ...columns.map((c) => c.get(row))])]));
    return (
        <section class="card frame" aria-labelledby="trials" style={{ height: `${Math.min(560, 34 + 52 + Math.max(4, rows.length) * 30 + 14)}px` }}>
            <header>
                <h2 id="trials">Trials <small>{rows.length}</small></h2>
                <span class="grow" />
                <div class="find">
                    <TextFilter value={props.find} onInput={props.onFind} label="Find trials" placeholder="Find in trials" isMain />
                </div>
                <button class="button" type="button" aria-label="Download the trials as CSV" title="Download the trials as CSV" onClick={exportCsv}><DownloadIcon /></button>
            </header>
            <Grid
                label="Trials"
                columns={gridColumns}
                rowCount={rows.length}
                rowsKey={`${props.sort}|${props.find}`}
                sort={{ id: sortId, isDescending }}
                onSort={(id) => props.onSort(props.sort === `-${id}` ? id : props.sort === id ? `-${id}` : id === "value" && study.metric.goal === "min" ? id : `-${id}`)}
                onOpen={(i) => {
                    const trial = trials[rows[i]!]!;
                    if (trial.runId) props.onOpen(trial);
                }}
            />
        </section>
    );
}
