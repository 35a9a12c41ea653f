import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import fc from "fast-check"
import * as BatchEnvelope from "../../src/messaging/envelope/BatchEnvelope.ts"
import * as CanonicalJson from "../../src/messaging/envelope/CanonicalJson.ts"
import * as Envelope from "../../src/messaging/envelope/Envelope.ts"
import type { EnvelopeError } from "../../src/messaging/envelope/Errors.ts"
import * as StatusEvent from "../../src/messaging/envelope/StatusEvent.ts"
import * as TaskEnvelope from "../../src/messaging/envelope/TaskEnvelope.ts"
import * as WorkflowEnvelope from "../../src/messaging/envelope/WorkflowEnvelope.ts"

const now = "2026-04-06T10:00:00Z"
const messageId = "0123456789abcdef0123456789abcdef"

describe("a task envelope", () => {
  it("has its defaults: an empty payload, the present time, spec_version 1.0", () => {
    assert.deepStrictEqual(task({ task_id: "t" }), {
      task_id: "t",
      payload: {},
      created_at: now,
      spec_version: "1.0"
    })
  })

  it("keeps fields that nobody declared, behind the declared ones, in their order", () => {
    const given = {
      zebra: 1,
      spec_version: "7",
      task_id: "t",
      apple: { b: null },
      meta: { m: 1 },
      payload: { p: null }
    }
    assert.strictEqual(
      written(TaskEnvelope.encode(task(given))),
      `{"task_id":"t","payload":{"p":null},"created_at":"${now}","spec_version":"7","meta":{"m":1},"zebra":1,"apple":{"b":null}}`
    )
  })

  it("refuses a payload that JSON would not write as the object that it is, by name", () => {
    for (const payload of [new Date(), new Map([["to", "ada"]]), new Set([1]), { toJSON: () => "text" }]) {
      const read = TaskEnvelope.read({ task_id: "t", payload }, now)
      assert.deepStrictEqual(Result.isFailure(read) && read.failure.mistakes, [
        { field: "payload", problem: "must be a JSON object" }
      ])
    }
    assert.strictEqual(
      written(TaskEnvelope.encode(task({ task_id: "t", toJSON: () => ({ another: "body" }) }))),
      `{"task_id":"t","payload":{},"created_at":"${now}","spec_version":"1.0"}`
    )
  })

  it.each(["task_id", "task_type", "correlation_id"])(
    "has a %s of well-formed Unicode, as it becomes AMQP text",
    (field) => {
      const read = TaskEnvelope.read({ task_id: "t", [field]: "half \ud83d" }, now)
      assert.deepStrictEqual(Result.isFailure(read) && read.failure.mistakes, [
        { field, problem: "must be well-formed Unicode without lone surrogates" }
      ])
      assert.isTrue(Result.isSuccess(TaskEnvelope.read({ task_id: "t", [field]: "whole \u{1f600}" }, now)))
    }
  )

  it("drops null at the top and keeps it inside", () => {
    const given = { task_id: "t", service: null, priority: null, extra: null, payload: { a: null } }
    assert.deepStrictEqual(task(given), { task_id: "t", payload: { a: null }, created_at: now, spec_version: "1.0" })
    assert.strictEqual(
      written(TaskEnvelope.encode({ ...task({ task_id: "t" }), later: null })),
      `{"task_id":"t","payload":{},"created_at":"${now}","spec_version":"1.0"}`
    )
  })

  it.each([
    [5, 5],
    [0, 0],
    [255, 255],
    ["5", 5],
    [true, 1]
  ])("reads the priority %j as %d, as other producers are read", (priority, expected) => {
    assert.strictEqual(task({ task_id: "t", priority }).priority, expected)
  })

  it.each([
    ["priority", { priority: 256 }, "must be an integer from 0 to 255"],
    ["priority", { priority: -1 }, "must be an integer from 0 to 255"],
    ["priority", { priority: 5.5 }, "must be an integer from 0 to 255"],
    ["priority", { priority: "high" }, "must be an integer from 0 to 255"],
    ["priority", { priority: "" }, "must be an integer from 0 to 255"],
    ["payload", { payload: null }, "must be a JSON object"],
    ["payload", { payload: [] }, "must be a JSON object"],
    ["meta", { meta: [] }, "must be a JSON object"],
    ["task_id", { task_id: 7 }, "must be string"],
    ["task_id", { task_id: "" }, "must be a text that is not blank"],
    ["task_id", { task_id: " \n" }, "must be a text that is not blank"],
    ["task_id", { task_id: "ส".repeat(86) }, "must be at most 255 bytes of UTF-8"],
    ["task_id", { task_id: undefined }, "is required"],
    ["task_id", { task_id: null }, "must be string"],
    ["correlation_id", { correlation_id: 5 }, "must be string"],
    ["correlation_id", { correlation_id: "c".repeat(256) }, "must be at most 255 bytes of UTF-8"],
    ["task_type", { task_type: "t".repeat(256) }, "must be at most 255 bytes of UTF-8"],
    ["created_at", { created_at: "soon" }, "must be an ISO 8601 date-time or an epoch number"],
    ["created_at", { created_at: null }, ""],
    ["spec_version", { spec_version: 1 }, "must be string"]
  ])("refuses a wrong %s: %j", (field, given, problem) => {
    const mistakes = refused(TaskEnvelope.read({ task_id: "t", ...given }, now)).mistakes
    assert.strictEqual(mistakes[0]?.field, field)
    assert.include(mistakes[0]?.problem, problem)
  })

  it("takes a task id of exactly 255 bytes", () => {
    assert.strictEqual(task({ task_id: "ส".repeat(85) }).task_id.length, 85)
  })

  it("names every mistake at once, and no value: it may be a secret", () => {
    const error = refused(TaskEnvelope.read({ task_id: 1, payload: "s3cret", priority: "s3cret" }, now))
    assert.deepStrictEqual(
      error.mistakes.map(({ field }) => field),
      ["task_id", "payload", "priority"]
    )
    assert.notInclude(error.message, "s3cret")
    assert.include(error.message, "task envelope: task_id must be string; payload must be a JSON object; priority")
  })

  it("is read, in the same order of its fields, or refused as its schema alone would, whatever is in it", () => {
    const defaults = { payload: {}, created_at: now, spec_version: "1.0" }
    readsAs(TaskEnvelope.Declared, almostTask, defaults, (given) => TaskEnvelope.read(given, now))
  })

  it("has the correlation id of the task, else its id", () => {
    assert.strictEqual(TaskEnvelope.correlationId(task({ task_id: "t", correlation_id: "c" })), "c")
    assert.strictEqual(TaskEnvelope.correlationId(task({ task_id: "t", correlation_id: "" })), "t")
  })
})

