import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Redacted, type Scope } from "effect"
import manifest from "../../package.json" with { type: "json" }
import { root } from "../Guides.ts"
import * as RedisProcess from "../RedisProcess.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"
import { refusing, serve } from "../upstream/ScriptedServer.ts"
import { chat, codeOf, message, messageOf } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

/** A process that is expected not to start: its exit code, everything it said, and how long it took. */
const refused = (options: RunningGateway.Options) =>
  Effect.acquireUseRelease(
    Effect.sync(() =>
      RunningGateway.launch({ ...options, environment: { LOG_LEVEL: "info", ...options.environment } })
    ),
    ({ exited, output }) => Effect.timed(Effect.promise(async () => ({ code: await exited, output: output() }))),
    ({ child, exited }) =>
      Effect.promise(async () => {
        child.kill("SIGKILL")
        await exited
      })
  )

const temporaryFolder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "svc-test-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

/** Says what it must in a few lines, without a stack, and gives up in time. */
const readable = ([took, { code, output }]: Effect.Success<ReturnType<typeof refused>>, sentence: RegExp) => {
  assert.match(output, sentence)
  assert.notMatch(output, /^\s+at .*:\d+:\d+/m)
  // parts that had started already may have logged
  assert.isBelow(output.split("\n").filter((line) => line !== "" && !line.startsWith("{")).length, 12)
  assert.isTrue(typeof code === "number" && code > 0, `it ended with ${code}`)
  // far above what it takes: a machine may be busy, and a start that hangs takes for ever
  assert.isBelow(Duration.toSeconds(took), 90)
}

/** Where there is a PostgreSQL, the embedded one need not be waited for. */
const database: Readonly<Record<string, string>> =
  TemporaryDatabase.server === null ? {} : { DATABASE_URL: TemporaryDatabase.server }

/** The same for a start that gets as far as the schema. */
const ownDatabase: Effect.Effect<Readonly<Record<string, string>>, never, Scope.Scope> = TemporaryDatabase.server ===
null
  ? Effect.succeed({})
  : Effect.orDie(Effect.map(TemporaryDatabase.make, (url) => ({ DATABASE_URL: Redacted.value(url) })))

