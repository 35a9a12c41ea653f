import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, layer as describeWith, type Vitest } from "@effect/vitest"
import { Effect, Layer, Option, Predicate, Redacted, Schema } from "effect"
import { type Headers, HttpBody, HttpClient, HttpClientRequest, type HttpMethod, HttpRouter } from "effect/http"
import * as EgressHttp from "../../layers/EgressHttp.ts"
import { allowPrivateAddresses } from "../../layers/http/AddressPolicy.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import * as UpstreamHttp from "../../layers/UpstreamHttp.ts"
import * as ControlApp from "../../src/control/ControlApp.ts"
import * as Probes from "../../src/control/http/Probes.ts"
import { LiveStreams } from "../../src/control/live/LiveStreams.ts"
import * as OperatorTokens from "../../src/control/operators/OperatorTokens.ts"
import { StudioOfEnvironment, type StudioTarget } from "../../src/control/services/StudioConnection.ts"
import { UpstreamUiOrigin } from "../../src/control/upstream-ui/UpstreamUiOrigin.ts"
import { Guardrails } from "../../src/guardrails/Guardrails.ts"
import * as LiveFeed from "../../src/live/LiveFeed.ts"
import { StartupUpstreams } from "../../src/policy/routes/StartupUpstreams.ts"
import { GatewaySettings } from "../../src/process/GatewaySettings.ts"
import { Lifecycle } from "../../src/process/Lifecycle.ts"
import type { Database } from "../../src/services/Database.ts"
import type { Redis, RedisError } from "../../src/services/Redis.ts"
import type { Upstream } from "../../src/services/Upstream.ts"
import { Vault } from "../../src/state/Vault.ts"
import * as EmbeddedDatabase from "../EmbeddedDatabase.ts"
import { settings, upstreams } from "../gateway/Proxy.ts"
import * as MigratedDatabase from "../MigratedDatabase.ts"
import * as ScriptedEgress from "../ScriptedEgress.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"

/** The token of every test that does not make its own. */
export const operatorToken = `op_live_${"0123456789abcdef".repeat(4)}`

const someKey = Redacted.make(new Uint8Array(32).fill(7))

export interface Around {
  readonly vaultKey?: Option.Option<Redacted.Redacted<Uint8Array>>
  /** The studio that the environment names. */
  readonly studio?: Option.Option<StudioTarget>
  readonly upstream?: Layer.Layer<Upstream>
  /** The upstreams that the environment names. */
  readonly startup?: StartupUpstreams["Service"]
  /** In place of the control listener's own. */
  readonly routes?: typeof ControlApp.layer
  /** Where browsers find the upstream's UI. */
  readonly upstreamUiOrigin?: string
  /** In place of one in memory. */
  readonly redis?: Layer.Layer<Redis, RedisError>
  /** The way by which requests of holders reach the gateway. */
  readonly ownGateway?: Layer.Layer<never>
}

/** The control listener on a socket of its own, over a fresh database. */
export const layer = <E>(
  database: Layer.Layer<Database, E>,
  {
    ownGateway = Layer.empty,
    redis = RedisMemory.layer({ prefix: "test:" }),
    routes = ControlApp.layer,
    startup = upstreams,
    studio = Option.none(),
    upstream = UpstreamHttp.layer,
    upstreamUiOrigin,
    vaultKey = Option.some(someKey)
  }: Around = {}
) =>
  HttpRouter.serve(routes, {
    routerConfig: Probes.routerConfig,
    disableLogger: true,
    disableListenLog: true
  }).pipe(
    Layer.provideMerge(NodeHttpServer.layerTest),
    Layer.provideMerge(Layer.effectDiscard(OperatorTokens.bootstrap(Option.some(Redacted.make(operatorToken))))),
    Layer.provideMerge(
      Layer.mergeAll(
        MigratedDatabase.of(database),
        Layer.merge(LiveStreams.layer(), LiveFeed.layer).pipe(Layer.provideMerge(redis)),
        Vault.layer(vaultKey),
        EgressHttp.layer(allowPrivateAddresses),
        Layer.succeed(StudioOfEnvironment, studio),
        Lifecycle.layer("serving"),
        Guardrails.layer.pipe(Layer.provide(ScriptedEgress.layer(ScriptedEgress.guardrail))),
        Layer.succeed(GatewaySettings, settings),
        Layer.succeed(StartupUpstreams, startup),
        Layer.succeed(UpstreamUiOrigin, Option.fromUndefinedOr(upstreamUiOrigin)),
        upstream,
        ownGateway
      )
    )
  )

type Services = Layer.Success<ReturnType<typeof layer>>

/** The same tests on the embedded database and, where there is one, on a PostgreSQL server. */
export const suite = (name: string, tests: (it: Vitest.MethodsNonLive<Services>) => void) => {
  const options = { excludeTestServices: true } as const
  describeWith(layer(EmbeddedDatabase.layer), options)(`${name} (embedded)`, tests)
  describe.skipIf(TemporaryDatabase.server === null)("on a server", () => {
    describeWith(layer(TemporaryDatabase.layer), options)(`${name} (postgres)`, tests)
  })
}

export interface Answer {
  readonly status: number
  readonly headers: Headers.Headers
  readonly text: string
  readonly json: Schema.Json
}

export interface Call {
  /** `null`: no Authorization header. */
  readonly authorization?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** Sent as it is, in place of `body`. */
  readonly text?: string
}

/** One request over the socket, as the operator unless it says otherwise. */
export const call = Effect.fnUntraced(function* (method: HttpMethod.HttpMethod, path: string, options: Call = {}) {
  const { authorization = `Bearer ${operatorToken}`, headers = {}, text } = options
  const body = text ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
  const request = HttpClientRequest.make(method)(path, {
    // the embedded database may hold the process up for longer than an idle connection lasts
    headers: { connection: "close", ...(authorization !== null && { authorization }), ...headers }
  })
  const response = yield* HttpClient.execute(
    body === undefined
      ? request
      : HttpClientRequest.setBody(request, HttpBody.text(body, headers["content-type"] ?? "application/json"))
  )
  const answered = yield* response.text
  const answer: Answer = {
    status: response.status,
    headers: response.headers,
    text: answered,
    json: answered.startsWith("{") || answered.startsWith("[") ? yield* parse(answered) : null
  }
  return answer
})

const parse = Schema.decodeEffect(Schema.fromJsonString(Schema.Json))

/** What stands at `path` in a JSON value; `undefined` where nothing does. */
export const at = (json: Schema.Json | undefined, ...path: ReadonlyArray<string | number>): Schema.Json | undefined =>
  path.reduce<Schema.Json | undefined>(
    (value, step) => (Predicate.hasProperty(value, step) ? value[step] : undefined),
    json
  )

/** The refusal in an answer: its status, its code and the field that it blames. */
export const refusalOf = ({ json, status }: Answer) => ({
  status,
  code: at(json, "error", "code"),
  param: at(json, "error", "param")
})

/** An answer that must be a success, as JSON. */
export const ok = (...request: Parameters<typeof call>) =>
  Effect.map(call(...request), (answer) => {
    assert.include([200, 204], answer.status, answer.text)
    return answer.json
  })

/** The id in an answer of `ok`. */
export const idOf = (json: Schema.Json, ...path: ReadonlyArray<string>): string => {
  const id = at(json, ...path, "id")
  assert(typeof id === "string")
  return id
}

export const admin = "/admin-ui/admin"
