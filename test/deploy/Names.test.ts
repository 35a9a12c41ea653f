import { assert, describe, it } from "@effect/vitest"
import { roles } from "../../layers/DoorOptions.ts"
import { read, rows, section } from "../Guides.ts"
import { all, exists, type Files, repository, withMistake } from "./Files.ts"
import * as Program from "./Program.ts"

/** Variables of other programs, and those that only files here have. */
const others: Readonly<Record<string, ReadonlyArray<string>>> = {
  servers: [
    "POSTGRES_USER",
    "POSTGRES_DB",
    "POSTGRES_PASSWORD",
    "RABBITMQ_DEFAULT_USER",
    "RABBITMQ_DEFAULT_PASS",
    "RABBITMQ_LOGS",
    "REDISCLI_AUTH"
  ],
  grafana: [
    "GF_SECURITY_ADMIN_PASSWORD",
    "GF_USERS_ALLOW_SIGN_UP",
    "GF_ANALYTICS_REPORTING_ENABLED",
    "GF_ANALYTICS_CHECK_FOR_UPDATES",
    "GF_PLUGINS_PREINSTALL_DISABLED"
  ],
  environment: ["SVC_IMAGE", "TASKS_OPTION", "REDIS_PASSWORD", "RABBITMQ_PASSWORD", "GRAFANA_PASSWORD"],
  unit: ["SVC_OPTIONS", "AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"],
  build: ["NODE_VERSION"],
  /** Tests, and what Kubernetes would set. */
  mentioned: ["SVC_TEST_DEPLOY_ROOT", "GATEWAY_PORT"]
}

const knownVariables = new Set([...Program.variables, ...Object.values(others).flat()])

/** Ports of the program, of its neighbours, and of those where the compose project publishes. */
const knownPorts = new Set([...Object.values(Program.ports), 8084, 8404])

const commands = rows(section("layers/README.md", "## Commands")).flatMap((row) =>
  [...(row.split("|")[1] ?? "").matchAll(/`([a-z -]+)`/g)].map(([, command = ""]) => command)
)

const named = (text: string, pattern: RegExp): ReadonlyArray<string> =>
  [...text.matchAll(pattern)].map(([whole, name]) => name ?? whole)

/** Dashboards and rules of alerts have tests of their own. */
const checked = all.filter((path) => !/^deploy\/(?:grafana\/dashboards|prometheus\/rules)\//.test(path))

/** What a file names that is not there. */
const problemsOf = (files: Files): ReadonlyArray<string> =>
  checked.flatMap((path) => {
    const text = files(path)
    const words = named(text, /\bsvc-runtime((?: [a-z-]+){1,2})/g).map((found) => found.trim())
    return [
      ...named(text, /\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b/g).filter((name) => !knownVariables.has(name)),
      ...named(text, /\/admin-ui\/[\w/.-]*\w/g).filter((found) => !Program.paths.has(found)),
      ...named(text, /(?<![\d.])(8\d{3})(?![\d.])/g).filter((port) => !knownPorts.has(Number(port))),
      ...named(text, /\b(?:gateway|svc)_[a-z0-9_]{4,}/g).filter((metric) => !Program.isMetric(metric)),
      ...named(text, /(?<!test\/)\bdeploy\/[\w./@-]*\w/g).filter((file) => file !== "deploy/.env" && !exists(file)),
      ...named(text, /svc-runtime@(\w+)/g).filter((role) => role !== "service" && !roles.some((one) => one === role)),
      ...named(text, /exit code (?:is |= ?)?(\d+)/gi).filter((code) => Number(code) !== Program.refusedExitCode),
      ...words.filter((word) => isCommandLike(word) && !isCommand(word))
    ].map((name) => `${path} names ${name}`)
  })

/** In prose the name of the program stands before any word. */
const isCommandLike = (words: string): boolean => commands.some((command) => command.startsWith(firstOf(words)))
const isCommand = (words: string): boolean => commands.includes(words) || roles.some((role) => role === firstOf(words))
const firstOf = (words: string): string => words.split(" ")[0] ?? ""

const readme = "deploy/README.md"

const mistakes = [
  [readme, "GATEWAY_DRAIN_DELAY_SECONDS", "GATEWAY_DRAIN_WAIT_SECONDS", "GATEWAY_DRAIN_WAIT_SECONDS"],
  [readme, "/admin-ui/readyz", "/admin-ui/ready", "/admin-ui/ready"],
  [readme, "listens on 8080", "listens on 8000", "8000"],
  [readme, "gateway_active_requests", "gateway_running_requests", "gateway_running_requests"],
  [readme, "deploy/kubernetes/production\n", "deploy/kubernetes/overlays\n", "deploy/kubernetes/overlays"],
  [readme, "svc-runtime@control", "svc-runtime@operator", "operator"],
  [readme, "the exit code is 78", "the exit code is 77", "77"],
  [readme, "svc-runtime audit verify", "svc-runtime audit check", "audit check"],
  ["deploy/healthcheck.mjs", "GATEWAY_CONTROL_BIND_ADDR", "GATEWAY_CONTROL_ADDR", "GATEWAY_CONTROL_ADDR"],
  ["deploy/healthcheck.mjs", "/admin-ui/readyz", "/readiness/admin-ui/alive", "/admin-ui/alive"],
  ["deploy/healthcheck.mjs", "127.0.0.1:8081", "127.0.0.1:8091", "8091"],
  ["deploy/new-env.sh", "s/^SVC_STATUS_TOKEN=", "s/^SVC_STATUSES_TOKEN=", "SVC_STATUSES_TOKEN"],
  ["deploy/kubernetes/base/control.yaml", "REDIS_URL", "REDIS_URI", "REDIS_URI"],
  ["deploy/systemd/svc-runtime@.service", "svc-runtime@gateway", "svc-runtime@proxy", "proxy"]
] as const

describe("the files of deploy", () => {
  it("name nothing that does not exist", () => {
    assert.deepStrictEqual(problemsOf(repository), [])
  })

  it.each(mistakes)("%s: a mistake is found: %s → %s", (path, right, wrong, name) => {
    assert.include(problemsOf(withMistake(path, right, wrong)), `${path} names ${name}`)
  })

  it("show the table of services as the compose project has it", () => {
    const services = rows(section(readme, "## One machine")).flatMap((row) =>
      named(row.split("|")[1] ?? "", /`([\w-]+)`/g)
    )
    const project = named(
      read("deploy/compose.yaml")
        .replace(/^[\s\S]*^services:/m, "")
        .replace(/^networks:[\s\S]*/m, ""),
      /^ {2}([\w-]+):$/gm
    )
    assert.sameMembers([...services], [...project])
  })
})
