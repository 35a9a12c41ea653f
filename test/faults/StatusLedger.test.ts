import { assert, describe, it } from "@effect/vitest"
import { type Evidence, type Follower, judge, type Sight, type Task } from "./StatusLedger.ts"

const ids = ["1", "2", "3", "failed", "5", "done"]
const got = (...ids: ReadonlyArray<string>): Array<Sight> => ids.map((id) => ({ _tag: "Event", id }))
const connected: Sight = { _tag: "Connected", replica: 0, after: undefined }
const closed = (by: "server" | "farewell" | "client" | "torn", quietMs = 0): Sight => ({ _tag: "Closed", by, quietMs })
const reset = (from: string, reason = "history_trimmed"): Sight => ({ _tag: "Reset", reason, from })

const everything: Follower = {
  name: "c",
  end: "came",
  sights: [connected, ...got("1", "2"), closed("torn"), connected, ...got("3", "failed", "5", "done"), closed("server")]
}

const confirmed = (...ids: ReadonlyArray<string>) => ids.map((id) => ({ id, isConfirmed: true }))

const task: Task = {
  id: "t",
  published: confirmed(...ids),
  history: { ids, oldest: 1, newest: ids.length },
  followers: [everything]
}

const wrong = (more: Partial<Task>, evidence: Partial<Evidence> = {}) =>
  judge({
    tasks: [{ ...task, ...more }],
    isOrdered: true,
    kept: 100,
    isTerminal: (id) => id === "failed" || id === "done",
    ...evidence
  }).wrong

const seen = (sights: ReadonlyArray<Sight>, end: Follower["end"] = "came") => ({
  followers: [{ name: "c", sights, end }]
})

