import { Effect, Fiber } from "effect"
import { type AttackName, attackNames } from "./Attacks.ts"
import { start } from "./Child.ts"
import type { Target } from "./Exchange.ts"
import { cpuMicros, peakMiB } from "./Footprint.ts"
import * as Gateway from "./Gateway.ts"
import { ms } from "./Latency.ts"
import * as Load from "./Load.ts"

export interface Hostile {
  readonly minutes: number
  /** The good key's requests without and beside the attack. */
  readonly alone: Steady
  readonly beside: Steady
  /** Of the gateway's process, in MiB. */
  readonly peak: number
  readonly running: boolean
  readonly attacks: ReadonlyArray<AttackName>
  readonly connections: number
  /** Processor time during the attack, in cores. */
  readonly cores: { readonly gateway: number; readonly attackers: number }
}

export interface Steady {
  readonly answered: number
  readonly failed: number
  readonly problem: string | undefined
  readonly p50: number
  readonly p99: number
}

const allConnections = 2_000
/** The hostile keys: half of the connections each, from a process of its own. */
const policies = [{ deny: true, rpm_limit: 1 }, { rpm_limit: 1 }]
/** Requests that the good key has under way at once. */
const good = 4

const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` })

const steady = (target: Target, forMs: number) =>
  Effect.map(
    Load.loop(target, { connections: good, forMs, kindOf: () => "slow" }),
    ({ answered, failed, problem, total }): Steady => ({
      answered,
      failed,
      problem,
      p50: ms(total, 50),
      p99: ms(total, 99)
    })
  )

/** Keys that may do next to nothing do their worst, while another one sends its requests. */
export const run = Effect.fnUntraced(function* (
  upstream: string,
  minutes: number,
  attacks: ReadonlyArray<AttackName>,
  nodeFlags: ReadonlyArray<string>,
  say: (line: string) => void
) {
  const gateway = yield* Gateway.make("gateway", upstream, nodeFlags)
  const target = { origin: gateway.origin, headers: bearer(yield* gateway.key({})) }
  yield* steady(target, warmUpMs)
  // an attack alone has its share of the connections, to be compared with all of them
  const connections =
    Math.ceil((allConnections * attacks.length) / attackNames.length / policies.length) * policies.length
  say("the good key alone")
  const alone = yield* steady(target, Math.min(20_000, minutes * 60_000))
  say(`beside ${connections} connections of keys with ${JSON.stringify(policies)}, for ${minutes} minutes`)
  const attackers = yield* Effect.forEach(
    policies,
    Effect.fnUntraced(function* (policy) {
      const hostile = yield* gateway.key(policy)
      const each = String(connections / policies.length)
      const args = ["test/bench/Attacker.ts", gateway.origin, hostile, each, attacks.join(",")]
      return yield* start({ name: "attacker", args })
    })
  )
  const gatewayBefore = cpuMicros(gateway.child.pid)
  const begun = performance.now()
  const watching = yield* Effect.forkChild(
    Effect.forever(
      Effect.andThen(
        Effect.sleep("15 seconds"),
        Effect.sync(() => say(`peak memory so far: ${Math.round(peakMiB(gateway.child.pid))} MiB`))
      )
    )
  )
  const beside = yield* steady(target, minutes * 60_000)
  yield* Fiber.interrupt(watching)
  const running = gateway.child.running()
  const micros = (performance.now() - begun) * 1_000
  const attackersTook = attackers.reduce((sum, { pid, running }) => sum + (running() ? cpuMicros(pid) : Number.NaN), 0)
  const result: Hostile = {
    minutes,
    alone,
    beside,
    peak: running ? peakMiB(gateway.child.pid) : Number.NaN,
    running,
    attacks,
    connections,
    cores: {
      gateway: running ? (cpuMicros(gateway.child.pid) - gatewayBefore) / micros : Number.NaN,
      attackers: attackersTook / micros
    }
  }
  return result
})

const warmUpMs = 5_000
