import { assert, describe, it } from "@effect/vitest"
import { Duration, Option } from "effect"
import {
  afterEnd,
  type Decision,
  describeEnd,
  type OtherWorkers,
  type UnexpectedEnd
} from "../../../layers/workers/Decisions.ts"

const end = (
  status: number | string,
  { sentence, served }: { readonly sentence?: string; readonly served?: Duration.Input } = {}
): UnexpectedEnd => ({
  number: 2,
  end: { status, sentence: Option.fromUndefinedOr(sentence) },
  wasSilent: false,
  served: Option.map(Option.fromUndefinedOr(served), Duration.fromInputUnsafe)
})

const stop = (code: number, sentence: string): Decision => ({ _tag: "Stop", code, sentence })
type Case = readonly [name: string, UnexpectedEnd, OtherWorkers, Decision]

const first = { serve: false, haveServed: false }
const alone = { serve: false, haveServed: true }
const beside = { serve: true, haveServed: true }

describe("after the unexpected end of a worker", () => {
  it.each([
    ["the first start fails", end(1, { sentence: "no database" }), first, stop(1, "no database")],
    ["the first start is refused", end(78, { sentence: "refused" }), first, stop(78, "refused")],
    [
      "the first start is killed",
      end("SIGKILL"),
      first,
      stop(1, "Worker 2 was killed by SIGKILL before its listener was open.")
    ],
    [
      "the first worker ends by itself",
      end(0),
      first,
      stop(1, "Worker 2 ended with exit code 0 before its listener was open.")
    ],
    ["no worker serves any more, and a start is refused", end(78, { sentence: "refused" }), alone, stop(78, "refused")],
    ["no worker serves any more, and a start fails", end(1), alone, { _tag: "BackOff" }],
    ["a start is refused beside another worker", end(78), beside, { _tag: "BackOff" }],
    ["a start fails beside another worker", end("SIGABRT"), beside, { _tag: "BackOff" }],
    ["a worker crashes soon", end("SIGKILL", { served: "59 seconds" }), beside, { _tag: "BackOff" }],
    ["the only worker crashes soon", end("SIGKILL", { served: "1 second" }), alone, { _tag: "BackOff" }],
    ["a worker crashes late", end(134, { served: "60 seconds" }), beside, { _tag: "Replace" }],
    ["a worker is asked to end by somebody else", end(0, { served: "1 hour" }), alone, { _tag: "Replace" }]
  ] satisfies ReadonlyArray<Case>)("%s", (_, unexpected, others, decision) => {
    assert.deepStrictEqual(afterEnd(unexpected, others), decision)
  })

  it("the log says how it ended", () => {
    assert.strictEqual(describeEnd(end("SIGKILL", { served: "1 hour" })), "Worker 2 was killed by SIGKILL.")
    assert.strictEqual(describeEnd({ ...end("SIGKILL"), wasSilent: true }), "Worker 2 did not respond and was killed.")
  })
})
