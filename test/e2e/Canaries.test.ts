import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import * as RedisProcess from "../RedisProcess.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { type Answer, call, hello } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"
import * as Guarded from "./Guarded.ts"

const forged = Guarded.makeForgedHeaders()
const cookie = "session=canary-cookie"

/** Every route of the proxy listener, as a client calls it. */
const routes: ReadonlyArray<readonly [path: string, body?: object]> = [
  ["/v1/chat/completions", { model: "m", messages: hello }],
  ["/v1/chat/completions", { model: "m", messages: hello, stream: true }],
  ["/v1/chat/completions", { model: "simulate-500", messages: hello }],
  ["/v1/chat/completions", { model: "simulate-cut", messages: hello }],
  ["/v1/responses", { model: "m", input: "hello there", stream: true }],
  ["/v1/embeddings", { model: "m", input: "hello there" }],
  ["/v1/messages", { model: "m", max_tokens: 16, messages: hello, stream: true }],
  ["/v1/messages/count_tokens", { model: "m", messages: hello }],
  [
    "/v1/messages/batches",
    { requests: [{ custom_id: "one", params: { model: "m", max_tokens: 1, messages: hello } }] }
  ],
  ["/v1/messages/batches"],
  ["/v1/messages/batches/msgbatch_unknown"],
  ["/v1/messages/batches/msgbatch_unknown/results"],
  ["/v1/messages/batches/msgbatch_unknown/cancel", {}],
  ["/v1/models"]
]

const families = {
  a: ["chat-completions", "responses", "embeddings"],
  b: [
    "messages",
    "messages-count-tokens",
    "message-batches",
    "message-batch",
    "message-batch-results",
    "message-batch-cancel",
    "models"
  ]
} as const

const everyRoute = Object.entries(families).flatMap(([family, ids]) =>
  ids.map((id) => `/family-${family}-routes/${id}`)
)

/**
 * How a client may present itself, and the credential that the upstream then gets; `undefined`: the upstream hears
 * nothing.
 */
interface Caller {
  readonly name: string
  readonly secret: string
  /** Family B's clients send their key as `x-api-key`. */
  readonly inApiKey?: boolean
  readonly managed: string | undefined
  readonly direct: string | undefined
}

class Traffic extends Context.Service<
  Traffic,
  {
    readonly guarded: Guarded.Guarded
    readonly callers: ReadonlyArray<Caller>
    readonly answers: ReadonlyArray<Answer>
    /** What the operator API said, but for the answers that mint a key. */
    readonly operatorSaw: string
    readonly metrics: string
    readonly rows: ReadonlyArray<string>
  }
>()("test/e2e/Canaries/Traffic") {
  static readonly layer = Layer.effect(
    Traffic,
    Effect.gen(function* () {
      const guarded = yield* Guarded.make()
      const { gateway, own } = guarded
      const callers = yield* Effect.promise(() => introduce(guarded))
      const answers: Array<Answer> = []
      const send = (mode: string, caller: Caller, path: string, body?: object, more = {}) =>
        call(gateway, path, caller.inApiKey ? undefined : caller.secret, {
          ...(body === undefined ? {} : { body }),
          headers: {
            ...forged,
            ...(caller.inApiKey ? { "x-api-key": caller.secret } : {}),
            cookie,
            "x-request-id": `${mode}/${caller.name}/${path}`,
            ...more
          }
        }).pipe(
          // the simulator cuts some answers on purpose
          Effect.catchDefect(() => Effect.succeed({ status: 0, headers: new Headers(), text: "" })),
          Effect.tap((answer) => Effect.sync(() => answers.push(answer)))
        )
      for (const mode of ["managed", "direct"] as const) {
        yield* Effect.forEach(
          everyRoute,
          (route) => Effect.promise(() => gateway.operate("PATCH", `${route}/mode`, { mode: modes[mode] })),
          { concurrency: 4 }
        )
        for (const [path, body] of routes) {
          const able = callers.filter((caller) => usable(caller, path))
          yield* Effect.forEach(able, (caller) => send(mode, caller, path, body), { concurrency: 4 })
        }
      }
      for (const caller of callers) {
        const worker = { "x-svc-worker-token": own.workerToken, "x-svc-task-id": "task-1", "x-svc-run-id": "run-1" }
        const [path, body] = ["/providers/compat/v1/chat/completions", { model: "m", messages: hello }]
        yield* send("compat", caller, path, body, worker)
        yield* send("managed", caller, "/no/such/route")
      }
      const operatorSaw = yield* Effect.promise(() => look(guarded))
      const metrics = yield* Effect.promise(async () => (await fetch(`${gateway.control}/admin-ui/metrics`)).text())
      yield* Effect.promise(() => {
        // what is exported or written late, is then out
        gateway.signal("SIGTERM")
        return gateway.exited
      })
      const rows = yield* Guarded.everyRow(guarded.deployment)
      return Traffic.of({ guarded, callers, answers, operatorSaw, metrics, rows })
    })
  )
}

const usable = ({ inApiKey }: Caller, path: string): boolean => inApiKey !== true || path.startsWith("/v1/messages")

