import { execFileSync } from "node:child_process"
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import manifest from "../../package.json" with { type: "json" }
import { root } from "../Guides.ts"
import * as Compose from "./Compose.ts"
import { type Mistake, repository, variables, withMistake } from "./Files.ts"

const { examplePath, path } = Compose

const mistakes: ReadonlyArray<Mistake> = [
  [path, "command: [control]", "comand: [control]", "must NOT have additional properties"],
  [path, "condition: service_healthy", "condition: healthy", "must be equal to one of the allowed values"],
  [path, "command: [control]", "command: [controls]", "the program does not accept controls"],
  [path, "command: [control]", "command: [all]", "control runs the role all"],
  [path, "command: [gateway]", 'command: [gateway, "--example"]', "The role gateway has no tasks"],
  [path, "GATEWAY_DRAIN_SECONDS:", "GATEWAY_DRAIN_TIME:", "the program has no variable GATEWAY_DRAIN_TIME"],
  [path, 'GATEWAY_DRAIN_SECONDS: "30"', 'GATEWAY_DRAIN_SECONDS: "thirty"', "GATEWAY_DRAIN_SECONDS must be a whole"],
  [path, "REDIS_URL: redis:", "REDIS_URL: http:", "REDIS_URL must be a URL"],
  [path, /RABBITMQ_URL: .*/, "", "Set RABBITMQ_URL"],
  [path, /SVC_STATUS_TOKEN: .*/, "", "SVC_STATUS_TOKEN is required"],
  [path, "SVC_STATUS_BIND_ADDR: 0.0.0.0:8082", "SVC_STATUS_BIND_ADDR: 127.0.0.1:8082", "which nothing else reaches"],
  [path, "stop_grace_period: 90s\n  ulimits", "stop_grace_period: 60s\n  ulimits", "killed after 60 seconds"],
  [path, "stop_grace_period: 90s\n  ulimits", "ulimits", "killed after 10 seconds"],
  [path, "ulimits: { nofile: 65536 }", "ulimits: { nofile: 1024 }", "gateway-a has too few files for its connections"],
  [path, '"127.0.0.1:8081:8081"', '"8081:8081"', "control publishes 8081:8081 to other machines"],
  [path, '"127.0.0.1:8081:8081"', '"127.0.0.1:8081:8080"', "control publishes 127.0.0.1:8081:8080, where it does not"],
  [path, "@postgres:5432", "@database:5432", "gateway-a uses database, which does not exist"],
  [path, "redis: { condition: service_healthy }\n\nx-tasks", "\n\nx-tasks", "gateway-a does not wait for redis"],
  [path, "networks: [default, data]", "networks: [default]", "gateway-a does not reach postgres"],
  [path, "networks: [data]", "networks: [dta]", "postgres is in the network dta, which does not exist"],
  [path, "internal: true", "internal: false", "redis is in a network that leads outside"],
  [path, "networks: [data]", 'networks: [data]\n    ports: ["127.0.0.1:5432:5432"]', "postgres publishes a port"],
  [path, /POSTGRES_PASSWORD: .*/, "POSTGRES_PASSWORD: postgres", "POSTGRES_PASSWORD is written"],
  [path, /svc:.*@postgres/, "svc:postgres@postgres", "a password is written in a URL"],
  [path, /(GRAFANA_PASSWORD):\?/, "$1:-admin", "GRAFANA_PASSWORD has a default"],
  [path, /GRAFANA_PASSWORD:\?/, "GRAFANA_SECRET:?", "deploy/.env.example lacks GRAFANA_SECRET"],
  [path, "restart: unless-stopped", 'restart: "no"', "redis is not restarted"],
  [path, "read_only: true", "read_only: false", "rabbitmq can write to its image"],
  [path, "cap_drop: [ALL]", "cap_drop: [NET_RAW]", "grafana keeps capabilities"],
  [path, "no-new-privileges:true", "no-new-privileges:false", "prometheus can get privileges"],
  [path, "image: redis:8.0.4-bookworm", "image: redis", "redis has no version"],
  [path, "appendonly yes", "appendonly no", "redis does not have appendonly yes"],
  [path, "noeviction", "allkeys-lru", "redis does not have maxmemory-policy noeviction"],
  [path, 'volumes: ["redis:/data"]', 'volumes: ["rdis:/data"]', "the volume rdis, which does not exist"],
  [path, "./prometheus/rules:", "./prometheus/rule:", "mounts deploy/prometheus/rule, which does not exist"],
  [path, "rules:ro", "rules", "prometheus can write to deploy/prometheus/rules"],
  [path, / {4}healthcheck:\n {6}test: \["CMD", "pg_isready".*\n(?: {6}.*\n)*/, "", "postgres has no health check"],
  [examplePath, "REDIS_PASSWORD=", "REDIS_PASSWORD=redis", "deploy/.env.example has a value of REDIS_PASSWORD"],
  [examplePath, "TASKS_OPTION=--example", "", "deploy/.env.example lacks TASKS_OPTION"],
  [
    examplePath,
    "TASKS_OPTION=--example",
    "TASKS_OPTION=--examples",
    "the program does not accept messaging --examples"
  ],
  [examplePath, "LOG_LEVEL=info", "LOG_LEVEL=loud", "LOG_LEVEL must be trace"],
  [examplePath, "LOG_LEVEL=info", "LOG_LEVEL=info\nLOG_FORMAT=json", "names LOG_FORMAT, which the project does not use"]
]

describe("compose.yaml", () => {
  it.live("keeps its rules", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Compose.problemsOf(repository), [])
    })
  )

  it.live.each(mistakes)("%s: a mistake is found: %s → %s", ([file, right, wrong, named]) =>
    Effect.gen(function* () {
      assert.include((yield* Compose.problemsOf(withMistake(file, right, wrong))).join("\n"), named)
    })
  )

  it("refuses to start without each password and token", () => {
    const { missing } = Compose.load(repository, {})
    assert.includeMembers(missing, [
      "POSTGRES_PASSWORD",
      "REDIS_PASSWORD",
      "RABBITMQ_PASSWORD",
      "GRAFANA_PASSWORD",
      "SVC_STATUS_TOKEN",
      "GATEWAY_ADMIN_TOKEN",
      "GATEWAY_ENCRYPTION_KEY"
    ])
  })

  it("has each role, and two gateways", () => {
    const { services } = Compose.load(repository, Compose.filledIn(repository)).project
    const roles = Object.values(services)
      .filter(Compose.isOfProgram)
      .map(({ command = [] }) => command[0])
    assert.sameMembers(roles, ["gateway", "gateway", "control", "messaging", "status", "graph"])
  })

  it("builds the image of this version", () => {
    assert.strictEqual(variables(repository(examplePath))["SVC_IMAGE"], `svc-runtime:${manifest.version}`)
  })
})