/** One wrong value for each variable; each holds a word that may not come out again. */
const mistaken: Readonly<Record<string, string>> = {
  DATABASE_URL: "mysql://root:canary-database@127.0.0.1/x",
  REDIS_URL: "http://:canary-redis@127.0.0.1",
  RABBITMQ_URL: "http://user:canary-rabbitmq@127.0.0.1",
  UPSTREAM_BASE_URL: "http://user:canary-upstream@127.0.0.1/v1",
  UPSTREAM_SERVICE_KEY: "canary service key",
  UPSTREAM_OPENAI_BASE_URL: "https://127.0.0.1/canary-openai/../v1",
  UPSTREAM_OPENAI_SERVICE_KEY: "canary openai key",
  UPSTREAM_ANTHROPIC_BASE_URL: "https://127.0.0.1/v1/messages?canary-anthropic",
  UPSTREAM_ANTHROPIC_SERVICE_KEY: "canary anthropic key",
  SVC_STORE_EXCEPTION_DETAILS: "canary-exceptions",
  SVC_TASKS_VERSION: "canary tasks version",
  UPSTREAM_UI_PATHS: "/ok/*, canary-ui-paths",
  DIRECT_COMPAT_BASE_URL: "canary-compat",
  DIRECT_COMPAT_ALLOWED_PATHS: "/*, canary-compat-paths",
  DIRECT_COMPAT_OWNERSHIP: "canary-ownership",
  DIRECT_COMPAT_SERVICE_KEY: "canary compat key",
  SVC_WORKER_TOKEN: "canary worker token",
  SVC_STUDIO_BASE_URL: "http://user:canary-studio@127.0.0.1",
  SVC_STUDIO_TOKEN: "canary studio token",
  GATEWAY_EGRESS_PRIVATE_ADDRESSES: "canary-addresses",
  GATEWAY_BIND_ADDR: "canary-address",
  GATEWAY_CONTROL_BIND_ADDR: "127.0.0.1:canary",
  GATEWAY_CORS_ORIGINS: "https://app.example, canary.example",
  GATEWAY_CONTROL_HOSTS: "gateway.example, canary.example:8081",
  GATEWAY_CONTROL_ORIGIN: "https://gateway.example/canary",
  GATEWAY_UPSTREAM_UI_BIND_ADDR: "canary-ui",
  GATEWAY_UPSTREAM_UI_ORIGIN: "https://ui.example/canary",
  SVC_PORTAL_BIND_ADDR: "canary-portal",
  SVC_PORTAL_ORIGIN: "https://keys.example/canary",
  SVC_ENVIRONMENT: "canary <b>",
  GATEWAY_PUBLIC_ORIGIN: "canary-origin",
  SVC_STATUS_BIND_ADDR: "canary-listener",
  SVC_STATUS_TOKEN: "canary token",
  LOG_LEVEL: "canary-level",
  GATEWAY_ENCRYPTION_KEY: "canary-encryption-key",
  GATEWAY_PREVIOUS_ENCRYPTION_KEY: "canary-previous-key",
  REDIS_KEY_PREFIX: "canary prefix",
  GATEWAY_DEFAULT_TIMEOUT_MS: "600001",
  GATEWAY_DEFAULT_MAX_REQUEST_BODY_BYTES: "canary-6",
  GATEWAY_DEFAULT_MAX_RESPONSE_BODY_BYTES: "canary-7",
  GATEWAY_MAX_BUFFERED_REQUESTS: "canary-0",
  GATEWAY_MAX_INFLIGHT_BUFFER_BYTES: "canary-1",
  GATEWAY_DRAIN_SECONDS: "canary-2",
  GATEWAY_WORKERS: "canary-workers",
  SVC_RETENTION_USAGE_DAYS: "0",
  SVC_RETENTION_USAGE_SUMS_DAYS: "61",
  SVC_RETENTION_GUARDRAIL_EXECUTIONS_DAYS: "canary-8",
  GATEWAY_DRAIN_DELAY_SECONDS: "canary-3",
  OTEL_EXPORTER_OTLP_ENDPOINT: "canary-endpoint",
  IDENTITY_AUTH_ENABLED: "canary-flag",
  IDENTITY_TENANT_ID: "canary".repeat(100),
  IDENTITY_OIDC_DISCOVERY_URL: "canary-discovery",
  IDENTITY_ALLOWED_GROUPS: "canary".repeat(100),
  IDENTITY_ACCEPTED_ALGORITHMS: "RS256,canary",
  IDENTITY_JWKS_CACHE_TTL_SECONDS: "canary-4",
  IDENTITY_CLOCK_SKEW_SECONDS: "canary-5",
  IDENTITY_SVC_KEY_HEADER: "canary header",
  TRUSTED_GATEWAY_HEADER_ENABLED: "canary-flag",
  TRUSTED_GATEWAY_HEADER_SECRET: "canary trusted secret"
}

