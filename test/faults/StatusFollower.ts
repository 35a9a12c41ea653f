import { type IncomingMessage, request } from "node:http"
import { Clock, Deferred, Effect } from "effect"
import * as SeededRandom from "./SeededRandom.ts"
import type { Follower, Sight } from "./StatusLedger.ts"

/** How a client treats its streams. */
export interface Habits {
  /** It comes so late, in milliseconds. */
  readonly comesAfter: number
  /** It stays connected at most so long. */
  readonly staysFor: number
  /** It hangs up after at most so many bytes: in the middle of a frame, more often than not. */
  readonly takes: number
  /** How often it stops reading for a while. */
  readonly pauses: number
  /** It leaves for good after so many streams, whatever it has by then. */
  readonly streams: number
}

const forever = Number.POSITIVE_INFINITY

const steady: Habits = { comesAfter: 0, staysFor: forever, takes: forever, pauses: 0, streams: forever }

export const habits = (random: SeededRandom.Random): ReadonlyArray<Habits> => [
  steady,
  { ...steady, comesAfter: SeededRandom.between(random, 0, 2_000), staysFor: 600, takes: 6_000 },
  { ...steady, pauses: 0.15 },
  SeededRandom.chosen(random, [
    { ...steady, comesAfter: SeededRandom.between(random, 0, 4_000) },
    { ...steady, staysFor: 1_500, streams: 3 },
    { ...steady, takes: 40_000 }
  ])
]

/** When all is published and stored, it is known of each task which event is the newest. Nobody is restless any more. */
export interface Finale {
  readonly comes: Deferred.Deferred<void>
  newest: ReadonlyMap<string, string> | undefined
}

export interface Options {
  readonly name: string
  readonly task: string
  /** Where replicas listen. */
  readonly ports: readonly [number, ...ReadonlyArray<number>]
  readonly habits: Habits
  readonly random: SeededRandom.Random
  readonly isTerminal: (eventId: string) => boolean
  /** Behind which nothing is published, and so little is expected. */
  readonly isLast: (eventId: string) => boolean
  /** Of the event with this id. */
  readonly messageOf: (eventId: string) => string
  readonly finale: Finale
  /** Called with every event that comes. */
  readonly heard: () => void
}

/** A client of `/events/{task_id}`, as a browser's `EventSource` is one: it comes back with the id of its last event. */
export const make = (options: Options) => {
  const { finale, habits, isTerminal, name, ports, random, task } = options
  const sights: Array<Sight> = []
  let last: string | undefined
  let sawLast = false
  let end: Follower["end"] = "waits"
  /** It has the newest event, behind which its stream goes on: on a queue, where that is not always the terminal one. */
  const hasAll = () => last !== undefined && last === finale.newest?.get(task) && !isTerminal(last)

  const visit = Effect.suspend(() => {
    const replica = SeededRandom.integer(random, ports.length)
    const isRestless = finale.newest === undefined
    return stream({
      port: ports[replica] ?? ports[0],
      task,
      after: last,
      takes: isRestless ? habits.takes * random() : forever,
      staysFor: isRestless ? habits.staysFor * random() : forever,
      pausesFor: () =>
        finale.newest === undefined && random() < habits.pauses ? SeededRandom.between(random, 100, 4_000) : 0,
      opened: () => sights.push({ _tag: "Connected", replica, after: last }),
      frame: ({ data, event, id }) => {
        if (event === "reset") {
          const { from_event_id: from, reason } = JSON.parse(data)
          sights.push({ _tag: "Reset", reason: String(reason), from: from === null ? null : String(from) })
        }
        if (event === "status" && id !== undefined) {
          const found = JSON.parse(data)
          const isWhole = found.task_id === task && found.event_id === id && found.message === options.messageOf(id)
          sights.push({ _tag: "Event", id: isWhole ? id : `${id} with another content` })
          last = id
          sawLast ||= options.isLast(id)
          options.heard()
        }
        return hasAll()
      }
    })
  })

  const run = Effect.gen(function* () {
    yield* Effect.sleep(habits.comesAfter)
    for (let streams = 0; ; streams++) {
      const isFinal = finale.newest !== undefined
      if (!isFinal && streams >= habits.streams) {
        end = "left"
        return
      }
      const closed = yield* visit
      if (closed.opened) sights.push({ _tag: "Closed", by: closed.by, quietMs: closed.quietMs })
      // behind stragglers of a queue, too
      const isEnd = closed.by === "server" && last !== undefined
      if (isFinal && (hasAll() || (isEnd && last === finale.newest?.get(task)))) {
        end = "came"
        return
      }
      // who has seen a task complete asks once more, when all is over
      if (isEnd && sawLast) yield* Deferred.await(finale.comes)
      yield* Effect.sleep(SeededRandom.between(random, 20, 300))
    }
  })

  return { run, seen: (): Follower => ({ name, sights, end }) }
}

