// CSV both ways: previews of artifacts, and what "Download CSV" writes.

/// Rows of fields (RFC 4180: quotes, doubled quotes, line breaks in quotes); at most `rowsMax` of them.
export function parseCsv(text: string, rowsMax: number, separator = ","): string[][] {
    const rows: string[][] = [];
    let row: string[] = [];
    let field = "";
    let isQuoted = false;
    for (let i = 0; i < text.length && rows.length < rowsMax; ++i) {
        const c = text[i]!;
        if (isQuoted) {
            if (c !== '"') field += c;
            else if (text[i + 1] === '"') field += text[++i];
            else isQuoted = false;
        } else if (c === '"' && field === "") isQuoted = true;
        else if (c === separator) {
            row.push(field);
            field = "";
        } else if (c === "\n" || c === "\r") {
            if (c === "\r" && text[i + 1] === "\n") ++i;
            rows.push([...row, field]);
            row = [];
            field = "";
        } else field += c;
    }
    if (rows.length < rowsMax && (field !== "" || row.length > 0)) rows.push([...row, field]);
    return rows;
}

/// A field that begins like a formula is prefixed with a quote: spreadsheets would run it.
function field(value: string | number | undefined): string {
    if (value === undefined) return "";
    let text = String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function writeCsv(rows: readonly (readonly (string | number | undefined)[])[]): string {
    return rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

/// Hands `text` to the browser as a file.
export function download(name: string, text: string, type = "text/csv"): void {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
