import { assert } from "@effect/vitest"
import { Context, Effect, Layer, type Scope } from "effect"
import { Redis as Ioredis } from "ioredis"
import { eventually } from "../Eventually.ts"
import { chat } from "../e2e/Calls.ts"
import { configure } from "../e2e/Configure.ts"
import * as Deployment from "../e2e/Deployment.ts"
import * as RawConnection from "../RawConnection.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"
import * as ScriptedServer from "../upstream/ScriptedServer.ts"

export const available = Deployment.available

/** Limits of `/v1/chat/completions` and `/v1/messages` here: small, so that a fault is quickly one. */
export const limits = { timeout_ms: 1_500, max_request_body_bytes: 4_096, max_response_body_bytes: 2_048 } as const

/** What the upstream says when nothing is wrong. */
export const goodBody = `{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
const goodHead = ScriptedServer.head(200, [
  "content-type",
  "application/json",
  "content-length",
  String(goodBody.length)
])
const good: ScriptedServer.Script = (peer) => peer.write(goodHead + goodBody)

/** A gateway to be mistreated, and an upstream that misbehaves by the name of the model that it is asked for. */
export class Subject extends Context.Service<
  Subject,
  {
    readonly gateway: RunningGateway.RunningGateway
    readonly deployment: Deployment.Deployment
    /** A key with limits: whatever it reserves has to be settled. */
    readonly key: { readonly raw: string; readonly id: string }
    /** The requests that came to the upstream, as latin1. */
    readonly upstreamSaw: () => ReadonlyArray<string>
    /** From now on the upstream answers a request for this model by `script`. */
    readonly whenAsked: (model: string, script: ScriptedServer.Script) => Effect.Effect<void>
    /** A connection to the proxy listener, for bytes. */
    readonly connect: Effect.Effect<RawConnection.RawConnection, never, Scope.Scope>
    /** After a fault: nothing is held any more, and the next request is served. */
    readonly unharmed: Effect.Effect<void>
  }
>()("test/faults/Subject") {
  static readonly layer = Layer.effect(
    Subject,
    Effect.gen(function* () {
      const saw: Array<string> = []
      const scripts = new Map<string, ScriptedServer.Script>()
      const upstream = yield* ScriptedServer.serve(async (peer) => {
        for (;;) {
          const request = await peer.request()
          saw.push(request)
          const model = /"model":"([^"]+)"/.exec(request)?.[1] ?? ""
          await (scripts.get(model) ?? good)(peer)
        }
      })
      const deployment = yield* Deployment.make({
        environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "k" }
      })
      const gateway = yield* deployment.start()
      yield* configure(gateway, "/family-a-routes/chat-completions", limits)
      yield* configure(gateway, "/family-b-routes/messages", limits)
      const policy = { daily_budget_usd: 1_000, tpm_limit: 1_000_000_000 }
      const key = yield* Effect.promise(() => RunningGateway.createKey(gateway, { policy }))
      const heldNow = Effect.zipWith(gauges(gateway), openReservations(deployment), (...held) => held.flat())
      return Subject.of({
        gateway,
        deployment,
        key,
        upstreamSaw: () => saw,
        whenAsked: (model, script) => Effect.sync(() => void scripts.set(model, script)),
        connect: RawConnection.open(gateway.proxy),
        unharmed: Effect.gen(function* () {
          yield* eventually(heldNow, (held) => held.every((count) => count === 0))
          assert.strictEqual((yield* chat(gateway, key.raw)).status, 200)
        })
      })
    })
  )
}

/** Requests under way, and the bodies that are held for them. */
const gauges = ({ control }: RunningGateway.RunningGateway) =>
  Effect.promise(async () => {
    const page = await (await fetch(`${control}/admin-ui/metrics`)).text()
    return ["gateway_active_requests", "gateway_buffered_requests", "gateway_buffered_body_bytes"].map((name) =>
      Number(new RegExp(`^${name} (\\S+)$`, "m").exec(page)?.[1] ?? 0)
    )
  })

/** Reservations that nobody has settled, of any key. */
const openReservations = ({ prefix }: Deployment.Deployment) =>
  Effect.promise(async () => {
    const client = new Ioredis(TemporaryPrefix.server ?? "")
    try {
      const keys = await client.keys(`${prefix}limits:open:*`)
      return await Promise.all(keys.map((key) => client.zcard(key)))
    } finally {
      client.disconnect()
    }
  })

/** The head of a chat request with the subject's key, as a table of fields. */
export const headersOf = ({ key }: Subject["Service"]): Readonly<Record<string, string>> => ({
  authorization: `Bearer ${key.raw}`,
  "content-type": "application/json"
})

/** A body that asks for `model`. */
export const asking = (model: string, more: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({ model, messages: [{ role: "user", content: "hello" }], ...more })
