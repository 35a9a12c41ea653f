import { randomUUID } from "node:crypto"
import { Context, Deferred, Effect, Exit, Layer, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { IdentityVerifier } from "../../src/gateway/auth/IdentityVerifier.ts"
import { Destinations } from "../../src/gateway/forward/Destination.ts"
import { ObjectOwners } from "../../src/gateway/forward/objects/ObjectOwners.ts"
import { GovernedRequests } from "../../src/gateway/GovernedRequests.ts"
import { UsageLimits } from "../../src/gateway/limits/UsageLimits.ts"
import { ProxyApp } from "../../src/gateway/ProxyApp.ts"
import { RequestGuardrails } from "../../src/gateway/RequestGuardrails.ts"
import { BodyAdmission } from "../../src/gateway/request/BodyAdmission.ts"
import type { Wire } from "../../src/gateway/request/Wire.ts"
import { ControlState } from "../../src/gateway/snapshot/ControlState.ts"
import type { RequestOutcome } from "../../src/gateway/telemetry/RequestOutcome.ts"
import { UsageLog } from "../../src/gateway/usage/UsageLog.ts"
import { writeBatch } from "../../src/gateway/usage/UsageWriter.ts"
import { Guardrails } from "../../src/guardrails/Guardrails.ts"
import type { GuardrailPolicyPatch } from "../../src/policy/GuardrailPolicy.ts"
import { compatLimits, type RouteId } from "../../src/policy/routes/CanonicalRoute.ts"
import * as CompatPaths from "../../src/policy/routes/CompatPaths.ts"
import type { Passthrough } from "../../src/policy/routes/Passthrough.ts"
import * as StartupUpstreams from "../../src/policy/routes/StartupUpstreams.ts"
import * as UpstreamBase from "../../src/policy/routes/UpstreamBase.ts"
import { GatewaySettings } from "../../src/process/GatewaySettings.ts"
import { Database } from "../../src/services/Database.ts"
import { Egress } from "../../src/services/Egress.ts"
import { Redis, RedisError } from "../../src/services/Redis.ts"
import * as Changes from "../../src/state/Changes.ts"
import { digest, mint } from "../../src/state/Secret.ts"
import { usageQueue } from "../../src/state/UsageQueue.ts"
import type { UsageRecord } from "../../src/state/UsageRecord.ts"
import * as UsageRow from "../../src/state/UsageRow.ts"
import { Vault } from "../../src/state/Vault.ts"
import * as MigratedDatabase from "../MigratedDatabase.ts"
import * as ScriptedEgress from "../ScriptedEgress.ts"
import { type ClientRequest, type RecordingWire, make as wireOf } from "./RecordingWire.ts"
import * as ScriptedUpstream from "./ScriptedUpstream.ts"

/** One database for the tests of a file; each gateway of theirs starts from its seeds. */
export const database = MigratedDatabase.embedded

export interface Options {
  readonly upstream?: ScriptedUpstream.Script
  /** Who answers where operators' addresses lead. Without it, nobody does. */
  readonly egress?: ScriptedEgress.Script
  readonly settings?: Partial<GatewaySettings["Service"]>
  readonly upstreams?: Partial<StartupUpstreams.UpstreamsByFamily>
  /** The identity provider behind the egress door, in place of `egress`. */
  readonly issuer?: Egress["Service"]["fetch"]
  /** That of another gateway. */
  readonly redis?: Redis["Service"]
  /** Says what operators had configured before the gateway started. */
  readonly configured?: Effect.Effect<unknown, unknown, Database>
}

/** A whole gateway between a client in memory and a scripted upstream, on the seeds of an empty database, at noon. */
export const make = Effect.fnUntraced(function* (options: Options = {}) {
  yield* reset
  yield* Effect.orDie(options.configured ?? Effect.void)
  return yield* restarted(options)
})

/** Another process, on what is in the database. */
export const restarted = Effect.fnUntraced(function* (options: Options = {}) {
  const journal: Array<string> = []
  const sent: Array<ScriptedUpstream.Sent> = []
  const asked: Array<ScriptedEgress.Asked> = []
  const egress =
    options.issuer === undefined
      ? ScriptedEgress.layer(options.egress, asked)
      : Layer.succeed(Egress, { fetch: options.issuer })
  let redisIsGone = false
  const memory =
    options.redis ?? Context.get(yield* Layer.build(Layer.fresh(RedisMemory.layer({ prefix: "svc-test:" }))), Redis)
  const redis: Redis["Service"] = {
    ...memory,
    command: (name, ...args) => Effect.suspend(() => (redisIsGone ? Effect.fail(gone) : memory.command(name, ...args))),
    run: (script, keys, args) =>
      Effect.suspend(() => (redisIsGone ? Effect.fail(gone) : memory.run(script, keys, args))).pipe(
        Effect.tap(() => Effect.sync(() => journal.push(script.name)))
      )
  }
  const app = Context.get(
    yield* Layer.build(
      Layer.fresh(program).pipe(
        Layer.provide([
          Layer.succeed(Redis, redis),
          ScriptedUpstream.layer(options.upstream ?? ScriptedUpstream.json({ data: [] }), sent),
          egress,
          Vault.layer(Option.none()),
          Guardrails.layer.pipe(Layer.provide(egress)),
          Layer.succeed(GatewaySettings, { ...settings, ...options.settings }),
          Layer.succeed(StartupUpstreams.StartupUpstreams, { ...upstreams, ...options.upstreams })
        ])
      )
    ),
    ProxyApp
  )
  /** Ends with the answer. To interrupt it is to hang up, and to wait for what comes of that. */
  const handle = (wire: Wire) =>
    Effect.suspend(() => {
      const over = Deferred.makeUnsafe<RequestOutcome>()
      const hungUp = app.handleUnsafe(wire, (ended) => Deferred.doneUnsafe(over, Exit.succeed(ended)))
      return Effect.onInterrupt(Deferred.await(over), () =>
        Effect.andThen(
          Effect.sync(() => hungUp()),
          Deferred.await(over)
        )
      )
    })
  /** Sends a request and waits for the end of its answer. */
  const ask = (request: ClientRequest): Effect.Effect<RecordingWire> =>
    Effect.suspend(() => {
      const wire = wireOf(request, journal)
      return Effect.as(handle(wire), wire)
    })
  return {
    ask,
    asked,
    handle,
    journal,
    sent,
    redis: memory,
    /** Records that wait for the database, oldest first. */
    records: Effect.map(memory.command("LRANGE", memory.key(usageQueue), "0", "-1"), (lines) =>
      (Array.isArray(lines) ? lines : []).map((line) => recordOf(String(line)))
    ),
    /** What the key's meters hold in the window of noon: tokens of the minute, nano-dollars of the day. */
    held: (keyId: string) =>
      Effect.all({
        tokens: counter(memory, `rl:tpm:${keyId}:202611201200`),
        nanos: counter(memory, `budget:daily:${keyId}:20261120`)
      }).pipe(Effect.orDie),
    /** Moves the records that wait into the database. */
    written: Effect.provideService(writeBatch, Redis, memory),
    /** Redis loses a key. */
    forgets: (name: string) => Effect.asVoid(memory.command("DEL", memory.key(name))),
    redisGoes: Effect.sync(() => {
      redisIsGone = true
    }),
    redisReturns: Effect.sync(() => {
      redisIsGone = false
    })
  }
})

const counter = (redis: Redis["Service"], name: string) =>
  Effect.map(redis.command("GET", redis.key(name)), (value) => Number(value ?? 0))

/** Without the writer: records stay in their queue. */
export const program = ProxyApp.layer.pipe(
  Layer.provide([GovernedRequests.layer, IdentityVerifier.layer]),
  Layer.provide([Destinations.layer, BodyAdmission.layer, RequestGuardrails.layer, ObjectOwners.layer, UsageLog.layer]),
  Layer.provide([UsageLimits.layer, ControlState.layer])
)

export const noon = Date.parse("2026-11-20T12:00:00Z")

/** What a line of the queue says, as the database reads it. */
const recordOf = (line: string): UsageRecord => {
  const fields = line.split("\t")
  const members = UsageRow.columns.map(([name, type], index) => {
    const field = fields[index] ?? ""
    const isText = type === "text" || type === "uuid"
    return `"${name}":${field === "" ? null : isText ? JSON.stringify(field) : field}`
  })
  return JSON.parse(`{${members}}`)
}

const gone = new RedisError({ operation: "script", retryable: true, cause: new Error("gone") })

/** An upstream that the environment names. */
export const upstreamOf = (
  name: StartupUpstreams.StartupUpstream["name"],
  address: string,
  key?: string
): StartupUpstreams.StartupUpstream => ({
  name,
  base: UpstreamBase.of(address),
  serviceKey: Option.map(Option.fromUndefinedOr(key), (key) => Redacted.make(key))
})

export const settings: GatewaySettings["Service"] = {
  upstreamUiPaths: [],
  directCompat: Option.some({
    base: UpstreamBase.of("https://compat.test"),
    serviceKey: Redacted.make("compat-secret")
  }),
  directCompatPaths: CompatPaths.defaultPaths,
  directCompatOwnership: "project",
  directCompatLimits: compatLimits,
  workerToken: Option.some(Redacted.make("worker-secret")),
  maxBufferedRequests: 100,
  maxInflightBufferBytes: 10_000_000
}

/** The direct compatible upstream elsewhere. */
export const compatAt = (address: string): Partial<GatewaySettings["Service"]> => ({
  directCompat: Option.some({ base: UpstreamBase.of(address), serviceKey: Redacted.make("compat-secret") })
})

export const upstreams: StartupUpstreams.UpstreamsByFamily = {
  ...StartupUpstreams.noUpstreams,
  both: Option.some(upstreamOf("UPSTREAM_BASE_URL", "https://upstream.test", "startup-secret"))
}

/** The same upstream without a credential. */
export const keyless = { both: Option.some(upstreamOf("UPSTREAM_BASE_URL", "https://upstream.test")) }

/** Noon, and a database as the migrations leave it. */
export const reset = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* TestClock.setTime(noon)
  yield* sql`TRUNCATE api_keys, projects, provider_configs, upstream_credential_mappings, model_prices, usage_events, gateway_auth_settings CASCADE`
  yield* sql`UPDATE canonical_routes SET enabled = true, mode = 'managed_by_gateway', timeout_ms = 120000,
    max_request_body_bytes = 1048576, max_response_body_bytes = 1048576,
    limits_streams = false`
  yield* sql`DELETE FROM upstream_passthrough_settings`
  yield* sql`INSERT INTO upstream_passthrough_settings DEFAULT VALUES`
  yield* sql`DELETE FROM guardrail_definitions WHERE provider_kind = 'http'`
  yield* sql`UPDATE guardrail_definitions SET modes = '{pre_call,post_call,during_call}', default_on = false,
    failure_policy = 'fail_closed', runtime_config = '{"restore_output":true}', enabled = true`
})

