import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { HistoryOptions, StatusHistory, StoredStatus } from "../../../src/status/store/StatusStore.ts"
import { type Reset, ResumeCursor } from "../../../src/status/stream/ResumeCursor.ts"

describe("ResumeCursor", () => {
  it("gives a client every event once and in order, or says that it starts over", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const world = new World()
        for (const step of steps) world.act(step)
        world.settle()
        world.check()
      }),
      { numRuns: 3_000 }
    )
  })

  it("holds no more than its bounds for a client that takes nothing", () => {
    const progress = progressOf({ events: 3, size: 1_000 })
    progress.beginRead()
    progress.applyHistory({ events: [], newest: 0, oldest: 0 })
    for (let sequence = 1; sequence <= 10; sequence++) progress.offer(event(sequence, "a"))
    assert.strictEqual(progress.take().events.length, 0)
    assert.isTrue(progress.needsHistory)
  })

  it("lets one event through that is larger than the bound", () => {
    const progress = progressOf({ events: 3, size: 10 })
    progress.beginRead()
    const large = { ...event(1, "a"), json: "x".repeat(100) }
    progress.applyHistory({ events: [large, event(2, "a")], newest: 2, oldest: 1 })
    assert.deepStrictEqual(progress.take().events, [large])
    assert.isTrue(progress.needsHistory)
  })

  it("reads each event of a long history about once, however little may wait", () => {
    const stored = Array.from({ length: 1_000 }, (_, n) => event(n + 1, "a"))
    const wholeOf = (lastEventId?: string) => {
      const progress = progressOf({ events: 10, size: 1_000 }, lastEventId)
      let [received, asked] = [0, 0]
      while (progress.needsHistory) {
        const history = read(stored, 0, progress.beginRead())
        asked += history.events.length
        progress.applyHistory(history)
        received += progress.take().events.length
      }
      return { received, asked }
    }
    const whole = wholeOf()
    assert.strictEqual(whole.received, 1_000)
    assert.isBelow(whole.asked, 1_200)
    const resumed = wholeOf("a500")
    assert.strictEqual(resumed.received, 500)
    assert.isBelow(resumed.asked, 1_700)
  })

  it("says why it starts over", () => {
    const whole = { events: [event(3, "a"), event(4, "a")], newest: 4, oldest: 3 }
    const resumed = (lastEventId: string, history: StatusHistory) => {
      const progress = progressOf({ events: 64, size: 1_000 }, lastEventId)
      progress.beginRead()
      return progress.applyHistory(history)
    }
    assert.deepStrictEqual(resumed("a3", whole), { resumed: true, replayed: 1 })
    assert.deepStrictEqual(resumed("a4", whole), { resumed: true, replayed: 0 })
    assert.deepStrictEqual(resumed("a1", whole).reset, { reason: "history_trimmed", from: event(3, "a") })
    assert.deepStrictEqual(resumed("zz", { events: [event(1, "a")], newest: 1, oldest: 1 }).reset, {
      reason: "unknown_event",
      from: event(1, "a")
    })
    assert.deepStrictEqual(resumed("a1", { events: [], newest: 0, oldest: 0 }).reset, {
      reason: "history_gone",
      from: undefined
    })
  })
})

const event = (sequence: number, life: string): StoredStatus => ({
  sequence,
  eventId: `${life}${sequence}`,
  status: "processing",
  json: "{}"
})

/** As a store answers whose events are all of one size. */
const read = (
  stored: ReadonlyArray<StoredStatus>,
  trimmed: number,
  { after = 0, atMost }: HistoryOptions
): StatusHistory => {
  const kept = stored.slice(trimmed)
  return {
    events: kept.filter(({ sequence }) => sequence > after).slice(0, atMost?.events),
    newest: stored.length,
    oldest: kept[0]?.sequence ?? 0
  }
}

const progressOf = (bounds: { readonly events: number; readonly size: number }, lastEventId?: string) =>
  new ResumeCursor({
    lastEventId,
    isLastEvent: ({ eventId }, last) => eventId === last,
    isTerminal: () => true,
    bounds
  })

