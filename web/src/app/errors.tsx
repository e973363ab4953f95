import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useRouteError } from "react-router";
import { messageOf, wantsOtherRole, wantsSignIn } from "../api/errors.js";
import { setToken } from "../api/token.js";

// What a call answered instead of data. Asks for a token where the server wants one.
export function Problem({ error, what }: { error: unknown; what: string }) {
  if (wantsSignIn(error)) return <SignIn message={messageOf(error)} />;
  return (
    <div className="problem" role="alert">
      <strong>{wantsOtherRole(error) ? "Your token may not do this." : `Cannot ${what}.`}</strong> {messageOf(error)}
    </div>
  );
}

export function SignIn({ message }: { message: string }) {
  const queries = useQueryClient();
  const [token, edit] = useState("");
  return (
    <form
      className="sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        setToken(token.trim());
        void queries.invalidateQueries();
      }}
    >
      <h2>Sign in</h2>
      <p>{message}</p>
      <label>
        Token
        <input type="password" value={token} autoComplete="off" onChange={(event) => edit(event.target.value)} required />
      </label>
      <p className="hint">It is kept in this tab alone. An administrator makes one with `plumbline token create`.</p>
      <button type="submit">Sign in</button>
    </form>
  );
}

export function NotFound() {
  return (
    <section>
      <h1>Nothing is at this address</h1>
      <p>
        <Link to="/jobs">All jobs</Link>
      </p>
    </section>
  );
}

export function CrashPage() {
  const error = useRouteError();
  return (
    <section role="alert" className="crash">
      <h1>This page failed</h1>
      <pre>{messageOf(error)}</pre>
      <p>
        <a href="/jobs">All jobs</a>
      </p>
    </section>
  );
}