export interface IssuedKey {
  readonly id: string
  readonly raw: string
  readonly projectId: string | null
  readonly headers: ReadonlyArray<string>
}

/** A key as control would have made it. */
export const issueKey = Effect.fnUntraced(function* (
  policy: { readonly [field: string]: unknown } = {},
  state: {
    readonly disabled?: boolean
    readonly revokedAt?: Date
    readonly expiresAt?: Date
    readonly project?: boolean
    readonly guardrails?: GuardrailPolicyPatch
  } = {}
) {
  const { sql } = yield* Database
  const [id, projectId, secret] = [randomUUID(), state.project ? randomUUID() : null, mint("rk_live_")]
  if (projectId !== null) yield* sql`INSERT INTO projects (id, name) VALUES (${projectId}, ${projectId})`
  yield* sql`INSERT INTO api_keys (id, owner_type, project_id, key_prefix, key_hash, disabled, revoked_at, expires_at, policy,
    guardrail_policy)
    VALUES (${id}, ${projectId === null ? "individual" : "project"}, ${projectId}, 'rk_live_', ${digest(secret)},
    ${state.disabled ?? false}, ${state.revokedAt ?? null}, ${state.expiresAt ?? null}, ${JSON.stringify(policy)},
    ${JSON.stringify(state.guardrails ?? {})})`
  const raw = Redacted.value(secret)
  const key: IssuedKey = { id, raw, projectId, headers: ["authorization", `Bearer ${raw}`] }
  return key
})