/** A batch that no key created is nobody's; whoever brings an upstream credential of their own sees to it themselves. */
const isForwarded = ({ name }: Caller, path: string): boolean =>
  name === "foreign" || !path.includes("msgbatch_unknown")

const modes = { managed: "managed_by_gateway", direct: "direct_upstream_passthrough" } as const

const Row = Schema.Struct({ id: Schema.String })
const idOf = (value: unknown) => Schema.decodeUnknownSync(Row)(value).id

/** Credentials at every step of the resolution, and callers that end at each. */
const introduce = async ({ deployment, gateway, own, upstream }: Guarded.Guarded): Promise<ReadonlyArray<Caller>> => {
  const project = idOf(await gateway.operate("POST", "/projects", { name: "mapped" }))
  const mapped = await RunningGateway.createKey(gateway, { policy: { daily_budget_usd: 1_000 } })
  const ofProject = await RunningGateway.createKey(gateway, { owner_type: "project", project_id: project })
  const plain = await RunningGateway.createKey(gateway)
  const revoked = await RunningGateway.createKey(gateway)
  await gateway.operate("POST", `/keys/${revoked.id}/revoke`)
  const mapping = "/providers/upstream-credentials"
  await gateway.operate("POST", mapping, { scope: "key", target_id: mapped.id, credential: own.ofKey })
  await gateway.operate("POST", mapping, { scope: "project", target_id: project, credential: own.ofProject })
  await gateway.operate("POST", "/providers", {
    provider: "upstream",
    name: "main",
    base_url: upstream.origin,
    credential: own.ofProvider,
    credential_header_mode: "custom_header",
    credential_header_name: "X-Model-Key"
  })
  // a secret in the wrong place is refused, and not repeated
  for (const body of [{ base_url: `http://user:${own.serviceKey}@127.0.0.1` }, { [own.serviceKey]: own.compatKey }]) {
    await gateway.operate("POST", "/providers", { provider: "upstream", name: "wrong", ...body }).then(
      () => assert.fail("it was taken"),
      (refusal) => assert.notInclude(String(refusal), own.compatKey)
    )
  }
  const foreign = "canary-bearer-of-the-client"
  return [
    { name: "key-mapping", secret: mapped.raw, managed: own.ofKey, direct: own.ofKey },
    { name: "project-mapping", secret: ofProject.raw, managed: own.ofProject, direct: own.ofProject },
    { name: "provider-default", secret: plain.raw, managed: own.ofProvider, direct: own.ofProvider },
    { name: "in-x-api-key", secret: plain.raw, inApiKey: true, managed: own.ofProvider, direct: own.ofProvider },
    { name: "operator", secret: deployment.adminToken, managed: undefined, direct: undefined },
    { name: "revoked", secret: revoked.raw, managed: undefined, direct: undefined },
    { name: "unknown", secret: `rk_live_${"c".repeat(64)}`, managed: undefined, direct: undefined },
    { name: "malformed", secret: "rk_live_canary", managed: undefined, direct: undefined },
    { name: "foreign", secret: foreign, managed: undefined, direct: foreign }
  ]
}

/** Everything that an operator can read. */
const look = async ({ gateway }: Guarded.Guarded): Promise<string> => {
  const paths = [
    "/keys",
    "/projects",
    "/providers",
    "/providers/upstream-credentials",
    "/family-a-routes",
    "/usage/events?limit=500",
    "/usage/summary",
    "/audit-events"
  ]
  const answers = await Promise.all(paths.map((path) => gateway.operate("GET", path)))
  return JSON.stringify(answers)
}

const textOf = ({ body, method, rawHeaders, url }: SimulatorServer.Recorded): string =>
  [method, url, ...rawHeaders, body.toString("latin1")].join("\n")

const answerText = ({ headers, text }: Answer): string => `${JSON.stringify([...headers])}\n${text}`

const found = (canaries: Readonly<Record<string, string>>, sink: string): ReadonlyArray<string> =>
  Object.entries(canaries).flatMap(([name, value]) => (sink.includes(value) ? [name] : []))

const without = (canaries: Readonly<Record<string, string>>, ...names: ReadonlyArray<string>) =>
  Object.fromEntries(Object.entries(canaries).filter(([name]) => !names.includes(name)))

/** All that must not be anywhere but where it belongs. */
const secrets = ({ callers, guarded: { own } }: Traffic["Service"]): Readonly<Record<string, string>> => ({
  ...own,
  ...forged,
  cookie,
  ...Object.fromEntries(callers.map(({ name, secret }) => [`secret of ${name}`, secret]))
})

