import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@gen": source("./src/gen/proto/plumbline/v1"), "@": source("./src") } },
  // `PLUMBLINE_HTTP=http://127.0.0.1:PORT npx vite` shows a running server's data.
  server: { proxy: { "^/(plumbline\\.v1\\.|artifacts/)": process.env.PLUMBLINE_HTTP ?? "http://127.0.0.1:7480" } },
  // The server's content security policy allows no data: script or style, so nothing is inlined.
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  test: { environment: "jsdom", include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
});
