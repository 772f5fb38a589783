// "/e/<id>": the runs of an experiment, as a table and as overlaid charts.
import { useEffect, useMemo, useState } from "preact/hooks";
import { allColumnIds, columnSpec, defaultColumnIds, type ColumnSpec, type RunTable } from "../data/runs/columns.ts";
import { download, writeCsv } from "../data/files/csv.ts";
import { applyFilter, FilterError, parseFilter, quickFind, type Clause } from "../data/runs/filter.ts";
import { count } from "../data/format.ts";
import { useLive, type Listener } from "../data/live/live.ts";
import { navigate, viewState } from "../data/page/router.ts";
import { lineStyles } from "../data/curves/colors.ts";
import { leadingMetrics, orderMetrics } from "../data/runs/metric_order.ts";
import { RunStore } from "../data/runs/run_store.ts";
import { groupRows, sortGroups, sortRows, type Aggregate, type Group } from "../data/runs/sorting.ts";
import { bestRuns, withStudy, type Study } from "../data/study/study.ts";
import { homePath, runPath, studyPath } from "../data/page/url.ts";
import { getJson, tuneApi } from "../data/wire.ts";
import { nowMs } from "../parts/clock.ts";
import { Empty, Fault, isMissing, Loading, toast } from "../parts/feedback.tsx";
import { ColumnPicker, Popover, Select, TextFilter } from "../parts/fields.tsx";
import { ChartIcon, ColumnsIcon, DownloadIcon } from "../parts/icons.tsx";
import { usePlace } from "../parts/shell.tsx";
import { RunsCharts } from "./runs_charts.tsx";
import { RunsGrid, type Item } from "./runs_grid.tsx";

const view = viewState({
    f: "",
    q: "",
    sort: "-start",
    cols: [] as readonly string[],
    g: "",
    agg: "mean",
    charts: true as boolean,
    s: [] as readonly string[],
    m: "",
    x: "step",
    smooth: 0,
    view: "active",
});

/// Selections up to this size stand in the address.
const kLinkedSelection = 30;
/// Curves when nothing is selected.
const kRunsDrawn = 10;
/// The server draws this many runs in one answer.
const kRunsDrawnMax = 100;

function readFilter(text: string): { clauses: Clause[]; fault: string } {
    try {
        return { clauses: parseFilter(text), fault: "" };
    } catch (error) {
        if (error instanceof FilterError) return { clauses: [], fault: `${error.message} (column ${error.at + 1})` };
        throw error;
    }
}

/// Rows after filter, find and sort, with the group rows between them.
function arrange(table: RunTable, columns: readonly ColumnSpec[], clauses: readonly Clause[], now: number, open: ReadonlySet<string>): { rows: number[]; items: Item[] } {
    const { q, sort, g, agg, view: life } = view.current.value;
    let rows = table.ids.map((_, row) => row);
    if (life !== "all") rows = rows.filter((row) => table.deleted[row] === (life === "deleted"));
    rows = quickFind(table, applyFilter(table, rows, clauses), q);
    const isDescending = sort.startsWith("-");
    const sortId = sort.replace(/^-/, "");
    const by = columnSpec(table, sortId, now);
    if (by) rows = sortRows(rows, by, isDescending);
    const group = g ? columnSpec(table, g, now) : undefined;
    if (!group) return { rows, items: rows.map((row) => ({ row })) };
    const numeric = columns.filter((column) => column.kind === "number" || column.kind === "duration");
    let groups: Group[] = groupRows(rows, group, numeric);
    if (by && numeric.includes(by)) groups = sortGroups(groups, by.id, agg as Aggregate, isDescending);
    else if (sortId.startsWith("metrics.") || sortId.startsWith("params.")) groups = sortGroups(groups, sortId, agg as Aggregate, isDescending);
    const items = groups.flatMap((one): Item[] => [
        { group: one },
        ...(open.has(one.label) ? one.rows.map((row) => ({ row })) : []),
    ]);
    return { rows, items };
}

function exportTable(table: RunTable, rows: readonly number[], columns: readonly ColumnSpec[]): void {
    const head = ["run_id", "name", ...columns.map((column) => column.id)];
    const body = rows.map((row) => [table.ids[row], table.name[row], ...columns.map((column) => column.get(row))]);
    download(`${table.experiment.name.replace(/[^\w.-]+/g, "_")}.csv`, writeCsv([head, ...body]));
}

