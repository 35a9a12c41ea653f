import { assert, describe, it } from "@effect/vitest"
import type { PublishedStatus } from "../../../src/messaging/envelope/StatusEvent.ts"
import * as CurrentDelivery from "../../../src/messaging/observe/CurrentDelivery.ts"
import { changeOf, noFacts } from "../../../src/status/tasks/IndexedTask.ts"

const statusOf = (given: Partial<PublishedStatus>): PublishedStatus => ({
  task_id: "t",
  status: "done",
  timestamp: "2026-11-26T10:00:00.000000Z",
  meta: {},
  correlation_id: "c",
  event_id: "e",
  spec_version: "1.0",
  ...given
})

const options = { attributes: [], isTerminal: () => false }

describe("a status that any publisher may have made", () => {
  it("of a task whose id PostgreSQL cannot store changes nothing, so that it cannot stop the index", () => {
    assert.isUndefined(changeOf(statusOf({ task_id: "a\0b" }), noFacts, options))
  })

  it.each([2 ** 31, -1, 1.5, "1", null])("says nothing about its attempt with the header %s", (attempt) => {
    assert.isNull(CurrentDelivery.factsOf({ "x-svc-attempt": attempt }).attempt)
    const { attempt: read } = changeOf(statusOf({ meta: { retry_attempt: attempt } }), noFacts, options)?.task ?? {}
    assert.isNull(read)
  })

  it("names its attempt, if it is a number of retries", () => {
    assert.strictEqual(CurrentDelivery.factsOf({ "x-svc-attempt": 2 ** 31 - 1 }).attempt, 2 ** 31 - 1)
  })
})
