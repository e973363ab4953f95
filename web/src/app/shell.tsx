import { NavLink, Outlet, ScrollRestoration, useNavigation } from "react-router";
import { setToken, useToken } from "../api/token.js";
import { useTheme } from "./theme.js";

const PLACES = [
  ["/jobs", "Jobs"],
  ["/submit", "Submit"],
  ["/workers", "Workers"],
  ["/runs", "Runs"],
  ["/audit", "Audit"],
] as const;

export function Shell() {
  const navigation = useNavigation();
  const token = useToken();
  const [theme, setTheme] = useTheme();
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <header className="top">
        <NavLink to="/jobs" className="brand">
          Plumbline
        </NavLink>
        <nav aria-label="Main">
          {PLACES.map(([path, name]) => (
            <NavLink key={path} to={path}>
              {name}
            </NavLink>
          ))}
        </nav>
        <label className="theme">
          <span className="hidden">Colours</span>
          <select value={theme} onChange={(event) => setTheme(event.target.value)}>
            <option value="system">System colours</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
        </label>
        {token && (
          <button type="button" onClick={() => setToken("")}>
            Sign out
          </button>
        )}
      </header>
      <main id="main" tabIndex={-1} aria-busy={navigation.state !== "idle"}>
        <Outlet />
      </main>
      <ScrollRestoration />
    </>
  );
}
