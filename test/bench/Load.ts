import { createHistogram, type RecordableHistogram } from "node:perf_hooks"
import autocannon from "autocannon"
import { Effect } from "effect"
import type { Client } from "undici"
import { BenchFailed } from "./Child.ts"
import { ask, connect, type Seen, type Target } from "./Exchange.ts"
import { nanos } from "./Latency.ts"
import { bodies, type Kind, path } from "./Scenario.ts"

/** The bench's own process makes the load: while it measures it does nothing else. */

export interface Rate {
  readonly answered: number
  readonly perSecond: number
  readonly failed: number
}

/** As many requests as `connections` can carry, by autocannon. */
export const rate = (target: Target, connections: number, seconds: number): Effect.Effect<Rate, BenchFailed> =>
  Effect.callback((resume) => {
    const cannon = autocannon(
      {
        url: target.origin + path,
        method: "POST",
        headers: { "content-type": "application/json", ...target.headers },
        body: bodies.instant,
        connections,
        duration: seconds,
        timeout: 10
      },
      (error, result) => {
        if (error) resume(Effect.fail(new BenchFailed({ message: `autocannon: ${String(error)}` })))
        const answered = result["2xx"]
        resume(
          Effect.succeed({
            answered,
            perSecond: answered / result.duration,
            failed: result.non2xx + result.errors + result.timeouts
          })
        )
      }
    )
    return Effect.sync(() => cannon.stop())
  })

export interface Loop {
  readonly connections: number
  readonly forMs: number
  /** No request begins after so many. */
  readonly atMost?: number
  readonly kindOf: (index: number) => Kind
  /** Each request has a connection of its own. */
  readonly reconnects?: boolean
}

export interface Looped {
  readonly answered: number
  readonly failed: number
  /** The first of the failures. */
  readonly problem: string | undefined
  readonly elapsedMs: number
  /** Nanoseconds. */
  readonly total: RecordableHistogram
  readonly firstByte: RecordableHistogram
  /** The sum over the answers of the time between first and last byte. */
  readonly streamingMs: number
}

/**
 * Each connection asks again when it has its answer; when the time is up it waits for the answer that is under way. So
 * every request is answered or failed, and can be counted elsewhere.
 */
export const loop = (
  target: Target,
  { atMost = Number.POSITIVE_INFINITY, connections, forMs, kindOf, reconnects = false }: Loop
) =>
  Effect.callback<Looped>((resume) => {
    const clients = Array.from({ length: connections }, () => connect(target))
    const total = createHistogram()
    const firstByte = createHistogram()
    const begun = performance.now()
    let asked = 0
    let answered = 0
    let failed = 0
    let problem: string | undefined
    let streamingMs = 0
    let running = connections
    let stopped = false

    const record = (seen: Seen) => {
      if (seen.whole) {
        answered++
        total.record(nanos(seen.totalMs))
        firstByte.record(nanos(seen.firstByteMs))
        streamingMs += seen.totalMs - seen.firstByteMs
      } else {
        failed++
        problem ??= seen.problem
      }
    }
    const clientOf = (index: number): Client => {
      const kept = clients[index]
      if (kept !== undefined && !reconnects) return kept
      kept?.destroy(() => {})
      const renewed = connect(target)
      clients[index] = renewed
      return renewed
    }
    const next = (index: number) => {
      if (stopped) return
      if (asked < atMost && performance.now() - begun < forMs) {
        ask(clientOf(index), target, kindOf(asked++), (seen) => {
          record(seen)
          // a refusal comes at once, and another one would come within its call
          if (seen.whole) next(index)
          else setImmediate(next, index)
        })
        return
      }
      running--
      if (running > 0) return
      const elapsedMs = performance.now() - begun
      destroy(clients)
      resume(Effect.succeed({ answered, failed, problem, elapsedMs, total, firstByte, streamingMs }))
    }
    for (const index of clients.keys()) next(index)
    return Effect.sync(() => {
      stopped = true
      destroy(clients)
    })
  })

export interface Crowd {
  readonly whole: number
  readonly problems: ReadonlyArray<string>
  /** Streams under way at once, at the most. */
  readonly atOnce: number
  readonly firstByteMs: ReadonlyArray<number>
  readonly longestGapMs: ReadonlyArray<number>
  /** Nanoseconds between two arrivals, of all streams. */
  readonly gaps: RecordableHistogram
}

/** `size` paced streams, begun over `rampMs`, each on a connection of its own. */
export const crowd = (target: Target, size: number, rampMs: number) =>
  Effect.callback<Crowd>((resume) => {
    const clients = Array.from({ length: size }, () => connect(target))
    const all: Array<Seen> = []
    const gaps = createHistogram()
    let underWay = 0
    let atOnce = 0
    const finished = (seen: Seen) => {
      underWay--
      all.push(seen)
      if (all.length < size) return
      destroy(clients)
      const whole = all.filter((seen) => seen.whole)
      resume(
        Effect.succeed({
          whole: whole.length,
          problems: all.flatMap(({ problem }) => (problem === undefined ? [] : [problem])),
          atOnce,
          firstByteMs: whole.map((seen) => seen.firstByteMs),
          longestGapMs: whole.map((seen) => seen.longestGapMs),
          gaps
        })
      )
    }
    const timers = clients.map((client, index) =>
      setTimeout(
        () => {
          underWay++
          atOnce = Math.max(atOnce, underWay)
          ask(client, target, "paced", finished, gaps)
        },
        (index / size) * rampMs
      )
    )
    return Effect.sync(() => {
      for (const timer of timers) clearTimeout(timer)
      destroy(clients)
    })
  })

const destroy = (clients: ReadonlyArray<Client>): void => {
  for (const client of clients) client.destroy(() => {})
}