describe("the body of a message", () => {
  it.each([
    ["an empty body", new Uint8Array()],
    ["half of an object", bytes('{"task_id":')],
    ["invalid UTF-8", new Uint8Array([...bytes('{"task_id":"'), 0xc3, 0x28, ...bytes('"}')])],
    ["an overlong form", new Uint8Array([0xc0, 0x80])],
    ["a byte order mark", new Uint8Array([0xef, 0xbb, 0xbf, ...bytes("{}")])],
    ["NaN, which is not JSON", bytes('{"task_id":NaN}')]
  ])("is malformed_json with %s", (_, body) => {
    assert.strictEqual(refused(TaskEnvelope.fromBytes(body, now)).reason, "malformed_json")
  })

  it.each([["[]"], ["5"], ["null"], ['"text"'], ["{}"]])("is invalid_envelope with %s", (body) => {
    assert.strictEqual(refused(TaskEnvelope.fromBytes(bytes(body), now)).reason, "invalid_envelope")
  })

  it("is never repeated in an error", () => {
    assert.notInclude(refused(TaskEnvelope.fromBytes(bytes('{"a":"s3cret"'), now)).message, "s3cret")
  })

  it("is UTF-8 with what is beyond ASCII literal, and half a pair of surrogates escaped", () => {
    assert.include(written(TaskEnvelope.encode(task({ task_id: "t", payload: { a: "สวัสดี ✓" } }))), '"สวัสดี ✓"')
    assert.include(written(TaskEnvelope.encode(task({ task_id: "t", payload: { a: "\ud800" } }))), '"\\ud800"')
  })

  it("is refused where a program built what JSON cannot say", () => {
    const cycle: Record<string, unknown> = {}
    cycle["self"] = cycle
    for (const value of [cycle, { big: 1n }]) {
      const error = refused(TaskEnvelope.encode(task({ task_id: "t", payload: value })))
      assert.strictEqual(error.reason, "invalid_envelope")
    }
  })

  it("is refused or written, and never a defect, where a payload is nested beyond any stack", () => {
    // the engine writes some objects recursively and others not: which of the two it is depends on how they were built
    const encoded = TaskEnvelope.encode(task({ task_id: "t", payload: nested(100_000) }))
    if (Result.isFailure(encoded)) assert.strictEqual(encoded.failure.reason, "invalid_envelope")
    else assert.isAbove(encoded.success.length, 100_000)
  })

  it("comes back as it went, for every task", () => {
    fc.assert(
      fc.property(anyTask, (given) => {
        const first = task(given)
        const again = Result.getOrThrow(TaskEnvelope.fromBytes(Result.getOrThrow(TaskEnvelope.encode(first)), "never"))
        assert.deepStrictEqual(again, first)
        assert.deepStrictEqual(Object.keys(again), Object.keys(first))
      })
    )
  })

  it("keeps a field called __proto__ a field", () => {
    const body = bytes('{"task_id":"t","__proto__":{"polluted":true},"payload":{"__proto__":1}}')
    const read = Result.getOrThrow(TaskEnvelope.fromBytes(body, now))
    assert.isTrue(Object.hasOwn(read, "__proto__"))
    assert.isUndefined(read["polluted"])
    assert.include(written(TaskEnvelope.encode(read)), '"__proto__":{"polluted":true}')
  })
})

