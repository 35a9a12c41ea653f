import { Effect } from "effect"
import { type Child, start } from "./Child.ts"
import type { Target } from "./Exchange.ts"
import * as Gateway from "./Gateway.ts"
import * as Portkey from "./Portkey.ts"
import { models } from "./Scenario.ts"

export const names = ["direct", "bare", "authenticated", "everything", "portkey"] as const
export type Name = (typeof names)[number]

export interface Entrant {
  readonly name: Name
  readonly child: Child
  readonly target: Target
  /** The gateway under measurement, for its counters. */
  readonly gateway?: Gateway.Gateway
}

export const titles: Readonly<Record<Name, string>> = {
  direct: "direct",
  bare: "bare proxy",
  authenticated: "this gateway, authentication only",
  everything: "this gateway, everything on",
  portkey: "Portkey 1.15.2"
}

export const includes: Readonly<Record<Name, string>> = {
  direct: "the client talks to the mock upstream",
  bare: "`node:http` and undici: passes bytes on, both ways, and nothing else",
  authenticated:
    "a key without limits: body parsed, credentials replaced, tokens read, a usage record settled in Redis and written to PostgreSQL, metrics",
  everything:
    "the same, and the key has requests and tokens per minute, a daily and a monthly budget, a list of models, prices: admitted and settled in Redis",
  portkey: "its npm package, `openai` provider on a custom host; it knows no keys, limits or records"
}

/** Generous enough that no run meets them: what is measured is the checking. */
export const everythingOn = {
  rpm_limit: 1_000_000_000,
  tpm_limit: 1_000_000_000_000,
  daily_budget_usd: 1_000_000,
  monthly_budget_usd: 9_000_000,
  allowed_models: Object.values(models),
  allow_streaming: true
}

const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` })

/** The mock upstream. */
export const upstream = Effect.gen(function* () {
  const child = yield* start({ name: "mock upstream", args: ["test/bench/Mock.ts"] })
  return { child, origin: `http://127.0.0.1:${yield* child.port}` }
})
export type Upstream = Effect.Success<typeof upstream>

const makers = {
  direct: Effect.fnUntraced(function* ({ child, origin }: Upstream) {
    const entrant: Entrant = { name: "direct", child, target: { origin, headers: bearer("sk-bench") } }
    return yield* Effect.succeed(entrant)
  }),
  bare: Effect.fnUntraced(function* ({ origin }: Upstream) {
    const child = yield* start({ name: "bare proxy", args: ["test/bench/Bare.ts", origin] })
    const target = { origin: `http://127.0.0.1:${yield* child.port}`, headers: bearer("sk-bench") }
    const entrant: Entrant = { name: "bare", child, target }
    return entrant
  }),
  authenticated: Effect.fnUntraced(function* ({ origin }: Upstream) {
    const gateway = yield* Gateway.make("gateway, authentication only", origin, [])
    const target = { origin: gateway.origin, headers: bearer(yield* gateway.key({})) }
    const entrant: Entrant = { name: "authenticated", child: gateway.child, target, gateway }
    return entrant
  }),
  everything: Effect.fnUntraced(function* ({ origin }: Upstream, nodeFlags: ReadonlyArray<string>) {
    const gateway = yield* Gateway.make("gateway, everything on", origin, nodeFlags)
    yield* gateway.setPrices
    const target = { origin: gateway.origin, headers: bearer(yield* gateway.key(everythingOn)) }
    const entrant: Entrant = { name: "everything", child: gateway.child, target, gateway }
    return entrant
  }),
  portkey: Effect.fnUntraced(function* ({ origin: upstream }: Upstream) {
    const { child, origin } = yield* Portkey.make
    const headers = {
      ...bearer("sk-bench"),
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `${upstream}/v1`
    }
    const entrant: Entrant = { name: "portkey", child, target: { origin, headers } }
    return entrant
  })
} as const

/** Started one after the other: no start disturbs another's first memory. `nodeFlags` are for everything on. */
export const make = (wanted: ReadonlyArray<Name>, upstream: Upstream, nodeFlags: ReadonlyArray<string>) =>
  Effect.forEach(wanted, (name) => makers[name](upstream, nodeFlags))
