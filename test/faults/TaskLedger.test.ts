import { assert, describe, it } from "@effect/vitest"
import { type Entry, type Evidence, judge } from "./TaskLedger.ts"

const received = (attempt: number, redelivered = false, at = 0): Entry => ({
  _tag: "Received",
  at,
  task: "t",
  attempt,
  redelivered
})
const handled: Entry = { _tag: "Handled", task: "t" }
const sending = (attempt: number): Entry => ({ _tag: "Sending", task: "t", attempt })
const answered = (attempt: number, known: boolean): Entry => ({ _tag: "Answered", task: "t", attempt, known })

const verdict = ({
  confirmed = true,
  doubtful = false,
  ...evidence
}: Partial<Evidence> & { readonly confirmed?: boolean; readonly doubtful?: boolean }) =>
  judge({
    published: new Map([["t", { confirmed, doubtful }]]),
    entries: [],
    dead: [],
    queued: [],
    endOf: () => "handled",
    restarts: [],
    ...evidence
  })

describe("the verdict on a run with faults", () => {
  it("counts a confirmed task that is nowhere as lost, and one that was never confirmed not", () => {
    assert.deepStrictEqual(verdict({}).lost, ["t"])
    assert.deepStrictEqual(verdict({ entries: [received(0)] }).lost, ["t"])
    assert.deepStrictEqual(verdict({ confirmed: false, doubtful: true }).lost, [])
  })

  it.each<Partial<Evidence>>([{ entries: [received(0), handled] }, { dead: ["t"] }, { queued: ["t"] }])(
    "does not where it is handled, dead-lettered or queued: %j",
    (evidence) => {
      assert.deepStrictEqual(verdict(evidence).lost, [])
    }
  )

  it("does so where it was lost between its retry queue and the worker's while the broker was killed", () => {
    const entries = [received(0, false, 1), sending(1), answered(1, true)]
    assert.deepStrictEqual(verdict({ entries, restarts: [5] }).lost, ["t"])
  })

  it("names a task that ended as its handler did not end it", () => {
    assert.deepStrictEqual(verdict({ dead: ["t"] }).astray, ["t"])
    assert.deepStrictEqual(verdict({ entries: [handled], endOf: () => "dead" }).astray, ["t"])
    assert.deepStrictEqual(verdict({ entries: [handled] }).astray, [])
  })

  it("takes one delivery of each attempt for no duplicate", () => {
    const entries = [received(0), sending(1), answered(1, true), received(1), handled]
    const { duplicates, unexplained } = verdict({ entries })
    assert.deepStrictEqual({ duplicates, unexplained }, { duplicates: 0, unexplained: [] })
  })

  it("does not explain a second delivery, or a second dead letter, by nothing", () => {
    assert.deepStrictEqual(verdict({ entries: [received(0), received(0)] }).unexplained, ["t attempt 0"])
    assert.deepStrictEqual(verdict({ dead: ["t", "t"] }).unexplained, ["t dead-lettered twice"])
    const retried = [received(0), sending(1), answered(1, true), received(1), received(1)]
    assert.deepStrictEqual(verdict({ entries: retried }).unexplained, ["t attempt 1"])
  })

  it.each([
    ["its publish had no answer", { doubtful: true, entries: [received(0), received(0)] }],
    ["the broker had delivered it before", { entries: [received(0), received(0, true)] }],
    ["an earlier attempt was delivered again", { entries: [received(0), received(0, true), received(1), received(1)] }],
    ["the worker died while it published the retry", { entries: [received(0), sending(1), received(1), received(1)] }],
    [
      "the publish of the retry had no answer",
      { entries: [received(0), sending(1), answered(1, false), received(1), received(1)] }
    ],
    [
      "one of two publishes of the retry had none",
      { entries: [sending(1), answered(1, false), sending(1), answered(1, true), received(1), received(1)] }
    ],
    ["a dead letter was published without an answer", { entries: [received(0), sending(1)], dead: ["t", "t"] }]
  ])("explains it where %s", (_, evidence) => {
    const { duplicates, unexplained } = verdict(evidence)
    assert.deepStrictEqual(unexplained, [])
    assert.isAbove(duplicates, 0)
  })

  it("explains a retry that came on both sides of the broker's restart, and its second dead letter, and counts it", () => {
    const entries = [received(0, false, 1), received(1, false, 2), received(1, false, 9)]
    const seen = verdict({ entries, restarts: [5], dead: ["t", "t"], endOf: () => "dead" })
    assert.deepInclude(seen, { duplicates: 2, waitedTwice: 1, unexplained: [] })
    assert.deepStrictEqual(verdict({ entries, restarts: [1, 10] }).unexplained, ["t attempt 1"])
  })

  it("does not explain so a task that never was in a retry queue", () => {
    const entries = [received(0, false, 1), received(0, false, 9)]
    assert.deepStrictEqual(verdict({ entries, restarts: [5] }).unexplained, ["t attempt 0"])
  })

  it("does not let a doubt about a later attempt explain an earlier one", () => {
    const entries = [received(0), received(0), sending(1), answered(1, false)]
    assert.deepStrictEqual(verdict({ entries }).unexplained, ["t attempt 0"])
  })
})