function Toolbar({ table, metrics, columnIds, fault, rows, columns }: { table: RunTable; metrics: readonly string[]; columnIds: string[]; fault: string; rows: number[]; columns: ColumnSpec[] }) {
    const state = view.current.value;
    const groupable = ["status", "user", ...[...table.params.keys()].sort().map((key) => `params.${key}`), ...[...table.tags.keys()].sort().map((key) => `tags.${key}`)];
    return (
        <div class="toolbar">
            <TextFilter value={state.f} onInput={(f) => view.set({ f })} label="Filter runs" placeholder="metrics.val_loss < 0.3 AND params.optimizer = 'adamw'" fault={fault} isMain isCode />
            <TextFilter value={state.q} onInput={(q) => view.set({ q })} label="Find text in runs" placeholder="Find in names, params, tags" />
            <Select
                label="Group"
                value={state.g}
                options={[["", "none"] as const, ...groupable.map((id) => [id, id.replace(/^params\./, "").replace(/^tags\./, "tag ")] as const)]}
                onChange={(g) => view.set({ g }, true)}
            />
            {state.g && (
                <Select label="Aggregate" isLabelHidden value={state.agg} options={[["mean", "mean ± sd"], ["min", "min"], ["max", "max"]]} onChange={(agg) => view.set({ agg })} />
            )}
            <Select label="Runs shown" isLabelHidden value={state.view} options={[["active", "active"], ["deleted", "deleted"], ["all", "all runs"]]} onChange={(life) => view.set({ view: life }, true)} />
            <Popover label={<><ColumnsIcon /> Columns</>} title="Choose columns">
                <ColumnPicker
                    all={allColumnIds(table, metrics).filter((id) => id !== "name")}
                    shown={columnIds}
                    onChange={(cols) => view.set({ cols: cols.length > 0 ? cols : ["-"] })}
                    onReset={() => view.set({ cols: [] })}
                />
            </Popover>
            <button class="button" type="button" title="Download the table as CSV" aria-label="Download the table as CSV" onClick={() => exportTable(table, rows, columns)}>
                <DownloadIcon />
            </button>
            <button class="button" type="button" aria-pressed={state.charts} onClick={() => view.set({ charts: !state.charts }, true)}>
                <ChartIcon /> Charts
            </button>
        </div>
    );
}

/// The studies that run in this experiment, and what keeps them up to date.
function useStudies(experimentId: string): [readonly Study[], Listener] {
    const [studies, setStudies] = useState<readonly Study[]>([]);
    const read = () => {
        getJson<{ studies?: Study[] }>(`${tuneApi}/studies`)
            .then((answer) => setStudies((answer.studies ?? []).filter((study) => study.experiment_id === experimentId)))
            .catch(() => setStudies([])); // A tracking server without a tuner: there are no studies to link to.
    };
    const event = (type: string, data: unknown) => {
        if (type === "study" && (data as Study).experiment_id === experimentId) setStudies((old) => withStudy(old, data as Study));
    };
    return [studies, { read, event }];
}

function useSelection(): [ReadonlySet<string>, (next: ReadonlySet<string>) => void] {
    const [selection, setSelection] = useState<ReadonlySet<string>>(() => new Set(view.current.peek().s));
    const select = (next: ReadonlySet<string>) => {
        setSelection(next);
        view.set({ s: next.size <= kLinkedSelection ? [...next] : [] });
    };
    return [selection, select];
}

export function ExperimentPage({ id }: { id: string }) {
    const life = view.current.value.view;
    const store = useMemo(() => new RunStore(id, life === "active" ? "active" : "all"), [id, life === "active"]);
    const [studies, studiesListener] = useStudies(id);
    useLive(`${id}/${life === "active"}`, [`experiment:${id}`, "studies"], {
        read: () => {
            void store.read();
            studiesListener.read();
        },
        event: (type, data) => {
            store.apply(type, data);
            studiesListener.event(type, data);
        },
    });
    useEffect(() => () => store.close(), [store]);
    const table = store.table.value;
    usePlace({ text: table?.experiment.name ?? `Experiment ${id}` });
    if (!table) {
        if (isMissing(store.error.value)) return <Empty isPage title={`There is no experiment ${id}`}><a href={homePath()}>All experiments</a></Empty>;
        return store.error.value ? <Fault error={store.error.value} retry={() => void store.read()} /> : <Loading />;
    }
    return <Runs table={table} store={store} studies={studies} />;
}