describe("the verdict on event streams", () => {
  it("finds nothing wrong with who has everything, in however many pieces", () => {
    assert.deepStrictEqual(wrong({}), [])
    assert.deepStrictEqual(wrong({}, { isOrdered: false }), [])
    assert.deepStrictEqual(wrong(seen([...got("1", "2"), closed("client")], "left")), [])
  })

  it.each([
    ["a gap", got("1", "2", "failed", "5", "done"), "t: c got failed behind 2, and not 3"],
    [
      "a gap between two streams",
      [...got("1"), closed("torn"), ...got("3", "failed", "5", "done")],
      "t: c got 3 behind 1, and not 2"
    ],
    ["an event twice", got("1", "2", "2", "3", "failed", "5", "done"), "t: c got 2 behind 2"],
    ["events in another order", got("1", "3", "2", "3", "failed", "5", "done"), "t: c got 3 behind 1, and not 2"],
    ["a beginning that is none", got("2", "3", "failed", "5", "done"), "t: c began with 2 in place of 1"],
    [
      "somebody else's event",
      [...got("1", "2", "x", "3", "failed", "5", "done")],
      "t: c got x, which is none of the task's"
    ],
    [
      "an end that is none",
      [...got("1"), closed("server"), ...got(...ids.slice(1))],
      "t: c was told that the task ends with 1"
    ]
  ])("names %s", (_, sights, sentence) => {
    assert.strictEqual(wrong(seen(sights))[0], sentence)
  })

  it("lets a task end behind stragglers that were published before its end, and not behind others", () => {
    const told = (history: ReadonlyArray<string>, at: number) => {
      const sights = [...got(...history.slice(0, at)), closed("server"), ...got(...history.slice(at))]
      return wrong(
        {
          history: { ids: history, oldest: 1, newest: history.length },
          ...seen(sights)
        },
        { isOrdered: false }
      )
    }
    const late = ["1", "2", "failed", "3", "5", "done"]
    assert.deepStrictEqual(told(late, 4), [])
    assert.deepStrictEqual(told(late, 5), ["t: c was told that the task ends with 5"])
  })

  it("lets the server go, and a failure be an end for a while", () => {
    assert.deepStrictEqual(wrong(seen([...got("1"), closed("farewell"), ...got(...ids.slice(1))])), [])
    assert.deepStrictEqual(wrong(seen([...got(...ids.slice(0, 4)), closed("server"), ...got("5", "done")])), [])
  })

  it("names who stayed and has not everything, or waits for ever", () => {
    assert.deepStrictEqual(wrong(seen(got("1", "2"), "waits")), ["t: c stopped at 2 before done"])
    assert.deepStrictEqual(wrong(seen(got(...ids), "waits")), [
      "t: c has everything, and waits for the end of its stream"
    ])
  })

  it("measures how long a stream says nothing behind the last event of all", () => {
    const { lingeredMs } = judge({
      tasks: [
        {
          ...task,
          ...seen([...got(...ids.slice(0, 4)), closed("torn", 900), ...got("5", "done"), closed("server", 70)])
        }
      ],
      isOrdered: true,
      kept: 100,
      isTerminal: (id) => id === "failed" || id === "done"
    })
    assert.strictEqual(lingeredMs, 70)
  })

  it("counts from a reset on, which is right only for who has nothing of what is kept", () => {
    const trimmed = { history: { ids: ids.slice(3), oldest: 4, newest: 6 } }
    const from = (...sights: ReadonlyArray<Sight>) => wrong({ ...trimmed, ...seen(sights) }, { kept: 3 })
    assert.deepStrictEqual(from(...got("1", "2"), reset("failed"), ...got("failed", "5", "done")), [])
    assert.deepStrictEqual(
      from(...got("1"), reset("3"), closed("torn"), reset("failed"), ...got("failed", "5", "done")),
      []
    )
    assert.deepStrictEqual(from(...got("failed", "5", "done")), [])
    assert.deepStrictEqual(from(...got("1", "2", "3"), reset("3"), ...got("3", "failed", "5", "done")), [
      "t: c had 3, and was reset to 3 as history_trimmed"
    ])
    assert.deepStrictEqual(from(...got("1"), reset("3"), ...got("failed", "5", "done")), [
      "t: c began with failed in place of 3"
    ])
    assert.deepStrictEqual(from(...got("1"), reset("failed", "unknown_event"), ...got("failed", "5", "done")), [
      "t: c had 1, and was reset to failed as unknown_event"
    ])
  })

  it("holds the store against what was confirmed, and lets it have what was not", () => {
    const lost = wrong({ history: { ids: ids.filter((id) => id !== "3"), oldest: 1, newest: 5 } })
    assert.include(lost[0], "it lacks 3")
    assert.include(wrong({ history: { ids: [...ids, "done"], oldest: 1, newest: 7 } })[0], "the store has")
    const doubtful = ids.map((id) => ({ id, isConfirmed: id !== "3" }))
    assert.deepStrictEqual(wrong({ published: doubtful }), [])
    const without = ids.filter((id) => id !== "3")
    assert.deepStrictEqual(
      wrong({ published: doubtful, history: { ids: without, oldest: 1, newest: 5 }, ...seen(got(...without)) }),
      []
    )
  })

  it("takes the store's order for the true one, where that of publishing is none", () => {
    const swapped = ["1", "3", "2", "failed", "5", "done"]
    const history = { ids: swapped, oldest: 1, newest: 6 }
    assert.deepStrictEqual(wrong({ history, ...seen(got(...swapped)) }, { isOrdered: false }), [])
    assert.deepStrictEqual(wrong({ history }, { isOrdered: false }).slice(0, 1), ["t: c got 2 behind 1, and not 3"])
    assert.include(wrong({ history, ...seen(got(...swapped)) })[0], "the store has 1 3 2")
    const lost = { ids: ids.slice(1), oldest: 1, newest: 5 }
    assert.include(wrong({ history: lost }, { isOrdered: false })[0], "the store lacks 1")
    const doubled = { ids: ["1", ...ids], oldest: 1, newest: 7 }
    assert.include(wrong({ history: doubled }, { isOrdered: false })[0], "the store has 1 twice")
  })
})