interface Frame {
  readonly id: string | undefined
  readonly event: string | undefined
  readonly data: string
}

interface Visit {
  readonly port: number
  readonly task: string
  readonly after: string | undefined
  readonly takes: number
  readonly staysFor: number
  /** Asked with every piece that comes. Milliseconds. */
  readonly pausesFor: () => number
  readonly opened: () => void
  /** Answers whether this is enough. */
  readonly frame: (frame: Frame) => boolean
}

type Closed = { readonly opened: boolean } & Omit<Extract<Sight, { _tag: "Closed" }>, "_tag">

/** One stream, from its request to its end. Never fails: a stream that is refused was not opened. */
const stream = (visit: Visit) =>
  Effect.flatMap(Clock.clockWith(Effect.succeed), (clock) =>
    Effect.callback<Closed>((resume) => {
      const now = () => clock.currentTimeMillisUnsafe()
      let [quietSince, taken, rest] = [now(), 0, ""]
      let opened = false
      let isFarewell = false
      let pause: NodeJS.Timeout | undefined
      const hangUp = () => close("client")
      const asked = request(
        {
          host: "127.0.0.1",
          port: visit.port,
          path: `/events/${visit.task}`,
          headers: visit.after === undefined ? {} : { "last-event-id": visit.after },
          agent: false
        },
        (answer) => {
          if (answer.statusCode !== 200) return close("torn")
          opened = true
          visit.opened()
          answer.on("data", (piece: Buffer) => read(answer, piece))
          answer.on("end", () => close(isFarewell ? "farewell" : "server"))
          answer.on("error", () => close("torn"))
        }
      )
      const timer = Number.isFinite(visit.staysFor) ? setTimeout(hangUp, visit.staysFor) : undefined
      let isOpen = true
      const close = (by: Closed["by"]) => {
        if (!isOpen) return
        isOpen = false
        clearTimeout(timer)
        clearTimeout(pause)
        asked.destroy()
        resume(Effect.succeed({ by, opened, quietMs: now() - quietSince }))
      }
      const read = (answer: IncomingMessage, piece: Buffer) => {
        if (!isOpen) return
        rest += piece.subarray(0, Math.max(visit.takes - taken, 0)).toString("latin1")
        taken += piece.length
        const blocks = rest.split("\n\n")
        rest = blocks.pop() ?? ""
        for (const block of blocks) {
          if (block.includes("the server is going down")) isFarewell = true
          const frame = frameOf(block)
          if (frame.event === "status") quietSince = now()
          if (visit.frame(frame)) return hangUp()
        }
        if (taken > visit.takes) return hangUp()
        const pauseMs = visit.pausesFor()
        if (pauseMs === 0) return
        answer.pause()
        pause = setTimeout(() => answer.resume(), pauseMs)
      }
      asked.on("error", () => close("torn"))
      asked.end()
      return Effect.sync(hangUp)
    })
  )

const frameOf = (block: string): Frame => {
  const field = (name: string) =>
    block
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2)
  return { id: field("id"), event: field("event"), data: field("data") ?? "" }
}
