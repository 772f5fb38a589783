// The runs as a grid: check boxes, name with its colour, one cell a column, and group rows with aggregates.
import { useMemo } from "preact/hooks";
import type { LineStyle } from "../data/curves/colors.ts";
import type { ColumnSpec, RunTable } from "../data/runs/columns.ts";
import { ago, count, date, duration, number } from "../data/format.ts";
import type { Aggregate, Group } from "../data/runs/sorting.ts";
import { runPath } from "../data/page/url.ts";
import { nowMs } from "../parts/clock.ts";
import { State } from "../parts/feedback.tsx";
import { Grid, type GridColumn } from "../parts/grid.tsx";

/// A line of the table: a run or the head of a group.
export type Item = { row: number; group?: undefined } | { group: Group; row?: undefined };

interface Props {
    table: RunTable;
    /// Of the runs that are drawn beside the table.
    styles: ReadonlyMap<string, LineStyle>;
    /// The best runs, each with what it is best of.
    stars: ReadonlyMap<string, string>;
    items: Item[];
    columns: ColumnSpec[];
    sort: string;
    aggregate: Aggregate;
    rowsKey: string;
    selection: ReadonlySet<string>;
    onSelect: (next: ReadonlySet<string>) => void;
    openGroups: ReadonlySet<string>;
    onOpenGroups: (next: ReadonlySet<string>) => void;
    onSort: (columnId: string) => void;
    onOpen: (row: number) => void;
}

const kWidths: Record<ColumnSpec["kind"], number> = { text: 128, number: 104, time: 108, duration: 104, status: 108 };

/// Narrow screens show less of the names, more of the values.
const isNarrow = () => innerWidth <= 600;

/// "0.2924 ±0.045" needs more room than a number.
const kDeviationWidth = 44;

/// Wide enough for its title, within reason.
function widthOf(column: ColumnSpec, isMean: boolean): number {
    const width = Math.min(isNarrow() ? 112 : 230, Math.max(kWidths[column.kind], column.title.length * 8 + 48));
    return isMean && column.kind === "number" ? Math.max(width, kWidths.number + kDeviationWidth) : width;
}

function Cell({ column, row }: { column: ColumnSpec; row: number }) {
    const value = column.get(row);
    if (value === undefined) return <span class="none">–</span>;
    switch (column.kind) {
        case "status": return <State name={String(value)} />;
        case "time": return <span class="muted" title={date(value as number)}>{ago(value as number, nowMs.value)}</span>;
        case "duration": return <span class="muted">{duration(value as number)}</span>;
        case "number": return <span title={String(value)}>{number(value as number)}</span>;
        case "text": return <span class="clip" title={String(value)}>{value}</span>;
    }
}

function GroupCell({ column, group, how }: { column: ColumnSpec; group: Group; how: Aggregate }) {
    const summary = group.summaries.get(column.id);
    if (!summary) return null;
    const show = column.kind === "duration" ? duration : number;
    const title = `mean ${show(summary.mean)}, min ${show(summary.min)}, max ${show(summary.max)}, ${count(summary.count, "run")}`;
    return (
        <span title={title}>
            {show(summary[how])}
            {how === "mean" && summary.count > 1 && column.kind === "number" && <small>±{number(summary.deviation, 2)}</small>}
        </span>
    );
}

function toggled<T>(set: ReadonlySet<T>, item: T): Set<T> {
    const next = new Set(set);
    if (!next.delete(item)) next.add(item);
    return next;
}

function runsOf(item: Item, table: RunTable): string[] {
    return (item.group ? item.group.rows : [item.row]).map((row) => table.ids[row]!);
}

export function RunsGrid(props: Props) {
    const { table, items, selection } = props;
    const isPicked = (item: Item) => runsOf(item, table).every((id) => selection.has(id));
    const change = (changed: readonly Item[], on: boolean) => {
        const next = new Set(selection);
        for (const item of changed) for (const id of runsOf(item, table)) if (on) next.add(id); else next.delete(id);
        props.onSelect(next);
    };
    const nameCell = (item: Item) => {
        if (item.group) {
            const { label, rows } = item.group;
            const isOpen = props.openGroups.has(label);
            return (
                <button class="button quiet small" type="button" tabIndex={-1} aria-expanded={isOpen} onClick={() => props.onOpenGroups(toggled(props.openGroups, label))}>
                    {isOpen ? "▾" : "▸"} <span class="clip">{label}</span> <small>{rows.length}</small>
                </button>
            );
        }
        const id = table.ids[item.row]!;
        const style = props.styles.get(id);
        const star = props.stars.get(id);
        return (
            <>
                <span class="swatch" style={style && { background: `var(${style.token})` }} />
                {star && <span class="star" role="img" aria-label={star} title={star}>★</span>}
                <a class="clip" tabIndex={-1} href={runPath(id)} title={table.name[item.row]}>{table.name[item.row] || id.slice(0, 8)}</a>
            </>
        );
    };
    const isMean = props.aggregate === "mean" && items[0]?.group !== undefined;
    const columns = useMemo((): GridColumn[] => {
        const check: GridColumn = {
            id: "check",
            title: "Selected",
            width_px: 34,
            isPinned: true,
            render: (i) => (
                <input
                    type="checkbox"
                    tabIndex={-1}
                    aria-label="Select"
                    checked={isPicked(items[i]!)}
                    onClick={(event) => change([items[i]!], event.currentTarget.checked)}
                />
            ),
        };
        const name: GridColumn = { id: "name", title: "Run", width_px: isNarrow() ? 118 : 210, isPinned: true, isSortable: true, render: (i) => nameCell(items[i]!) };
        const others = props.columns.map((column): GridColumn => ({
            id: column.id,
            title: column.title,
            kind: column.id.split(".")[0],
            width_px: widthOf(column, isMean),
            isRight: column.kind !== "text" && column.kind !== "status",
            isSortable: true,
            render: (i) => {
                const item = items[i]!;
                return item.group ? <GroupCell column={column} group={item.group} how={props.aggregate} /> : <Cell column={column} row={item.row} />;
            },
        }));
        return [check, name, ...others];
    }, [items, props.columns, selection, props.openGroups, props.aggregate, props.styles, props.stars]);
    const open = (i: number) => {
        const item = items[i]!;
        if (item.group) props.onOpenGroups(toggled(props.openGroups, item.group.label));
        else props.onOpen(item.row);
    };
    return (
        <Grid
            label="Runs"
            columns={columns}
            rowCount={items.length}
            rowsKey={props.rowsKey}
            rowClass={(i) => (items[i]!.group ? "group" : "")}
            sort={{ id: props.sort.replace(/^-/, ""), isDescending: props.sort.startsWith("-") }}
            onSort={props.onSort}
            isSelected={(i) => isPicked(items[i]!)}
            onSelect={(from, to, on) => change(items.slice(Math.min(from, to), Math.max(from, to) + 1), on)}
            onOpen={open}
            header={(column) =>
                column.id === "check" ? (
                    <span class="plain-head">
                        <input
                            type="checkbox"
                            aria-label="Select all shown runs"
                            checked={items.length > 0 && items.every(isPicked)}
                            onClick={(event) => change(items, event.currentTarget.checked)}
                        />
                    </span>
                ) : undefined
            }
        />
    );
}