describe("a start that cannot be: configuration", () => {
  it.live("names every mistake at once, without the value of any variable, and exits with 78", () =>
    Effect.gen(function* () {
      const [, { code, output }] = yield* refused({ environment: mistaken })
      assert.strictEqual(code, 78)
      assert.include(output, "invalid_configuration")
      for (const variable of Object.keys(mistaken)) assert.match(output, new RegExp(`^ +${variable} must `, "m"))
      assert.notInclude(output, "canary")
    })
  )

  it.live("identities that are asked for by halves: each variable that is missing, at once", () =>
    Effect.gen(function* () {
      const [, { code, output }] = yield* refused({
        environment: {
          IDENTITY_AUTH_ENABLED: "true",
          IDENTITY_AUDIENCE: "api://gateway",
          IDENTITY_ACCEPTED_ALGORITHMS: "HS256",
          TRUSTED_GATEWAY_HEADER_ENABLED: "true"
        }
      })
      assert.strictEqual(code, 78)
      assert.deepStrictEqual(
        output.match(/^ +(?:IDENTITY|TRUSTED)_\w+ must /gm)?.map((line) => line.trim().split(" ")[0]),
        [
          "IDENTITY_ACCEPTED_ALGORITHMS",
          "IDENTITY_TENANT_ID",
          "IDENTITY_ISSUER",
          "IDENTITY_OIDC_DISCOVERY_URL",
          "TRUSTED_GATEWAY_HEADER_SECRET"
        ]
      )
    })
  )

  it.live.each([
    { role: "gateway", door: "database", set: { REDIS_URL: "redis://127.0.0.1:1" } },
    { role: "gateway", door: "Redis", set: { DATABASE_URL: "postgres://127.0.0.1:1/x" } },
    { role: "control", door: "database", set: { REDIS_URL: "redis://127.0.0.1:1" } },
    { role: "messaging", door: "broker", set: { REDIS_URL: "redis://127.0.0.1:1" } },
    { role: "messaging", door: "Redis", set: { RABBITMQ_URL: "amqp://127.0.0.1:1" } },
    { role: "status", door: "broker", set: { REDIS_URL: "redis://127.0.0.1:1" } },
    { role: "status", door: "Redis", set: { RABBITMQ_URL: "amqp://127.0.0.1:1" } },
    { role: "graph", door: "broker", set: { REDIS_URL: "redis://127.0.0.1:1" } },
    { role: "graph", door: "Redis", set: { RABBITMQ_URL: "amqp://127.0.0.1:1" } }
  ] as const)("the role $role on a $door that is shared with nobody", ({ door, role, set }) =>
    Effect.gen(function* () {
      const ended = yield* refused({ role, environment: set })
      assert.strictEqual(ended[1].code, 78)
      readable(ended, new RegExp(`The role ${role} shares its ${door} with other processes`))
    })
  )

  it.live.each(["messaging", "status", "graph"] as const)("the role %s without tasks", (role) =>
    Effect.gen(function* () {
      const environment = { RABBITMQ_URL: "amqp://127.0.0.1:1", REDIS_URL: "redis://127.0.0.1:1" }
      const ended = yield* refused({ role, environment, example: false })
      assert.strictEqual(ended[1].code, 78)
      readable(ended, new RegExp(`The role ${role} needs tasks\\. .*--tasks ./tasks\\.ts.*--example`))
    })
  )

  it.live.each([
    ["gateway", { example: true }, /The role gateway has no tasks\. Remove --example\./],
    ["gateway", { tasks: "./tasks.ts" }, /The role gateway has no tasks\. Remove --tasks\./],
    ["all", { example: true, tasks: "./tasks.ts" }, /--tasks and --example exclude each other/]
  ] as const)("tasks that the role %s cannot run: %j", ([role, tasks, sentence]) =>
    Effect.gen(function* () {
      const environment = { DATABASE_URL: "postgres://127.0.0.1:1/x", REDIS_URL: "redis://127.0.0.1:1" }
      const ended = yield* refused({ role, environment, ...tasks })
      assert.strictEqual(ended[1].code, 78)
      readable(ended, sentence)
    })
  )

  it.live.each([
    ["is missing", undefined, /The tasks module \S+tasks\.ts does not exist: there is no file \S+tasks\.ts$/m],
    ["cannot be parsed", "export default {{", /cannot be loaded: SyntaxError: .*tasks\.ts:1/s],
    ["throws", 'const a = 1\nthrow new Error("no ink")', /cannot be loaded: Error: no ink \(at \S*tasks\.ts:2:7\)/],
    [
      "imports nothing",
      'import "./missing.ts"',
      /cannot be loaded: Error: Cannot find module '\S+missing\.ts' imported from \S+tasks\.ts$/m
    ],
    ["exports nothing", "export {}", /exports no tasks\. Export what defineTasks .*The module exports nothing\./],
    ["exports others", "export const topology = 1, workers = 2", /The module exports topology, workers\./],
    [
      "defines them wrongly",
      `import { defineTasks } from "ROOT/src/index.ts"\nexport default defineTasks({ topologies: [] })`,
      /cannot be loaded: TasksError: .*topologies must be a list of at least one topology \(at \S*tasks\.ts:2:16\)/
    ]
  ] as const)("a tasks module that %s", ([, text, sentence]) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const tasks = join(folder, "tasks.ts")
      if (text !== undefined) writeFileSync(tasks, text.replace("ROOT", root))
      const ended = yield* refused({ tasks, environment: database })
      assert.strictEqual(ended[1].code, 78)
      readable(ended, sentence)
    })
  )

  it.live.each([
    ["tasks.tsx", /Unknown file extension "\.tsx" for \S+tasks\.tsx\. This Node \(v\d\S+\) cannot load such a file\./],
    ["node_modules/own/tasks.ts", /for "\S+tasks\.ts"\. Node removes no types in node_modules\. Name a module outside/]
  ] as const)("a tasks module whose types Node does not remove: %s", ([path, sentence]) =>
    Effect.gen(function* () {
      const tasks = join(yield* temporaryFolder, path)
      mkdirSync(dirname(tasks), { recursive: true })
      writeFileSync(tasks, "export {}")
      const ended = yield* refused({ tasks, environment: database })
      assert.strictEqual(ended[1].code, 78)
      readable(ended, sentence)
    })
  )

  it.live.each([
    [
      "read a variable that is not set",
      'Layer.effectDiscard(Effect.asVoid(Config.Port("SVC_TEST_UNSET")))',
      /tasks\.ts cannot be run: a variable that it reads is missing or invalid: .*\["SVC_TEST_UNSET"\]$/m,
      78
    ],
    [
      "have a topology that the broker has otherwise",
      'Layer.effectDiscard(Effect.fail(TopologyError.of("shop", [{ field: "queue mails", problem: "differs" }])))',
      /tasks\.ts cannot be run: shop: queue mails differs\.$/m,
      78
    ],
    [
      "have a listener whose port is taken",
      'NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: PORT })',
      /tasks\.ts cannot be run: ServeError: listen EADDRINUSE: address already in use 127\.0\.0\.1:\d+$/m,
      1
    ],
    ["fail", 'Layer.effectDiscard(Effect.fail("no ink"))', /tasks\.ts cannot be run: no ink$/m, 1],
    ["fail without a word", "Layer.effectDiscard(Effect.fail(new Error()))", /tasks\.ts cannot be run: Error$/m, 1]
  ] as const)("a tasks module whose workers %s", ([, workers, sentence, expected]) =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      const { origin } = yield* serve(() => {})
      const tasks = join(folder, "tasks.ts")
      const text = `
        import { createServer } from "node:http"
        import * as NodeHttpServer from "ROOT/node_modules/@effect/platform-node/dist/NodeHttpServer.js"
        import { Config, Effect, Layer } from "ROOT/node_modules/effect/dist/index.js"
        import { defineTasks } from "ROOT/src/index.ts"
        import { SharedTasksSharedStatusTopology, TopologyError } from "ROOT/src/messaging/index.ts"
        const topology = new SharedTasksSharedStatusTopology({
          tasks_exchange: "t", tasks_queue: "t", tasks_routing_key: "t", status_exchange: "s", status_queue: "s"
        })
        export default defineTasks({ topologies: [topology], workers: ${workers} })`
      writeFileSync(tasks, text.replaceAll("ROOT", root).replace("PORT", new URL(origin).port))
      const ended = yield* refused({ tasks, environment: yield* ownDatabase })
      assert.strictEqual(ended[1].code, expected)
      readable(ended, sentence)
    })
  )

  it.live("workers of a role that runs in one process", () =>
    Effect.gen(function* () {
      const ended = yield* refused({ role: "all", flags: ["--workers", "2"] })
      assert.strictEqual(ended[1].code, 78)
      readable(
        ended,
        /The role all runs in one process: --workers is for the role gateway\. Remove --workers, or start the role gateway/
      )
    })
  )

  it.live("mistakes of the environment and doors that are missing, at once", () =>
    Effect.gen(function* () {
      const environment = { LOG_LEVEL: "canary-level", REDIS_URL: "canary-redis" }
      const [, { code, output }] = yield* refused({ role: "gateway", environment })
      assert.strictEqual(code, 78)
      const expected = [
        /^ +LOG_LEVEL must /m,
        /^ +REDIS_URL must /m,
        /^The role gateway shares its database .* DATABASE_URL/m
      ]
      for (const sentence of expected) assert.match(output, sentence)
      assert.notMatch(output, /canary|shares its Redis/)
    })
  )

  it.live("statuses for other machines without a token", () =>
    Effect.gen(function* () {
      const environment = { SVC_STATUS_BIND_ADDR: "0.0.0.0:0" }
      const ended = yield* refused({ environment })
      assert.strictEqual(ended[1].code, 78)
      readable(ended, /SVC_STATUS_TOKEN is required, because SVC_STATUS_BIND_ADDR is not a loopback address/)
    })
  )

  it.live("a listener for browsers on every address, without the one that their links name", () =>
    Effect.gen(function* () {
      const ended = yield* refused({ environment: { GATEWAY_UPSTREAM_UI_BIND_ADDR: "0.0.0.0:0" } })
      assert.strictEqual(ended[1].code, 78)
      readable(
        ended,
        /GATEWAY_UPSTREAM_UI_ORIGIN is required, because GATEWAY_UPSTREAM_UI_BIND_ADDR listens on every address/
      )
    })
  )

  it.live("a first operator token that is none", () =>
    Effect.gen(function* () {
      const environment = { ...(yield* ownDatabase), GATEWAY_ADMIN_TOKEN: "canary-operator-token" }
      const ended = yield* refused({ environment })
      assert.strictEqual(ended[1].code, 78)
      readable(ended, /GATEWAY_ADMIN_TOKEN must begin with op_live_ and have 32 to 256 characters/)
      assert.notInclude(ended[1].output, "canary")
    })
  )

  it.live("a flag that asks for a real server whose URL is not set", () =>
    Effect.gen(function* () {
      const ended = yield* refused({ flags: ["--database", "postgres"] })
      assert.strictEqual(ended[1].code, 78)
      readable(ended, /--database postgres needs DATABASE_URL, which is not set/)
    })
  )
})