describe.skipIf(!Deployment.available || !RedisProcess.available)("secrets, on every route and in both modes", () => {
  layer(Traffic.layer, { timeout: "90 seconds", excludeTestServices: true })((it) => {
    it.effect("are all sent: an upstream without a gateway would get every one", () =>
      Effect.gen(function* () {
        const { callers } = yield* Traffic
        const bare = yield* SimulatorServer.serve()
        yield* call({ proxy: bare.origin }, "/v1/models", callers[0]?.secret, { headers: { ...forged, cookie } })
        const [text = ""] = bare.requests.map(textOf)
        assert.deepStrictEqual(found({ ...forged, cookie }, text), Object.keys({ ...forged, cookie }))
      })
    )

    it.effect("the upstream gets the resolved credential and no other, once, and the client's cookie", () =>
      Effect.gen(function* () {
        const traffic = yield* Traffic
        const { callers, guarded } = traffic
        const forbidden = without(secrets(traffic), "cookie")
        const seen = new Set<string>()
        for (const request of guarded.upstream.requests) {
          const text = textOf(request)
          const id = request.rawHeaders[request.rawHeaders.indexOf("x-request-id") + 1] ?? ""
          const [mode, name] = id.split("/", 2)
          const caller = callers.find((caller) => caller.name === name)
          const resolved = mode === "managed" ? caller?.managed : caller?.direct
          assert.isDefined(resolved, `${id} should not have reached the upstream`)
          assert.deepStrictEqual(
            found(forbidden, text).filter((name) => forbidden[name] !== resolved),
            [],
            id
          )
          assert.strictEqual(text.split(resolved ?? "").length - 1, 1, id)
          assert.include(text, cookie, id)
          seen.add(id)
        }
        const expected = (["managed", "direct"] as const).flatMap((mode) =>
          callers.flatMap((caller) =>
            caller[mode] === undefined
              ? []
              : routes.flatMap(([path]) =>
                  usable(caller, path) && isForwarded(caller, path) ? [`${mode}/${caller.name}/${path}`] : []
                )
          )
        )
        assert.deepStrictEqual([...seen].sort(), [...new Set(expected)].sort())
      })
    )

    it.effect("the direct compatible upstream gets its own credential, and a trusted worker's token stays here", () =>
      Effect.gen(function* () {
        const traffic = yield* Traffic
        const { own, compat } = traffic.guarded
        // that a client must not send it is the model proxy's rule; to another upstream it is a header like others
        const forbidden = without(secrets(traffic), "cookie", "compatKey", "x-model-key")
        assert.isAbove(compat.requests.length, 0)
        for (const request of compat.requests) {
          const text = textOf(request)
          assert.deepStrictEqual(found(forbidden, text), [])
          assert.include(text, `Bearer ${own.compatKey}`)
          assert.include(text, "x-svc-task-id\ntask-1")
        }
      })
    )

    it.effect("no answer of the proxy listener repeats one", () =>
      Effect.gen(function* () {
        const traffic = yield* Traffic
        assert.isAbove(traffic.answers.length, 100)
        for (const answer of traffic.answers) {
          assert.deepStrictEqual(found(secrets(traffic), answerText(answer)), [])
        }
      })
    )

    it.effect("no answer of the operator API shows one", () =>
      Effect.gen(function* () {
        const traffic = yield* Traffic
        assert.include(traffic.operatorSaw, `"credential_configured":true`)
        assert.deepStrictEqual(found(secrets(traffic), traffic.operatorSaw), [])
      })
    )

    it.effect("the program's output at level trace has none", () =>
      Effect.gen(function* () {
        const traffic = yield* Traffic
        const output = traffic.guarded.gateway.output()
        assert.include(output, "managed/key-mapping//v1/chat/completions")
        assert.deepStrictEqual(found(secrets(traffic), output), [])
      })
    )

    it.effect("spans, logs and metrics that it exports have none", () =>
      Effect.gen(function* () {
        const traffic = yield* Traffic
        for (const signal of ["traces", "logs", "metrics"] as const) {
          const bytes = traffic.guarded.collector.received(signal).toString("latin1")
          assert.include(bytes, "svc-runtime", signal)
          assert.deepStrictEqual(found(secrets(traffic), bytes), [], signal)
        }
      })
    )

    it.effect("the metrics page has none, and no key's id", () =>
      Effect.gen(function* () {
        const traffic = yield* Traffic
        assert.include(traffic.metrics, "gateway_requests_total")
        assert.deepStrictEqual(found(secrets(traffic), traffic.metrics), [])
        assert.notMatch(traffic.metrics, /[0-9a-f]{8}-[0-9a-f]{4}-/)
      })
    )

    it.effect("the database has none: keys are hashes, and credentials are sealed", () =>
      Effect.gen(function* () {
        const traffic = yield* Traffic
        const dump = traffic.rows.join("\n")
        for (const table of ["usage_events", "audit_events", "api_keys", "provider_configs"]) {
          assert.include(dump, `${table} (`)
        }
        assert.deepStrictEqual(found(secrets(traffic), dump), [])
        const sealed = traffic.rows.filter((row) => /^(provider_configs|upstream_credential_mappings) /.test(row))
        assert.strictEqual(sealed.length, 3)
        for (const row of sealed) assert.match(row, /\bv1\.[0-9a-f]{8}\.[\w-]+\.[\w-]+/)
      })
    )

    it.effect("Redis was never told one", () =>
      Effect.gen(function* () {
        const traffic = yield* Traffic
        const commands = traffic.guarded.redisCommands()
        assert.include(commands, "limits:open:")
        assert.deepStrictEqual(found(secrets(traffic), commands), [])
      })
    )
  })
})
