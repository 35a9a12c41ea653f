import { spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { inject } from "vitest"
import { root } from "../Guides.ts"
import * as Compose from "./Compose.ts"
import { type Files, type Mistake, repository, withMistake } from "./Files.ts"
import * as Monitoring from "./Monitoring.ts"

const { datasourcePath, prometheusPath, providerPath } = Monitoring

const mistakes: ReadonlyArray<Mistake> = [
  [prometheusPath, '"graph:8081"', '"graph:8082"', "Prometheus does not scrape graph:8081"],
  [prometheusPath, '"graph:8081"', '"graphs:8081"', "Prometheus scrapes graphs:8081, which does not exist"],
  [prometheusPath, "/admin-ui/metrics", "/metrics", "the program has no path /metrics"],
  [prometheusPath, "rules/*.yaml", "alerts/*.yaml", "Prometheus looks for rules in alerts"],
  [prometheusPath, "scrape_configs", "scrapes", "Missing key"],
  [datasourcePath, "http://prometheus:9090", "http://metrics:9090", "Grafana asks http://metrics:9090"],
  [datasourcePath, "isDefault: true", "isDefault: false", "not the default of dashboards"],
  [datasourcePath, "type: prometheus", "type: loki", datasourcePath],
  [providerPath, "path: /etc/grafana/dashboards", "path: /dashboards", "Grafana looks for dashboards in /dashboards"],
  [providerPath, "type: file", "type: folder", providerPath],
  [Compose.path, "provisioning/dashboards:/etc/grafana", "provisioning/dashboards:/etc", "Grafana does not read"],
  [Compose.path, "/etc/prometheus/rules:ro", "/etc/rules:ro", "Prometheus looks for rules in rules"]
]

const prometheus = inject("prometheus")
const promtool = prometheus === null ? "" : join(dirname(prometheus), "promtool")
const hasPromtool = existsSync(promtool)
if (!hasPromtool) process.stderr.write("\n  SKIPPED: what promtool says of the settings of Prometheus\n")

/** What Prometheus's own tool says of the settings, beside the rules. */
const checked = (files: Files) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-test-prometheus-"))
  cpSync(join(root, "deploy/prometheus"), folder, { recursive: true })
  writeFileSync(join(folder, "prometheus.yaml"), files(prometheusPath))
  const { status, stderr } = spawnSync(promtool, ["check", "config", join(folder, "prometheus.yaml")], {
    encoding: "utf8"
  })
  rmSync(folder, { recursive: true })
  return { status, stderr }
}

describe("the settings of Prometheus and Grafana", () => {
  it.live("keep their rules", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Monitoring.problemsOf(repository), [])
    })
  )

  it.live.each(mistakes)("%s: a mistake is found: %s → %s", ([file, right, wrong, named]) =>
    Effect.gen(function* () {
      assert.include((yield* Monitoring.problemsOf(withMistake(file, right, wrong))).join("\n"), named)
    })
  )

  it.skipIf(!hasPromtool)("are accepted by promtool, which names a wrong setting", () => {
    assert.deepStrictEqual(checked(repository), { status: 0, stderr: "" })
    const wrong = checked(withMistake(prometheusPath, "scrape_timeout", "scrap_timeout"))
    assert.strictEqual(wrong.status, 1)
    assert.include(wrong.stderr, "scrap_timeout")
  })
})