describe("a batch envelope", () => {
  it("is what has a text batch_id and an array of tasks", () => {
    assert.isTrue(BatchEnvelope.isBatch({ batch_id: "b", tasks: [] }))
    assert.isFalse(BatchEnvelope.isBatch({ batch_id: 1, tasks: [] }))
    assert.isFalse(BatchEnvelope.isBatch({ batch_id: "b", tasks: {} }))
  })

  it("fills in what its tasks leave out, so that items carry spec_version", () => {
    const batch = Result.getOrThrow(BatchEnvelope.read({ batch_id: "b", tasks: [{ task_id: "t" }] }, now))
    assert.deepStrictEqual(batch, {
      batch_id: "b",
      tasks: [{ task_id: "t", payload: {}, created_at: now, spec_version: "1.0" }],
      meta: {},
      created_at: now,
      spec_version: "1.0"
    })
  })

  it("names the item that is wrong by its index", () => {
    const tasks = [{ task_id: "t" }, { task_id: "" }, 5]
    assert.deepStrictEqual(
      refused(BatchEnvelope.read({ batch_id: "b", tasks }, now)).mistakes.map(({ field }) => field),
      ["tasks[1].task_id", "tasks[2]"]
    )
  })

  it("needs at least one task, and a batch_id", () => {
    assert.strictEqual(refused(BatchEnvelope.read({ batch_id: "b", tasks: [] }, now)).mistakes[0]?.field, "tasks")
    const mistakes = refused(BatchEnvelope.read({ batch_id: " ", tasks: [{ task_id: "t" }] }, now)).mistakes
    assert.strictEqual(mistakes[0]?.field, "batch_id")
  })
})

