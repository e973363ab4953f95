// The bearer token, in session storage alone: it ends with the tab, and no other site's page can read it.
import { useSyncExternalStore } from "react";

const KEY = "plumbline.token";
const listeners = new Set<() => void>();

export function currentToken(): string {
  return window.sessionStorage.getItem(KEY) ?? "";
}

export function setToken(token: string) {
  if (token) window.sessionStorage.setItem(KEY, token);
  else window.sessionStorage.removeItem(KEY);
  for (const listener of listeners) listener();
}

export function useToken(): string {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, currentToken);
}
