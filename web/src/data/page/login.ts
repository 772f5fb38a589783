// Who looks at the page, where users log in (`tune server --auth basic`); elsewhere nobody asks.
import { signal } from "@preact/signals";
import { ApiError, getJson, onRefusal, postJson } from "../wire.ts";

export interface User {
    id: number;
    username: string;
    is_admin: boolean;
}

const path = "/api/2.0/tune";
const asksForLogin = document.querySelector<HTMLMetaElement>('meta[name="tune-auth"]')?.content === "basic";

/// "unknown" until the server has said it; "none": nobody has to log in, or it is not known who looks.
export const login = signal<"unknown" | "needed" | "none" | User>(asksForLogin ? "unknown" : "none");

export async function findUser(): Promise<void> {
    if (!asksForLogin) return;
    const { user } = await getJson<{ user: User | null }>(`${path}/login`);
    login.value = user ?? "needed";
}

export async function logIn(username: string, password: string): Promise<void> {
    login.value = (await postJson<{ user: User }>(`${path}/login`, { username, password })).user;
}

/// The page is read anew: what it holds in memory was this user's.
export async function logOut(): Promise<void> {
    await postJson(`${path}/logout`, {});
    location.reload();
}

// A session that has ended while the page was open.
onRefusal((error: ApiError) => {
    if (asksForLogin && error.status === 401 && typeof login.value === "object") login.value = "needed";
});
