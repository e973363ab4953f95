import { defineConfig } from "vitest/config";

// Real daemons and a real browser: tests share one stack and run in their order. Times only ever fail a test.
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    testTimeout: 120_000,
    hookTimeout: 300_000,
    fileParallelism: false,
    sequence: { concurrent: false },
  },
});
