import { availableParallelism } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"
import { briefWasm } from "./BriefWasm.ts"
import { LongestFirst } from "./LongestFirst.ts"
import { sourceOf } from "./PackageNames.ts"

const root = fileURLToPath(new URL("..", import.meta.url))

// The workers, and the programs that tests start, inherit it. With compiled sources a program starts in half the time.
process.env["NODE_COMPILE_CACHE"] ??= join(root, "node_modules", ".cache", "compiled")

/**
 * Loading the sources would take a quarter of the time of these tests. They leave nothing behind in their process, so that
 * many files share one.
 */
const sharing = ["control", "gateway", "graph", "messaging", "policy", "services", "state", "status"].map(
  (folder) => `test/${folder}/**/*.test.ts`
)

export default defineConfig({
  root,
  resolve: {
    alias: Array.from(sourceOf, ([name, replacement]) => ({ find: new RegExp(`^${name}$`), replacement }))
  },
  test: {
    globalSetup: ["test/servers.ts"],
    // of a machine that is slow, and busy: some tests start five processes
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: "forks",
    execArgv: [...briefWasm],
    // A third of a test's time goes by while it waits for a process or a clock.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    sequence: { sequencer: LongestFirst },
    reporters: ["default"],
    projects: [
      {
        extends: true,
        test: {
          name: "alone",
          include: ["test/**/*.test.ts", "layers/commands/init/template/*.test.ts"],
          exclude: ["**/node_modules/**", "test/bench/**", ...sharing]
        }
      },
      { extends: true, test: { name: "sharing", include: sharing, isolate: false } }
    ]
  }
})