const step = fc.oneof(
  { arbitrary: fc.constant("store" as const), weight: 6 },
  { arbitrary: fc.constant("store, unheard" as const), weight: 1 },
  { arbitrary: fc.constant("heard twice" as const), weight: 1 },
  { arbitrary: fc.constant("begin to read" as const), weight: 4 },
  { arbitrary: fc.constant("end of read" as const), weight: 5 },
  { arbitrary: fc.constant("read fails" as const), weight: 1 },
  { arbitrary: fc.constant("take" as const), weight: 5 },
  { arbitrary: fc.constant("trim" as const), weight: 1 },
  { arbitrary: fc.constant("expire" as const), weight: 1 },
  { arbitrary: fc.constant("reconnect" as const), weight: 1 }
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/** A store, the subscription to it, and one client. */
class World {
  #life = 0
  #stored: Array<StoredStatus> = []
  #kept = 0
  #progress = progressOf({ events: 4, size: 1_000 })
  #read: HistoryOptions | undefined
  /** Taken when the store answers, which is before the answer is here. */
  #answer: StatusHistory | undefined
  /** Since the last reset. */
  #received: Array<StoredStatus> = []
  #begins = 0

  act(step: Step): void {
    switch (step) {
      case "store":
        this.#progress.offer(this.#store())
        return
      case "store, unheard":
        this.#store()
        this.#progress.markStale()
        return
      case "heard twice": {
        const some = this.#stored.at(-2)
        if (some !== undefined) this.#progress.offer(some)
        return
      }
      case "begin to read":
        if (this.#read === undefined && this.#progress.needsHistory) this.#read = this.#progress.beginRead()
        else if (this.#read !== undefined) this.#answer ??= this.#history(this.#read)
        return
      case "end of read":
        this.#endRead()
        return
      case "read fails":
        if (this.#read !== undefined) this.#progress.readFailed()
        this.#read = undefined
        this.#answer = undefined
        return
      case "take":
        if (this.#read === undefined) this.#take()
        return
      case "trim":
        this.#kept = Math.max(0, Math.min(this.#stored.length - 1, this.#kept + 3))
        return
      case "expire":
        // nobody stores for a day, and by then every read has been answered
        this.settle()
        this.#life++
        this.#stored = []
        this.#kept = 0
        return
      case "reconnect":
        this.#progress = progressOf({ events: 4, size: 1_000 }, this.#received.at(-1)?.eventId)
        this.#read = undefined
        this.#answer = undefined
    }
  }

  /** Until there is nothing left to do. */
  settle(): void {
    for (let round = 0; round < 100; round++) {
      this.#endRead()
      this.#take()
      if (!this.#progress.needsHistory) break
      this.#read = this.#progress.beginRead()
    }
    this.#progress.markStale()
    this.#read = this.#progress.beginRead()
    for (let round = 0; round < 100; round++) {
      this.#endRead()
      this.#take()
      if (!this.#progress.needsHistory) return
      this.#read = this.#progress.beginRead()
    }
    assert.fail("it never ends")
  }

  check(): void {
    if (this.#stored.length > 0) assert.deepStrictEqual(this.#received, this.#stored.slice(this.#begins))
    assert.strictEqual(this.#progress.terminalStatus?.eventId, this.#received.at(-1)?.eventId)
  }

  #store(): StoredStatus {
    const stored = event(this.#stored.length + 1, "abcdefghij".charAt(this.#life % 10))
    this.#stored.push(stored)
    return stored
  }

  #history(options: HistoryOptions): StatusHistory {
    return read(this.#stored, this.#kept, options)
  }

  #endRead(): void {
    if (this.#read === undefined) return
    const { reset } = this.#progress.applyHistory(this.#answer ?? this.#history(this.#read))
    this.#read = undefined
    this.#answer = undefined
    if (reset !== undefined) this.#startOver(reset)
  }

  #startOver({ from }: Reset): void {
    this.#received = []
    this.#begins = from === undefined ? 0 : from.sequence - 1
  }

  #take(): void {
    const { events } = this.#progress.take()
    if (this.#received.length === 0 && events[0] !== undefined) this.#begins = events[0].sequence - 1
    this.#received.push(...events)
  }
}