/** Settings of a route, as an operator saves them. */
export const configureRoute = (
  id: RouteId,
  config: {
    readonly enabled?: boolean
    readonly mode?: string
    readonly timeoutMs?: number
    readonly requestBytes?: number
    readonly responseBytes?: number
  }
) =>
  Effect.gen(function* () {
    const { sql, transaction } = yield* Database
    yield* transaction(
      Effect.andThen(
        sql`UPDATE canonical_routes SET enabled = ${config.enabled ?? true}, mode = ${config.mode ?? "managed_by_gateway"},
          timeout_ms = ${config.timeoutMs ?? 120_000}, max_request_body_bytes = ${config.requestBytes ?? 1_048_576},
          max_response_body_bytes = ${config.responseBytes ?? 1_048_576},
          limits_streams = ${config.responseBytes !== undefined} WHERE route_id = ${id}`,
        Changes.publish({ _tag: "Configuration" })
      )
    )
  })

/** What an operator saves about the wildcard; without `wanted`, that it is on. */
export const openWildcard = (wanted: Partial<Passthrough> = {}) =>
  Effect.gen(function* () {
    const { sql, transaction } = yield* Database
    yield* transaction(
      Effect.andThen(
        sql`UPDATE upstream_passthrough_settings SET ${sql.update({ enabled: true, ...wanted })}`,
        Changes.publish({ _tag: "Configuration" })
      )
    )
  })

/** A service as control would have registered it. */
export const registerService = (
  name: string,
  row: { readonly [column: string]: string | number | boolean | ReadonlyArray<string> | null } = {}
) =>
  Effect.gen(function* () {
    const { sql, transaction } = yield* Database
    const columns = {
      name,
      route_pattern: `/services/${name}/*`,
      upstream_base_url: `https://${name}.test`,
      sealed_credential: `clear.${name}-secret`,
      enabled: true,
      ...row
    }
    const address = columns.upstream_base_url
    const bound = { credential_origin: typeof address === "string" ? new URL(address).origin : null, ...columns }
    yield* transaction(
      Effect.andThen(
        sql`INSERT INTO service_registrations ${sql.insert(bound)}`,
        Changes.publish({ _tag: "Configuration" })
      )
    )
  })

export const chat = "/v1/chat/completions"
export const messages = "/v1/messages"
