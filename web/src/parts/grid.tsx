// A virtual table: any number of rows of one height, only those in view in the document. Arrow keys move a cursor,
// Space selects, Enter opens; screen readers get a grid with row and column counts.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface GridColumn {
    id: string;
    title: string;
    /// "params" and "metrics" get a mark.
    kind?: string;
    width_px: number;
    isRight?: boolean;
    isPinned?: boolean;
    isSortable?: boolean;
    render: (row: number) => ComponentChildren;
}

export interface GridProps {
    label: string;
    columns: GridColumn[];
    rowCount: number;
    /// Changes when rows mean others (filter, sort): the cursor goes back to the top.
    rowsKey: string;
    rowClass?: (row: number) => string;
    sort?: { id: string; isDescending: boolean };
    onSort?: (id: string) => void;
    /// Selection; absent: rows cannot be selected.
    isSelected?: (row: number) => boolean;
    onSelect?: (row: number, toRow: number, on: boolean) => void;
    onOpen?: (row: number) => void;
    /// The first column's header, e.g. a check box for all.
    header?: (column: GridColumn) => ComponentChildren;
}

export const kRow_px = 30;
const kHeader_px = 34;
const kOverscan = 6;

interface Cell {
    row: number;
    column: number;
}

function pinOffsets(columns: readonly GridColumn[]): number[] {
    let left = 0;
    return columns.map((column) => {
        const at = left;
        if (column.isPinned) left += column.width_px;
        return at;
    });
}

function useViewport(frame: { current: HTMLDivElement | null }): [number, number] {
    const [top, setTop] = useState(0);
    const [height, setHeight] = useState(600);
    useLayoutEffect(() => {
        const element = frame.current!;
        const onScroll = () => setTop(element.scrollTop);
        const observer = new ResizeObserver(() => setHeight(element.clientHeight));
        element.addEventListener("scroll", onScroll, { passive: true });
        observer.observe(element);
        return () => {
            element.removeEventListener("scroll", onScroll);
            observer.disconnect();
        };
    }, []);
    return [top, height];
}

function scrollToCell(frame: HTMLDivElement, cell: Cell, columns: readonly GridColumn[]): void {
    const top = cell.row * kRow_px;
    if (top < frame.scrollTop) frame.scrollTop = top;
    else if (top + kRow_px + kHeader_px > frame.scrollTop + frame.clientHeight)
        frame.scrollTop = top + kRow_px + kHeader_px - frame.clientHeight;
    if (columns[cell.column]?.isPinned) return;
    const width = (column: GridColumn) => column.width_px;
    const left = columns.slice(0, cell.column).map(width).reduce((a, b) => a + b, 0);
    const pinned = columns.filter((column) => column.isPinned).map(width).reduce((a, b) => a + b, 0);
    const right = left + (columns[cell.column]?.width_px ?? 0);
    if (left - pinned < frame.scrollLeft) frame.scrollLeft = left - pinned;
    else if (right > frame.scrollLeft + frame.clientWidth) frame.scrollLeft = right - frame.clientWidth;
}

function moved(key: string, cell: Cell, isControl: boolean, rows: number, columns: number, page: number): Cell | undefined {
    const clampRow = (row: number) => Math.max(0, Math.min(rows - 1, row));
    switch (key) {
        case "ArrowDown": return { ...cell, row: clampRow(cell.row + 1) };
        case "ArrowUp": return { ...cell, row: clampRow(cell.row - 1) };
        case "PageDown": return { ...cell, row: clampRow(cell.row + page) };
        case "PageUp": return { ...cell, row: clampRow(cell.row - page) };
        case "ArrowRight": return { ...cell, column: Math.min(columns - 1, cell.column + 1) };
        case "ArrowLeft": return { ...cell, column: Math.max(0, cell.column - 1) };
        case "Home": return isControl ? { row: 0, column: 0 } : { ...cell, column: 0 };
        case "End": return isControl ? { row: rows - 1, column: columns - 1 } : { ...cell, column: columns - 1 };
        default: return undefined;
    }
}