describe("a start that cannot be: what the program needs is not there", () => {
  it.live("PostgreSQL refuses connections", () =>
    Effect.gen(function* () {
      const { host } = new URL(yield* refusing)
      const ended = yield* refused({ environment: { DATABASE_URL: `postgres://user:canary@${host}/x` } })
      readable(ended, /The database \(DATABASE_URL\) cannot be used: connect ECONNREFUSED/)
      assert.notInclude(ended[1].output, "canary")
    })
  )

  it.live("PostgreSQL accepts connections and says nothing", () =>
    Effect.gen(function* () {
      const { origin } = yield* serve(() => {})
      const url = `postgres://user:canary@${new URL(origin).host}/x`
      const ended = yield* refused({ environment: { DATABASE_URL: url } })
      readable(ended, /The database \(DATABASE_URL\) cannot be used/)
      assert.notInclude(ended[1].output, "canary")
    })
  )

  it.live("Redis refuses connections", () =>
    Effect.gen(function* () {
      const { host } = new URL(yield* refusing)
      const ended = yield* refused({ environment: { ...database, REDIS_URL: `redis://user:canary@${host}` } })
      readable(ended, /Redis \(REDIS_URL\) cannot be used: connect ECONNREFUSED/)
      assert.notInclude(ended[1].output, "canary")
    })
  )

  it.live.skipIf(RunningBroker.server === null || TemporaryPrefix.server === null)(
    "RabbitMQ refuses the password",
    () =>
      Effect.gen(function* () {
        const url = new URL(RunningBroker.server ?? "")
        url.password = "canary"
        const ended = yield* refused({
          role: "messaging",
          environment: { RABBITMQ_URL: url.href, REDIS_URL: TemporaryPrefix.server ?? "" }
        })
        readable(ended, /The broker \(RABBITMQ_URL\) cannot be used: ACCESS_REFUSED/)
        assert.notInclude(ended[1].output, "canary")
      })
  )

  describe.skipIf(!RedisProcess.available)("Redis refuses the password", () => {
    it.live.each(["gateway", "messaging", "status", "graph"] as const)("of the role %s", (role) =>
      Effect.gen(function* () {
        const { port } = yield* RedisProcess.make("--requirepass", "right")
        const RABBITMQ_URL = "amqp://127.0.0.1:1"
        const ended = yield* refused({
          role,
          environment: { ...database, RABBITMQ_URL, REDIS_URL: `redis://:canary@127.0.0.1:${port}` }
        })
        readable(ended, /Redis \(REDIS_URL\) cannot be used: WRONGPASS/)
        assert.notInclude(ended[1].output, "canary")
      })
    )
  })

  it.live("Redis accepts connections and says nothing", () =>
    Effect.gen(function* () {
      const { origin } = yield* serve(() => {})
      const url = `redis://user:canary@${new URL(origin).host}`
      const ended = yield* refused({ environment: { ...database, REDIS_URL: url } })
      readable(ended, /Redis \(REDIS_URL\) cannot be used: /)
      assert.notInclude(ended[1].output, "canary")
    })
  )

  it.live.each([
    "GATEWAY_BIND_ADDR",
    "GATEWAY_CONTROL_BIND_ADDR",
    "GATEWAY_UPSTREAM_UI_BIND_ADDR",
    "SVC_PORTAL_BIND_ADDR",
    "SVC_STATUS_BIND_ADDR"
  ])("the port of %s is taken", (variable) =>
    Effect.gen(function* () {
      const { origin } = yield* serve(() => {})
      const { host } = new URL(origin)
      const ended = yield* refused({ environment: { ...(yield* ownDatabase), [variable]: host }, example: true })
      readable(ended, new RegExp(`A listener cannot open: .*EADDRINUSE.*${host}\\. Set ${variable} to another address`))
    })
  )

  it.live.skipIf(!Deployment.available)("PostgreSQL has no such database", () =>
    Effect.gen(function* () {
      const { database } = yield* Deployment.make()
      const url = new URL(Redacted.value(database))
      url.pathname = "/svc_test_missing"
      url.password = "canary"
      const ended = yield* refused({ environment: { DATABASE_URL: url.href } })
      readable(ended, /The database \(DATABASE_URL\) cannot be used: .*svc_test_missing/)
      assert.notInclude(ended[1].output, "canary")
    })
  )
})

