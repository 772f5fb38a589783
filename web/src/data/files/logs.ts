// Program output as text: escape codes gone, progress bars that redraw their line reduced to what they last said.

export function cleanLog(text: string): string {
    return text
        .replace(/\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)/g, "")
        .replace(/\r\n/g, "\n")
        .replace(/[^\n]*\r(?=[^\n])/g, "")
        .replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
}

/// Whether the first bytes of a file are text: valid UTF-8 (but for a cut last character) without NUL.
export function looksLikeText(bytes: Uint8Array): boolean {
    const head = bytes.subarray(0, 4096);
    if (head.includes(0)) return false;
    try {
        new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true });
        return true;
    } catch {
        return false;
    }
}

export type PreviewKind = "image" | "json" | "table" | "text";

export function previewKind(path: string): PreviewKind {
    const extension = /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
    if (["png", "jpg", "jpeg", "gif", "webp", "bmp", "svg", "avif"].includes(extension)) return "image";
    if (["json", "jsonl", "ipynb"].includes(extension)) return "json";
    if (["csv", "tsv"].includes(extension)) return "table";
    return "text";
}
