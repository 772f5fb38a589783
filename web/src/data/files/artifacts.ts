// Listing a run's files.
import { getJson, mlflow, type WireFile } from "../wire.ts";

export interface FileEntry {
    path: string;
    name: string;
    isFolder: boolean;
    size: number;
}

/// Folders first, then by name.
export async function listFiles(runId: string, folder: string): Promise<FileEntry[]> {
    const query = `run_id=${encodeURIComponent(runId)}${folder ? `&path=${encodeURIComponent(folder)}` : ""}`;
    const answer = await getJson<{ files?: WireFile[] }>(`${mlflow}/artifacts/list?${query}`);
    const files = (answer.files ?? []).map((file) => ({
        path: file.path,
        name: file.path.slice(file.path.lastIndexOf("/") + 1),
        isFolder: file.is_dir,
        size: Number(file.file_size ?? 0),
    }));
    return files.sort((a, b) => Number(b.isFolder) - Number(a.isFolder) || a.name.localeCompare(b.name, "en", { numeric: true }));
}
