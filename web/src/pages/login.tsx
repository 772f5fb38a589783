// Name and password, where users log in.
import { useEffect, useRef, useState } from "preact/hooks";
import { findUser, login, logIn } from "../data/page/login.ts";
import { Fault, Loading } from "../parts/feedback.tsx";
import { Logo } from "../parts/icons.tsx";

function LoginForm() {
    const [fault, setFault] = useState<unknown>(null);
    const [isBusy, setBusy] = useState(false);
    const name = useRef<HTMLInputElement>(null);
    const password = useRef<HTMLInputElement>(null);
    useEffect(() => {
        document.title = "Log in · tune";
        name.current?.focus();
    }, []);
    const submit = async (event: Event) => {
        event.preventDefault();
        setBusy(true);
        try {
            await logIn(name.current!.value, password.current!.value);
        } catch (error) {
            setFault(error);
            setBusy(false);
            password.current?.select();
        }
    };
    return (
        <main id="content" class="login">
            <form onSubmit={submit}>
                <h1><Logo /> Log in to tune</h1>
                {fault !== null && <Fault error={fault} />}
                <label>
                    User name
                    <input class="input" ref={name} name="username" autocomplete="username" required />
                </label>
                <label>
                    Password
                    <input class="input" ref={password} name="password" type="password" autocomplete="current-password" required />
                </label>
                <button class="button" type="submit" disabled={isBusy}>Log in</button>
            </form>
        </main>
    );
}

/// Shown in place of every page until it is known who looks.
export function LoginPage() {
    const [fault, setFault] = useState<unknown>(null);
    useEffect(() => {
        if (login.value === "unknown") findUser().catch(setFault);
    }, []);
    if (login.value === "needed") return <LoginForm />;
    return <main id="content" class="login">{fault === null ? <Loading /> : <Fault error={fault} retry={() => location.reload()} />}</main>;
}