describe("a status event", () => {
  it("is read, in the same order of its fields, or refused as its schema alone would, whatever is in it", () => {
    const defaults = { timestamp: now, meta: {}, spec_version: "1.0" }
    readsAs(StatusEvent.Declared, almostStatus, defaults, (given) => StatusEvent.read(given, now))
  })

  it("is validated in every form, and always gets a timestamp", () => {
    assert.deepStrictEqual(status({ task_id: "t", status: "queued" }), {
      task_id: "t",
      status: "queued",
      timestamp: now,
      meta: {},
      spec_version: "1.0",
      correlation_id: "t",
      event_id: "unique"
    })
    const wrong = { task_id: "t", status: 5, result: [] }
    assert.deepStrictEqual(
      refused(StatusEvent.read(wrong, now)).mistakes.map(({ field }) => field),
      ["status", "result"]
    )
  })

  it("keeps a given event_id, trimmed; a blank one is none", () => {
    assert.strictEqual(status({ task_id: "t", status: "s", event_id: " e " }).event_id, "e")
    assert.strictEqual(status({ task_id: "t", status: "s", event_id: " " }).event_id, "unique")
  })

  it("is the same event when it is published again with its own timestamp", () => {
    const event = { task_id: "t", status: "s", timestamp: "2026-04-06T10:00:00Z" }
    assert.strictEqual(status(event).event_id, status({ ...event, timestamp: "2026-04-06T12:00:00+02:00" }).event_id)
    assert.notStrictEqual(status(event).event_id, status({ ...event, timestamp: "2026-04-06T10:00:01Z" }).event_id)
  })

  it.each([
    [
      { correlation_id: "task-123", status: "queued", task_id: "task-123" },
      "43b9ce8c817b7722dad8ca5147def630e7175123ad6905acfd6ab1f1650290fc"
    ],
    [
      { message: "Started.", status: "processing", task_id: "task-123" },
      "bcd054185ab592588ff9ccdbe1b4aeb58da1751bdb39ed731b1ed9e2f7236151"
    ],
    [
      {
        correlation_id: "t1",
        message: "สำเร็จ ✓",
        meta: { b: 1, a: { z: null, y: [1, 2.5, true] } },
        spec_version: "1.0",
        status: "completed",
        task_id: "t1",
        timestamp: "2026-04-06T10:00:00Z"
      },
      "37676e59e68f6be477567f65f53621db2098f875807d2726b2f10347c6f97623"
    ]
  ])("has the golden id of %j", (event, id) => {
    assert.deepStrictEqual(StatusEvent.eventId(event), Result.succeed(id))
    assert.deepStrictEqual(StatusEvent.eventId({ ...event, event_id: "other" }), Result.succeed(id))
  })

  it("has an id that does not know the order of members, on any level", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (content) => {
        const event = JSON.parse(JSON.stringify(content))
        assert.deepStrictEqual(StatusEvent.eventId(reversed(event)), StatusEvent.eventId(event))
      })
    )
  })

  it("names its parent, where it has one", () => {
    const parentOf = (meta: object) => StatusEvent.parentTaskId(status({ task_id: "t", status: "s", meta }))
    assert.strictEqual(parentOf({ parent_task_id: "p" }), "p")
    assert.strictEqual(parentOf({ parent_task_id: 7 }), "7")
    assert.isUndefined(parentOf({ parent_task_id: " " }))
    assert.isUndefined(parentOf({}))
  })
})

describe("canonical JSON", () => {
  it("sorts by code point, where JavaScript sorts by UTF-16 units and puts numbers first", () => {
    assert.strictEqual(
      CanonicalJson.write({ "\ue000": 1, "😀": 2, b: 3, "9": 4, "10": 5 }),
      '{"10":5,"9":4,"b":3,"\ue000":1,"😀":2}'
    )
  })

  it("says what JSON.stringify says, but for the order", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert.deepStrictEqual(JSON.parse(CanonicalJson.write(value)), JSON.parse(JSON.stringify(value)))
      })
    )
    assert.strictEqual(
      CanonicalJson.write({ at: new Date(0), none: undefined, list: [undefined] }),
      '{"at":"1970-01-01T00:00:00.000Z","list":[null]}'
    )
  })
})

describe("a workflow envelope", () => {
  it("has its defaults, and keeps its message_id", () => {
    const given = { task_id: "t", stage: "planner", origin_stage: null, action: null }
    assert.deepStrictEqual(Result.getOrThrow(WorkflowEnvelope.read(given, messageId)), {
      task_id: "t",
      message_id: messageId,
      stage: "planner",
      payload: {},
      meta: {},
      spec_version: "1.0"
    })
    const again = Result.getOrThrow(WorkflowEnvelope.read({ ...given, message_id: "m" }, messageId))
    assert.strictEqual(again.message_id, "m")
    assert.strictEqual(WorkflowEnvelope.correlationId(again), "t")
  })

  it("needs a task and a stage", () => {
    assert.deepStrictEqual(
      refused(WorkflowEnvelope.read({}, messageId)).mistakes.map(({ field, problem }) => `${field} ${problem}`),
      ["task_id is required", "stage is required"]
    )
  })
})

