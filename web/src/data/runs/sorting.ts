// Sorting and grouping of rows. Pure; rows are indexes into a RunTable.
import type { CellValue, ColumnSpec } from "./columns.ts";

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/// 0: a value, 1: NaN, 2: missing. Numbers, then NaN, then nothing, in both directions.
function rank(value: CellValue): number {
    if (value === undefined) return 2;
    return typeof value === "number" && Number.isNaN(value) ? 1 : 0;
}

/// `rows` in the order of the column; equal values keep their order.
export function sortRows(rows: readonly number[], column: ColumnSpec, isDescending: boolean): number[] {
    const sign = isDescending ? -1 : 1;
    const keyed = rows.map((row) => ({ row, value: column.get(row) }));
    keyed.sort((a, b) => {
        const ranks = rank(a.value) - rank(b.value);
        if (ranks !== 0) return ranks;
        if (rank(a.value) !== 0) return 0;
        if (typeof a.value === "number" && typeof b.value === "number") return sign * (a.value - b.value);
        return sign * collator.compare(String(a.value), String(b.value));
    });
    return keyed.map((entry) => entry.row);
}

export interface Summary {
    count: number;
    mean: number;
    min: number;
    max: number;
    /// Of the sample; 0 for one value.
    deviation: number;
}

/// NaN and missing values do not count. undefined: none are left.
export function summarize(values: Iterable<CellValue>): Summary | undefined {
    let count = 0;
    let mean = 0;
    let squares = 0;
    let min = Infinity;
    let max = -Infinity;
    for (const value of values) {
        if (typeof value !== "number" || Number.isNaN(value)) continue;
        ++count;
        // Welford: exact for equal values, stable for large ones.
        const delta = value - mean;
        mean += delta / count;
        squares += delta * (value - mean);
        min = Math.min(min, value);
        max = Math.max(max, value);
    }
    if (count === 0) return undefined;
    return { count, mean, min, max, deviation: count > 1 ? Math.sqrt(squares / (count - 1)) : 0 };
}

export interface Group {
    /// The common value as text; "–" for runs without one.
    label: string;
    rows: number[];
    summaries: Map<string, Summary>;
}

/// Groups of `rows` with equal text in `by`, in the order in which they first appear. A group of one run
/// is a group too.
export function groupRows(rows: readonly number[], by: ColumnSpec, numeric: readonly ColumnSpec[]): Group[] {
    const groups = new Map<string, Group>();
    for (const row of rows) {
        const value = by.get(row);
        const label = value === undefined ? "–" : String(value);
        let group = groups.get(label);
        if (!group) groups.set(label, (group = { label, rows: [], summaries: new Map() }));
        group.rows.push(row);
    }
    for (const group of groups.values())
        for (const column of numeric) {
            const summary = summarize(group.rows.map(column.get));
            if (summary) group.summaries.set(column.id, summary);
        }
    return [...groups.values()];
}

export type Aggregate = "mean" | "min" | "max";

/// Groups in the order of one column's aggregate (or of the label, for a column that is not numeric).
export function sortGroups(groups: readonly Group[], columnId: string, how: Aggregate, isDescending: boolean): Group[] {
    const sign = isDescending ? -1 : 1;
    return [...groups].sort((a, b) => {
        const x = a.summaries.get(columnId)?.[how];
        const y = b.summaries.get(columnId)?.[how];
        if (x !== undefined && y !== undefined) return sign * (x - y);
        if (x !== undefined) return -1;
        if (y !== undefined) return 1;
        return sign * collator.compare(a.label, b.label);
    });
}
