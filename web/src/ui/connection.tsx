import { Problem } from "../app/errors.js";
import { isFinal, messageOf } from "../api/errors.js";
import type { Connection } from "../api/watch.js";

// Says when what a page shows is no longer live, and why.
export function ConnectionNote({ connection, error }: { connection: Connection; error: unknown }) {
  if (connection !== "lost") return null;
  if (isFinal(error)) return <Problem error={error} what="follow the jobs" />;
  return (
    <p className="connection" role="status">
      Connection to the server lost; trying again. {error === undefined ? "" : messageOf(error)}
    </p>
  );
}