describe("reading any JSON", () => {
  it("is an envelope or a typed error, and never throws", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const body = bytes(JSON.stringify(value))
        TaskEnvelope.fromBytes(body, now)
        StatusEvent.fromBytes(body, now)
        WorkflowEnvelope.fromBytes(body, messageId)
        BatchEnvelope.read(value, now)
      })
    )
    fc.assert(fc.property(fc.uint8Array(), (body) => void Envelope.parse("task", body)))
  })
})

const readsAs = (
  declared: Schema.Codec<object, unknown>,
  envelopes: fc.Arbitrary<object>,
  defaults: object,
  read: (given: object) => Result.Result<object, EnvelopeError>
) => {
  const decode = Schema.decodeUnknownResult(declared)
  fc.assert(
    fc.property(envelopes, (given) => {
      const expected = decode({ ...defaults, ...given })
      const found = read(given)
      assert.strictEqual(Result.isSuccess(found), Result.isSuccess(expected))
      if (Result.isFailure(found) || Result.isFailure(expected)) return
      assert.deepStrictEqual(Object.entries(found.success), Object.entries(expected.success))
    }),
    { numRuns: 1_000 }
  )
}

/** Mostly what is right, and now and then what is not. */
const field = (() => {
  const wrong: ReadonlyArray<unknown> = [1, -1, 5.5, true, "", " ", [], new Date(0), new Map(), { toJSON: () => 1 }]
  return (...right: ReadonlyArray<unknown>) =>
    fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...right) }, fc.constantFrom(...wrong))
})()
const texts = ["t", "ö".repeat(127), "ö".repeat(128), "x".repeat(256), "half \ud83d", "whole \u{1f600}", " t "]
const times = [now, "2026-04-06T10:00:00.000001Z", "2026-04-06T12:00:00+02:00", "2026-02-30T00:00:00Z", 1_775_000_000]

const almostTask = fc.record(
  {
    meta: field({}, { a: null }),
    spec_version: field("1.0", "7"),
    priority: field(0, 5, 255, 256, "5", "5.0", 1.5, true),
    correlation_id: field(...texts),
    task_type: field(...texts),
    service: field(...texts),
    created_at: field(...times),
    payload: field({}, { a: [1] }),
    task_id: field(...texts)
  },
  { requiredKeys: ["task_id"] }
)

const almostStatus = fc.record(
  {
    task_type: field(...texts),
    spec_version: field("1.0", "7"),
    service: field(...texts),
    event_id: field(...texts),
    correlation_id: field(...texts),
    result: field({}, { a: [1] }),
    meta: field({}, { a: null }),
    message: field(...texts),
    timestamp: field(...times),
    status: field("queued", ""),
    task_id: field(...texts)
  },
  { requiredKeys: ["task_id", "status"] }
)

const anyTask = fc
  .tuple(
    fc.dictionary(fc.string(), fc.jsonValue()),
    fc.record(
      {
        task_id: fc.string({ minLength: 1, maxLength: 60 }).filter((id) => id.trim() !== ""),
        payload: fc.dictionary(fc.string(), fc.jsonValue()),
        service: fc.option(fc.string()),
        priority: fc.option(fc.integer({ min: 0, max: 255 })),
        meta: fc.option(fc.dictionary(fc.string(), fc.jsonValue()))
      },
      { requiredKeys: ["task_id"] }
    )
  )
  // through JSON once, as -0 becomes 0 there
  .map(([extras, declared]): unknown => JSON.parse(JSON.stringify({ ...extras, ...declared })))
  .filter((given) => Result.isSuccess(TaskEnvelope.read(given, now)))

function task(given: unknown) {
  return Result.getOrThrow(TaskEnvelope.read(given, now))
}

function status(given: unknown) {
  return Result.getOrThrow(StatusEvent.readForPublish(given, { now, unique: "unique" }))
}

function refused(result: Result.Result<unknown, EnvelopeError>) {
  if (Result.isSuccess(result)) throw new Error("it was taken")
  return result.failure
}

function bytes(text: string) {
  return new TextEncoder().encode(text)
}

function written(result: Result.Result<Uint8Array, EnvelopeError>) {
  return new TextDecoder().decode(Result.getOrThrow(result))
}

function nested(depth: number) {
  let value: Record<string, unknown> = {}
  for (let level = 0; level < depth; level++) value = { value }
  return value
}

function reversed<A>(value: A): A
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, member]) => [key, reversed(member)])
  )
}