describe("a Node that is too old", () => {
  it.live.each([
    ["20.20.2", 78],
    ["22.18.0", 78],
    ["22.19.0", 0]
  ])("%s ends with %i, and in one line that says which it needs", ([version, expected]) =>
    Effect.promise(async () => {
      const pretended = `data:text/javascript,Object.defineProperty(process,"versions",{value:{node:"${version}"}})`
      const { start } = manifest.scripts
      const guard = /--import (\S+)/.exec(start)?.[1] ?? ""
      const ended = await run(process.execPath, ["--import", pretended, "--import", guard, "--eval", ""])
      assert.strictEqual(ended.code, expected)
      if (expected === 0) assert.strictEqual(ended.said, "")
      else assert.match(ended.said, /^svc-runtime needs Node 22\.19 or later, .*\n$/)
    })
  )
})

const run = (program: string, args: ReadonlyArray<string>) =>
  new Promise<{ readonly code: number; readonly said: string }>((resolve) => {
    execFile(program, args, (error, _, said) =>
      resolve({ code: typeof error?.code === "number" ? error.code : 0, said })
    )
  })

describe("an upstream URL that points nowhere", () => {
  it.live("is no reason not to start: requests get a 502 in the shape of their family", () =>
    Effect.gen(function* () {
      const gateway = yield* RunningGateway.start({
        environment: { ...(yield* ownDatabase), UPSTREAM_BASE_URL: yield* refusing, UPSTREAM_SERVICE_KEY: "k" }
      })
      const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      const a = yield* chat(gateway, key.raw)
      const b = yield* message(gateway, key.raw)
      for (const answer of [a, b]) {
        assert.deepStrictEqual([answer.status, codeOf(answer)], [502, "upstream_connection"])
        assert.strictEqual(
          messageOf(answer),
          "The upstream could not be reached. Try again shortly, or ask an operator to check the upstream."
        )
      }
      assert.match(b.text, /^\{"type":"error","error":\{"type":"api_error"/)
    })
  )
})
