// The files of a run: a tree, and a preview that shows what a file holds but never runs it.
import { useEffect, useState } from "preact/hooks";
import { listFiles, type FileEntry } from "../data/files/artifacts.ts";
import { parseCsv } from "../data/files/csv.ts";
import { bytes } from "../data/format.ts";
import { cleanLog, looksLikeText, previewKind } from "../data/files/logs.ts";
import type { RunState, RunView } from "../data/runs/run_page.ts";
import { artifactUrl, getBytes } from "../data/wire.ts";
import { Empty, Fault } from "../parts/feedback.tsx";
import { DownloadIcon, FileIcon, FolderIcon } from "../parts/icons.tsx";

const kPreviewBytes = 512 * 1024;
const kPreviewRows = 500;

interface Props {
    run: RunView;
    state: RunState;
    path: string;
    onPath: (path: string) => void;
}

function useFiles(runId: string, folder: string, version: number): { files: FileEntry[] | undefined; error: unknown } {
    const [files, setFiles] = useState<FileEntry[]>();
    const [error, setError] = useState<unknown>();
    useEffect(() => {
        let isGone = false;
        listFiles(runId, folder).then(
            (found) => {
                if (!isGone) [setFiles(found), setError(undefined)];
            },
            (fault) => {
                if (!isGone) setError(fault);
            },
        );
        return () => {
            isGone = true;
        };
    }, [runId, folder, version]);
    return { files, error };
}

function Folder(props: Props & { folder: string; version: number }) {
    const { files, error } = useFiles(props.run.id, props.folder, props.version);
    if (error !== undefined) return <Fault error={error} />;
    if (!files) return null;
    if (files.length === 0 && props.folder === "" && props.run.end !== undefined) return <Empty title="No artifacts">The run logged no files.</Empty>;
    if (files.length === 0 && props.folder === "")
        return (
            <Empty title="No artifacts yet" command={'mlflow.log_artifact("model.pt")'}>
                Files that the run logs appear here.
            </Empty>
        );
    return (
        <ul>
            {files.map((file) => (
                <Entry key={file.path} {...props} file={file} />
            ))}
        </ul>
    );
}

function Entry(props: Props & { file: FileEntry; version: number }) {
    const { file, path } = props;
    const [isOpen, setOpen] = useState(path.startsWith(`${file.path}/`));
    const isCurrent = path === file.path;
    return (
        <li>
            <button
                type="button"
                aria-expanded={file.isFolder ? isOpen : undefined}
                aria-current={isCurrent ? "true" : undefined}
                onClick={() => (file.isFolder ? setOpen(!isOpen) : props.onPath(file.path))}
            >
                {file.isFolder ? <FolderIcon /> : <FileIcon />}
                <span class="clip">{file.name}</span>
                {!file.isFolder && <small class="num">{bytes(file.size)}</small>}
            </button>
            {file.isFolder && isOpen && <Folder {...props} folder={file.path} />}
        </li>
    );
}

type Content =
    | { kind: "image" }
    | { kind: "text"; text: string; size: number }
    | { kind: "table"; rows: string[][]; size: number }
    | { kind: "binary"; size: number };

async function load(url: string, path: string, signal: AbortSignal): Promise<Content> {
    const kind = previewKind(path);
    if (kind === "image") return { kind };
    const { bytes: content, size } = await getBytes(url, 0, kPreviewBytes, signal);
    if (!looksLikeText(content)) return { kind: "binary", size };
    const text = new TextDecoder().decode(content);
    if (kind === "table") return { kind, rows: parseCsv(text, kPreviewRows + 1, path.endsWith(".tsv") ? "\t" : ","), size };
    if (kind === "json" && size <= kPreviewBytes) {
        try {
            return { kind: "text", text: JSON.stringify(JSON.parse(text), null, 2), size };
        } catch {
            // Not JSON after all (or JSON lines): shown as it is.
        }
    }
    return { kind: "text", text: cleanLog(text), size };
}

function Table({ rows }: { rows: string[][] }) {
    const [head = [], ...body] = rows;
    const shown = body.slice(0, kPreviewRows);
    const isNumeric = head.map((_, i) => shown.length > 0 && shown.every((row) => row[i] === "" || Number.isFinite(Number(row[i] ?? "x"))));
    return (
        <table class="plain">
            <thead>
                <tr>{head.map((cell, i) => <th key={i} scope="col" class={isNumeric[i] ? "right" : ""}>{cell}</th>)}</tr>
            </thead>
            <tbody>
                {shown.map((row, r) => (
                    <tr key={r}>{row.map((cell, i) => <td key={i} class={isNumeric[i] ? "right" : ""}>{cell}</td>)}</tr>
                ))}
            </tbody>
        </table>
    );
}

function ContentView({ content, url, path }: { content: Content; url: string; path: string }) {
    switch (content.kind) {
        case "image": return <img src={url} alt={path} />;
        case "table": return <Table rows={content.rows} />;
        case "binary": return <Empty title="No preview">This is a binary file of {bytes(content.size)}. Download it to open it.</Empty>;
        case "text": return <pre>{content.text}</pre>;
    }
}

function Preview({ run, path, version }: { run: RunView; path: string; version: number }) {
    const [content, setContent] = useState<Content>();
    const [error, setError] = useState<unknown>();
    const url = artifactUrl(run.artifactUri, path);
    useEffect(() => {
        const abort = new AbortController();
        setError(undefined);
        load(url, path, abort.signal).then(setContent, (fault) => {
            if (!abort.signal.aborted) setError(fault);
        });
        return () => abort.abort();
    }, [url, version]);
    const size = content && "size" in content ? content.size : 0;
    return (
        <section class="preview" aria-label={`Preview of ${path}`}>
            <header>
                <b class="clip grow mono">{path}</b>
                {size > kPreviewBytes && <span class="faint">first {bytes(kPreviewBytes)} of {bytes(size)}</span>}
                <a class="button small" href={url} download={path.slice(path.lastIndexOf("/") + 1)}>
                    <DownloadIcon /> Download
                </a>
            </header>
            <div class="content" tabIndex={0} role="group" aria-label="Content">
                {error !== undefined ? <Fault error={error} /> : content && <ContentView content={content} url={url} path={path} />}
            </div>
        </section>
    );
}

export function Artifacts(props: Props) {
    const [version, setVersion] = useState(0);
    const seen = props.state.artifactVersion.value;
    // A run that uploads many files makes one new listing a second, not one a file.
    useEffect(() => {
        const timer = setTimeout(() => setVersion(seen), version === 0 ? 0 : 700);
        return () => clearTimeout(timer);
    }, [seen]);
    if (!props.run.artifactUri.startsWith("mlflow-artifacts:"))
        return (
            <section class="card" aria-label="Artifacts elsewhere">
                <Empty title="These artifacts are stored elsewhere">
                    <code>{props.run.artifactUri || "no location"}</code>
                </Empty>
            </section>
        );
    return (
        <section class="card files" aria-label="Artifacts">
            <nav aria-label="Files">
                <Folder {...props} folder="" version={version} />
            </nav>
            {props.path ? (
                <Preview run={props.run} path={props.path} version={props.state.lastPath === props.path ? version : 0} />
            ) : (
                <Empty title="Choose a file">Text, tables, JSON and images are previewed here.</Empty>
            )}
        </section>
    );
}
