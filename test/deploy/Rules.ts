import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Schema } from "effect"
import { inject } from "vitest"
import { parse } from "yaml"
import { anchors, guide, read } from "../Guides.ts"

const Alert = Schema.Struct({
  alert: Schema.String,
  expr: Schema.String,
  for: Schema.optionalKey(Schema.String),
  labels: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  annotations: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
})
export type Alert = typeof Alert.Type
const Recording = Schema.Struct({ record: Schema.String, expr: Schema.String })
const Rules = Schema.Struct({
  groups: Schema.Array(Schema.Struct({ name: Schema.String, rules: Schema.Array(Schema.Union([Alert, Recording])) }))
})

export const files = ["deploy/prometheus/rules/gateway.yaml", "deploy/prometheus/rules/messaging.yaml"]

const rules = files
  .map((file) => Schema.decodeUnknownSync(Rules)(parse(read(file))))
  .flatMap(({ groups }) => groups.flatMap(({ rules }) => rules))

export const alerts: ReadonlyArray<Alert> = rules.filter((rule) => "alert" in rule)

export const expressions: ReadonlyArray<string> = rules.map(({ expr }) => expr)

/** The labels that each recorded metric has left. */
export const recorded: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  rules.flatMap((rule) =>
    "record" in rule
      ? [[rule.record, new Set(rule.record.split(":", 1).flatMap((labels) => labels.split("_")))] as const]
      : []
  )
)

const runbooks = "layers/telemetry/README.md"

/** What operators miss in an alert. */
export const missingIn = ({ annotations = {}, for: lasting, labels = {} }: Alert): ReadonlyArray<string> => [
  ...(lasting === undefined ? ["for"] : []),
  ...(labels["severity"] === "critical" || labels["severity"] === "warning" ? [] : ["severity"]),
  ...["summary", "description"].filter((name) => (annotations[name] ?? "") === ""),
  ...(anchors(guide(runbooks)).some((anchor) => annotations["runbook"] === `${runbooks}#${anchor}`) ? [] : ["runbook"])
]

/** Prometheus' own tool, beside its server. */
const promtool = inject("prometheus")?.replace(/[^/]+$/, "promtool") ?? null
export const available = promtool !== null

/** What `promtool` says about files, by their names; those of the repository's rules are their paths. */
export const check = (
  command: ReadonlyArray<string>,
  contents: Readonly<Record<string, unknown>> = {}
): { readonly isOk: boolean; readonly output: string } => {
  const folder = mkdtempSync(join(tmpdir(), "svc-rules-"))
  try {
    for (const [name, content] of Object.entries(contents)) writeFileSync(join(folder, name), JSON.stringify(content))
    const { status, stderr, stdout } = spawnSync(promtool ?? "", command, { cwd: folder, encoding: "utf8" })
    return { isOk: status === 0, output: stdout + stderr }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Whether queries are PromQL. */
export const checkQueries = (queries: ReadonlyArray<string>) =>
  check(["check", "rules", "queries.yaml"], {
    "queries.yaml": {
      groups: [{ name: "queries", rules: queries.map((expr, index) => ({ record: `query:${index}`, expr })) }]
    }
  })
