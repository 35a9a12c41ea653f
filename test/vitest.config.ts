import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

export default defineConfig({
  root: fileURLToPath(new URL("..", import.meta.url)),
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "test/bench/**"],
    globalSetup: ["test/servers.ts"],
    // of a machine that is slow, and busy: some tests start five processes
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: "forks",
    maxWorkers: 2,
    reporters: ["default"]
  }
})
