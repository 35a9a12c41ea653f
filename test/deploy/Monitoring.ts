import { basename, dirname, join } from "node:path"
import { Effect, Schema } from "effect"
import * as Compose from "./Compose.ts"
import { exists, type Files, yaml } from "./Files.ts"
import * as Program from "./Program.ts"

export const prometheusPath = "deploy/prometheus/prometheus.yaml"
export const datasourcePath = "deploy/grafana/provisioning/datasources/prometheus.yaml"
export const providerPath = "deploy/grafana/provisioning/dashboards/svc-runtime.yaml"
export const dashboards = "deploy/grafana/dashboards"

const Prometheus = Schema.Struct({
  rule_files: Schema.Array(Schema.String),
  scrape_configs: Schema.Array(
    Schema.Struct({
      job_name: Schema.String,
      metrics_path: Schema.optionalKey(Schema.String),
      static_configs: Schema.Array(Schema.Struct({ targets: Schema.Array(Schema.String) }))
    })
  )
})

const Datasources = Schema.Struct({
  apiVersion: Schema.Literal(1),
  datasources: Schema.Tuple([
    Schema.Struct({
      uid: Schema.String,
      type: Schema.Literal("prometheus"),
      url: Schema.String,
      isDefault: Schema.Boolean
    })
  ])
})

const Providers = Schema.Struct({
  apiVersion: Schema.Literal(1),
  providers: Schema.Tuple([
    Schema.Struct({ type: Schema.Literal("file"), options: Schema.Struct({ path: Schema.String }) })
  ])
})

const parsed = <A>(schema: Schema.ConstraintDecoder<A>, files: Files, path: string) =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(yaml(files(path))), (error) => [`${path}: ${error.message}`])

/** The job of the program's processes. */
export const job = (files: Files) =>
  Effect.map(parsed(Prometheus, files, prometheusPath), ({ scrape_configs }) =>
    scrape_configs.filter(({ job_name }) => job_name === "svc-runtime")
  )

/** What is wrong with the settings of Prometheus and Grafana. */
export const problemsOf = (files: Files): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const prometheus = yield* parsed(Prometheus, files, prometheusPath)
    const { datasources } = yield* parsed(Datasources, files, datasourcePath)
    const { providers } = yield* parsed(Providers, files, providerPath)
    const { services } = Compose.load(files, Compose.filledIn(files)).project
    const starts = yield* Effect.forEach(
      Object.entries(services).filter(([, service]) => Compose.isOfProgram(service)),
      ([name, service]) => Effect.map(Compose.startOf(files, service), (start) => ({ name, start }))
    )
    return [
      ...targetProblems(prometheus, starts, services),
      ...ruleProblems(prometheus.rule_files, services["prometheus"]),
      ...(services[new URL(datasources[0].url).hostname]?.ports.includes("127.0.0.1:9090:9090") === true
        ? []
        : [`Grafana asks ${datasources[0].url}`]),
      ...(datasources[0].isDefault ? [] : ["Prometheus is not the default of dashboards"]),
      ...(mountedAt(services["grafana"], providers[0].options.path) === dashboards
        ? []
        : [`Grafana looks for dashboards in ${providers[0].options.path}, where there are none`]),
      ...[datasourcePath, providerPath]
        .filter(
          (path) =>
            mountedAt(services["grafana"], `/etc/grafana/provisioning/${basename(dirname(path))}`) !== dirname(path)
        )
        .map((path) => `Grafana does not read ${path}`)
    ]
  }).pipe(Effect.match({ onFailure: (problems) => problems, onSuccess: (problems) => problems }))

const targetProblems = (
  { scrape_configs }: typeof Prometheus.Type,
  starts: ReadonlyArray<{ readonly name: string; readonly start: Program.Start }>,
  services: Compose.Project["services"]
) => {
  const targets = scrape_configs.flatMap((one) =>
    one.static_configs.flatMap((config) => config.targets.map((target) => ({ target, path: one.metrics_path })))
  )
  return [
    ...starts
      .map(({ name, start }) => ({ name, target: `${name}:${start.settings.controlAddress.port}` }))
      .filter(({ target }) => !targets.some((one) => one.target === target && one.path === "/admin-ui/metrics"))
      .map(({ target }) => `Prometheus does not scrape ${target}`),
    ...targets
      .filter(({ target }) => services[target.split(":")[0] ?? ""] === undefined)
      .map(({ target }) => `Prometheus scrapes ${target}, which does not exist`),
    ...targets
      .filter(({ path }) => path !== undefined && !Program.paths.has(path))
      .map(({ path }) => `the program has no path ${path}`)
  ]
}

/** Rules are beside the settings, here as well as in the container. */
const ruleProblems = (patterns: ReadonlyArray<string>, prometheus: Compose.Service | undefined) =>
  patterns
    .map((pattern) => dirname(pattern))
    .filter((folder) => {
      const here = join(dirname(prometheusPath), folder)
      const there = join("/etc/prometheus", folder)
      return mountedAt(prometheus, there) !== here || !exists(here)
    })
    .map((folder) => `Prometheus looks for rules in ${folder}, where there are none`)

/** The file or folder of the repository that a container has at the path. */
const mountedAt = (service: Compose.Service | undefined, path: string): string | undefined => {
  const volume = service?.volumes.find((volume) => volume.split(":")[1] === path)
  return volume === undefined ? undefined : join(dirname(Compose.path), volume.split(":")[0] ?? "")
}