describe("new-env.sh", () => {
  const folder = () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-test-env-"))
    for (const name of ["new-env.sh", ".env.example"]) cpSync(join(root, "deploy", name), join(folder, name))
    return folder
  }
  const run = (folder: string) => execFileSync("sh", [join(folder, "new-env.sh")], { stdio: "pipe" })

  it("makes secrets that nobody else has and nobody else can read, and never replaces them", () => {
    const folders = [folder(), folder()]
    try {
      const [first = {}, second = {}] = folders.map((folder) => {
        run(folder)
        return variables(readFileSync(join(folder, ".env"), "utf8"))
      })
      assert.deepStrictEqual(Compose.load(repository, first).missing, [])
      const secrets = Object.keys(first).filter((name) => first[name] !== second[name])
      assert.sameMembers(
        secrets,
        Object.keys(Compose.filledIn(repository)).filter(
          (name) => first[name] !== variables(repository(examplePath))[name]
        )
      )
      assert.lengthOf(secrets, 7)
      assert.strictEqual(statSync(join(folders[0] ?? "", ".env")).mode & 0o777, 0o600)
      assert.throws(() => run(folders[0] ?? ""), /exists already/)
    } finally {
      for (const folder of folders) rmSync(folder, { recursive: true })
    }
  })

  it.live("makes secrets that the program accepts", () =>
    Effect.gen(function* () {
      const made = folder()
      run(made)
      const { project } = Compose.load(repository, variables(readFileSync(join(made, ".env"), "utf8")))
      rmSync(made, { recursive: true })
      for (const service of Object.values(project.services).filter(Compose.isOfProgram)) {
        yield* Compose.startOf(repository, service)
      }
    })
  )
})