function Headers({ props, offsets }: { props: GridProps; offsets: number[] }) {
    const { columns, sort } = props;
    const lastPin = columns.map((column) => column.isPinned === true).lastIndexOf(true);
    return (
        <div class="row headers" role="row" aria-rowindex={1}>
            {columns.map((column, i) => {
                const isSorted = sort?.id === column.id;
                const direction = isSorted ? (sort.isDescending ? "descending" : "ascending") : undefined;
                const own = props.header?.(column);
                return (
                    <div
                        key={column.id}
                        role="columnheader"
                        aria-colindex={i + 1}
                        aria-sort={direction ?? (column.isSortable ? "none" : undefined)}
                        class={`${column.isRight ? "right" : ""} ${column.isPinned ? "pin" : ""} ${i === lastPin ? "pin-last" : ""} kind-${column.kind ?? "none"}`}
                        style={column.isPinned ? { left: `${offsets[i]}px` } : undefined}
                        title={column.title}
                    >
                        {own ??
                            (column.isSortable ? (
                                <button type="button" onClick={() => props.onSort?.(column.id)}>
                                    <span class="clip">{column.title}</span>
                                    <span class="mark" aria-hidden="true">{direction ? (direction === "descending" ? "▼" : "▲") : ""}</span>
                                </button>
                            ) : (
                                <span class="clip plain-head">{column.title}</span>
                            ))}
                    </div>
                );
            })}
        </div>
    );
}

export function Grid(props: GridProps) {
    const { columns, rowCount } = props;
    const frame = useRef<HTMLDivElement>(null);
    const [top, height] = useViewport(frame);
    const [cell, setCell] = useState<Cell>({ row: 0, column: 0 });
    const anchor = useRef<number>(0);
    useLayoutEffect(() => {
        setCell({ row: 0, column: 0 });
        anchor.current = 0;
        if (frame.current) frame.current.scrollTop = 0;
    }, [props.rowsKey]);

    const offsets = pinOffsets(columns);
    const lastPin = columns.map((column) => column.isPinned === true).lastIndexOf(true);
    const first = Math.max(0, Math.floor(top / kRow_px) - kOverscan);
    const last = Math.min(rowCount, Math.ceil((top + height) / kRow_px) + kOverscan);
    // Rows that scroll out give their elements to those that scroll in.
    const slots = Math.ceil(height / kRow_px) + 2 * kOverscan + 2;
    const cellId = (row: number, column: number) => `cell-${row}-${column}`;

    const onKeyDown = (event: KeyboardEvent) => {
        if (event.target !== frame.current || rowCount === 0) return;
        if (event.key === "Enter") {
            props.onOpen?.(cell.row);
        } else if (event.key === " " && props.onSelect) {
            props.onSelect(cell.row, cell.row, !props.isSelected?.(cell.row));
            anchor.current = cell.row;
        } else {
            const page = Math.max(1, Math.floor(height / kRow_px) - 2);
            const next = moved(event.key, cell, event.ctrlKey, rowCount, columns.length, page);
            if (!next) return;
            if (event.shiftKey && props.onSelect) props.onSelect(anchor.current, next.row, true);
            else anchor.current = next.row;
            setCell(next);
            scrollToCell(frame.current!, next, columns);
        }
        event.preventDefault();
    };

    const rows = [];
    for (let row = first; row < last; ++row) {
        const isSelected = props.isSelected?.(row) ?? false;
        rows.push(
            <div
                key={row % slots}
                role="row"
                aria-rowindex={row + 2}
                aria-selected={props.onSelect ? isSelected : undefined}
                class={`row data ${isSelected ? "picked" : ""} ${props.rowClass?.(row) ?? ""}`}
            >
                {columns.map((column, i) => (
                    <div
                        key={column.id}
                        id={cellId(row, i)}
                        role="gridcell"
                        aria-colindex={i + 1}
                        class={`${column.isRight ? "right" : ""} ${column.isPinned ? "pin" : ""} ${i === lastPin ? "pin-last" : ""} ${row === cell.row && i === cell.column ? "cursor" : ""}`}
                        style={column.isPinned ? { left: `${offsets[i]}px` } : undefined}
                    >
                        {column.render(row)}
                    </div>
                ))}
            </div>,
        );
    }
    const template = columns.map((column) => `${column.width_px}px`).join(" ");
    return (
        <div
            ref={frame}
            class="grid"
            role="grid"
            tabIndex={0}
            aria-label={props.label}
            aria-rowcount={rowCount + 1}
            aria-colcount={columns.length}
            aria-multiselectable={props.onSelect ? true : undefined}
            aria-activedescendant={cell.row >= first && cell.row < last ? cellId(cell.row, cell.column) : undefined}
            style={{ "--cols": `${template} minmax(0, 1fr)` }}
            onKeyDown={onKeyDown}
        >
            <Headers props={props} offsets={offsets} />
            <div role="presentation" style={{ height: `${first * kRow_px}px` }} />
            {rows}
            <div role="presentation" style={{ height: `${Math.max(0, rowCount - last) * kRow_px}px` }} />
        </div>
    );
}
