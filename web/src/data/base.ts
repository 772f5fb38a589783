// What the server puts before every path (`tune server --static-prefix /tracking`); "" without it. The page has it
// from the server; the shared worker, which has no document, from its own address.
function find(): string {
    if (globalThis.document) return document.querySelector<HTMLMetaElement>('meta[name="tune-prefix"]')?.content ?? "";
    return globalThis.location?.pathname?.replace(/\/[^/]*$/, "") ?? "";
}
export const base = find();
