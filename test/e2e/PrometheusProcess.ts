import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { inject } from "vitest"
import * as LocalPort from "../LocalPort.ts"

/** `null`: no Prometheus on this machine. */
export const binary = inject("prometheus")

const Answer = Schema.fromJsonString(
  Schema.Struct({
    status: Schema.Literal("success"),
    data: Schema.Struct({
      result: Schema.Array(
        Schema.Struct({
          metric: Schema.Record(Schema.String, Schema.String),
          value: Schema.Tuple([Schema.Finite, Schema.String])
        })
      )
    })
  })
)
const decode = Schema.decodeUnknownSync(Answer)

/** A Prometheus that scrapes the targets each second. */
export const scraping = Effect.fnUntraced(function* (targets: ReadonlyArray<string>) {
  const command = binary ?? ""
  const port = yield* LocalPort.free
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "svc-prometheus-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )
  const config = {
    global: { scrape_interval: "1s", scrape_timeout: "1s" },
    scrape_configs: [{ job_name: "gateway", metrics_path: "/admin-ui/metrics", static_configs: [{ targets }] }]
  }
  writeFileSync(join(folder, "prometheus.yml"), JSON.stringify(config))
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(
        command,
        [
          `--config.file=${join(folder, "prometheus.yml")}`,
          `--storage.tsdb.path=${join(folder, "data")}`,
          `--web.listen-address=127.0.0.1:${port}`
        ],
        { stdio: "ignore" }
      )
    ),
    (child) =>
      Effect.promise(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, "exit")
        child.kill("SIGKILL")
        await ended
      })
  )
  /** What a query answers now, `[labels, value]` each; nothing where it cannot be asked yet. */
  return (query: string) =>
    Effect.promise(() =>
      fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`)
        .then((answer) => answer.text())
        .then((text) => decode(text).data.result.map(({ metric, value }) => [metric, Number(value[1])] as const))
        .catch(() => [])
    )
})
