import { useEffect, useState } from "react";

const KEY = "plumbline.theme";

// "system", "light" or "dark"; the last is written to the document, whose styles follow it.
export function useTheme(): [string, (theme: string) => void] {
  const [theme, setTheme] = useState(() => window.localStorage.getItem(KEY) ?? "system");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    window.localStorage.setItem(KEY, theme);
  }, [theme]);
  return [theme, setTheme];
}