function Runs({ table, store, studies }: { table: RunTable; store: RunStore; studies: readonly Study[] }) {
    const state = view.current.value;
    const version = store.version.value;
    const [openGroups, setOpenGroups] = useState<ReadonlySet<string>>(new Set());
    const [selection, select] = useSelection();
    const leading = leadingMetrics(studies);
    const metrics = useMemo(() => orderMetrics(table.metrics.keys(), leading), [table, table.metrics.size, leading.join("\n")]);
    const { clauses, fault } = useMemo(() => readFilter(state.f), [state.f]);
    const columnIds = state.cols.length > 0 ? state.cols.filter((column) => column !== "-") : defaultColumnIds(table, metrics);
    const columnKey = columnIds.join("\n");
    const running = table.status.filter((status) => status === "RUNNING").length;
    // Only the durations of running runs move with the clock.
    const now = running > 0 ? nowMs.value : nowMs.peek();
    const columns = useMemo(
        () => columnIds.map((column) => columnSpec(table, column, now)).filter((column) => column !== undefined),
        [table, version, columnKey, running > 0 ? now : 0],
    );
    const { rows, items } = useMemo(
        () => arrange(table, columns, clauses, now, openGroups),
        [table, version, columns, clauses, state.q, state.sort, state.g, state.agg, state.view, openGroups],
    );
    const drawn = useMemo(() => {
        const picked = selection.size > 0 ? rows.filter((row) => selection.has(table.ids[row]!)) : rows.slice(0, kRunsDrawn);
        return picked.slice(0, kRunsDrawnMax).map((row) => ({ id: table.ids[row]!, label: table.name[row] || table.ids[row]!.slice(0, 8) }));
    }, [rows, selection, table]);
    const styles = useMemo(() => {
        const all = lineStyles(drawn.map((run) => run.id));
        return new Map(drawn.map((run, i) => [run.id, all[i]!]));
    }, [drawn]);
    const stars = useMemo(() => bestRuns(studies), [studies]);
    const sortBy = (column: string) => view.set({ sort: state.sort === `-${column}` ? column : state.sort === column ? `-${column}` : `-${column}` }, true);
    return (
        <>
            <div class="head">
                <div class="grow">
                    <div class="title"><h1>{table.experiment.name}</h1></div>
                    <div class="facts">
                        <span>{count(table.ids.length, "run")}</span>
                        {running > 0 && <span class="state running"><i />{running} running</span>}
                        {studies.map((study) => <span key={study.name}>study <a href={studyPath(study.name)}>{study.name}</a></span>)}
                    </div>
                </div>
            </div>
            {store.error.value !== undefined && <Fault error={store.error.value} retry={() => void store.read()} />}
            <Toolbar table={table} metrics={metrics} columnIds={columnIds} fault={fault} rows={rows} columns={columns} />
            {table.ids.length === 0 ? (
                <NoRuns name={table.experiment.name} />
            ) : (
                <div class={`split ${state.charts ? "two" : ""}`}>
                    <div class="card frame" style={{ "--rows": Math.max(4, items.length) }}>
                        <RunsGrid
                            table={table}
                            styles={styles}
                            stars={stars}
                            items={items}
                            columns={columns}
                            sort={state.sort}
                            aggregate={state.agg as Aggregate}
                            rowsKey={[state.f, state.q, state.sort, state.g, state.view].join("|")}
                            selection={selection}
                            onSelect={select}
                            openGroups={openGroups}
                            onOpenGroups={setOpenGroups}
                            onSort={sortBy}
                            onOpen={(row) => navigate(runPath(table.ids[row]!))}
                        />
                        {items.length === 0 && <Empty title="No run matches">Change the filter, or <button class="button small" type="button" onClick={() => view.set({ f: "", q: "" })}>clear it</button></Empty>}
                    </div>
                    {state.charts && (
                        <RunsCharts
                            runs={drawn}
                            metrics={metrics}
                            store={store}
                            pattern={state.m}
                            xAxis={state.x}
                            smoothing={state.smooth}
                            isSelected={selection.size > 0}
                            onChange={(change) => view.set(change)}
                        />
                    )}
                </div>
            )}
            <StatusLine table={table} rows={rows.length} selected={selection.size} onClear={() => select(new Set())} />
        </>
    );
}

function StatusLine({ table, rows, selected, onClear }: { table: RunTable; rows: number; selected: number; onClear: () => void }) {
    const share = () => {
        void navigator.clipboard?.writeText(location.href).then(() => toast("Copied the link to this view."));
    };
    return (
        <div class="status-line num" role="status">
            <span data-row-count>{rows === table.ids.length ? count(rows, "run") : `${rows.toLocaleString("en-US")} of ${count(table.ids.length, "run")}`}</span>
            {table.truncated && <span>newest {table.ids.length.toLocaleString("en-US")} only</span>}
            {selected > 0 && (
                <span>
                    {count(selected, "run")} selected <button class="button quiet small" type="button" onClick={onClear}>clear</button>
                </span>
            )}
            <span class="grow" />
            <button class="button quiet small" type="button" onClick={share}>Copy link</button>
        </div>
    );
}

function NoRuns({ name }: { name: string }) {
    const quoted = `'${name.replace(/'/g, "'\\''")}'`;
    return (
        <section class="card" aria-label="No runs yet">
            <Empty title="No runs yet" command={`export MLFLOW_TRACKING_URI=${location.origin}\nexport MLFLOW_EXPERIMENT_NAME=${quoted}\npython train.py`}>
                Any script that logs with MLflow fills this table without changes.
            </Empty>
        </section>
    );
}
