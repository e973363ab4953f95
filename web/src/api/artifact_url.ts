import { useQuery } from "@tanstack/react-query";
import { artifacts } from "./client.js";

const BEFORE_EXPIRY_MS = 60_000;
const AT_LEAST_MS = 5_000;

// An address of the artifact that a <video>, an <img> or a link can have: its ticket opens nothing else and expires.
export async function ticketUrl(name: string): Promise<string> {
  return (await artifacts.createTicket({ name })).urlPath;
}

export function useArtifactUrl(name: string | undefined): { url: string | undefined; error: unknown } {
  const ticket = useQuery({
    queryKey: ["ticket", name],
    enabled: name !== undefined,
    queryFn: () => artifacts.createTicket({ name: name as string }),
    refetchInterval: ({ state }) => {
      const expires = state.data?.expireTime;
      return expires ? Math.max(AT_LEAST_MS, Number(expires.seconds) * 1000 - Date.now() - BEFORE_EXPIRY_MS) : false;
    },
  });
  return { url: ticket.data?.urlPath, error: ticket.error };
}
