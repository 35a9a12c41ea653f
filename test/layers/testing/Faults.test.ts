import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { HandlerCheck, step } from "../../../layers/testing/index.ts"
import {
  type TaskConsumer as Consumer,
  Handler,
  Redis,
  RetryPolicy,
  TaskConsumer
} from "../../../src/messaging/index.ts"
import { topology } from "./Orders.ts"

/** What the handlers of a run have done, in order. */
class Diary extends Context.Service<Diary, Array<string>>()("test/Diary") {
  static readonly layer = Layer.sync(Diary, () => [] as string[])
}

const note = (text: string) => Effect.flatMap(Diary, (diary) => Effect.sync(() => void diary.push(text)))

type Options = Partial<Consumer.Options<Diary | Redis>>

/** Runs a handler under some faults, and returns its diary and what has settled. */
const under = Effect.fnUntraced(function* (
  faults: ReadonlyArray<HandlerCheck.Fault>,
  handle: Handler.TaskHandler<Diary | Redis>["handle"],
  { tasks = ["a"], ...options }: Options & { readonly tasks?: ReadonlyArray<string> } = {}
) {
  const seen: { diary: ReadonlyArray<string>; settled?: HandlerCheck.Settled } = { diary: [] }
  const check = HandlerCheck.make({
    name: "check",
    topology,
    world: Diary.layer,
    worker: TaskConsumer.layer({
      retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 1_000 }),
      ...options,
      handler: Handler.make(handle)
    }),
    tasks: tasks.map((task_id) => ({ task_id })),
    invariant: (settled) =>
      Effect.map(Diary, (diary) => {
        seen.diary = Array.from(diary)
        seen.settled = settled
      })
  })
  yield* HandlerCheck.replay(check, { seed: 1, faults })
  return seen
})

const at = (at: number, what: HandlerCheck.FaultKind): ReadonlyArray<HandlerCheck.Fault> => [{ at, what }]

/** Notes the beginning and the end of the handler, and a step between them. Operations: delivery, step, ack. */
const working: Handler.TaskHandler<Diary>["handle"] = ({ task_id }, { redelivered, retryAttempt }) =>
  Effect.gen(function* () {
    yield* note(`begin ${task_id}${redelivered ? "*" : ""}${retryAttempt > 0 ? ` retry ${retryAttempt}` : ""}`)
    yield* step(`work on ${task_id}`, note(`work ${task_id}`))
    yield* note(`end ${task_id}`)
  })

const once = ["begin a", "work a", "end a"]
const again = ["begin a*", "work a", "end a"]

describe("a crash", () => {
  it.effect("at a delivery comes before the handler", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* under(at(1, "crash before"), working)).diary, again)
    })
  )

  it.effect("ends the handler at its point, and the message comes again", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* under(at(2, "crash before"), working)).diary, ["begin a", ...again])
      assert.deepStrictEqual((yield* under(at(2, "crash after"), working)).diary, ["begin a", "work a", ...again])
      assert.deepStrictEqual((yield* under(at(3, "crash before"), working)).diary, [...once, ...again])
      assert.deepStrictEqual((yield* under(at(3, "crash after"), working)).diary, once)
    })
  )

  it.effect("runs no finalizer, and ends everything else that the worker does", () =>
    Effect.gen(function* () {
      const { diary } = yield* under(
        at(4, "crash after"),
        ({ task_id }, { redelivered }) =>
          Effect.gen(function* () {
            if (!redelivered) yield* Effect.forkDetach(Effect.delay(note("too late"), "1 minute"))
            if (task_id === "b") yield* Effect.sleep("10 seconds")
            yield* step(`work on ${task_id}`, note(`work ${task_id}`))
          }).pipe(Effect.ensuring(note("released"))),
        { concurrency: 2, tasks: ["a", "b"] }
      )
      // the acknowledgement of a is operation 3, and the step of b operation 5
      assert.deepStrictEqual(diary, ["work a", "released", "work b", "released"])
    })
  )
})

describe("a lost connection", () => {
  it.effect("interrupts the handler, whose message comes again", () =>
    Effect.gen(function* () {
      const interrupted = yield* under(at(2, "disconnect before"), (task, context) =>
        Effect.onInterrupt(working(task, context), () => note("interrupted"))
      )
      assert.deepStrictEqual(interrupted.diary, ["begin a", "interrupted", ...again])
    })
  )

  it.effect("before the acknowledgement repeats the work, and after it does not", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* under(at(3, "disconnect before"), working)).diary, [...once, ...again])
      assert.deepStrictEqual((yield* under(at(3, "disconnect after"), working)).diary, once)
    })
  )

  it.effect("after a publish loses the confirm, not the message", () =>
    Effect.gen(function* () {
      const { diary, settled } = yield* under(at(2, "disconnect after"), (_task, context) =>
        Effect.andThen(context.publishStatus("told"), note("confirmed"))
      )
      assert.deepStrictEqual(diary, ["confirmed"])
      assert.deepStrictEqual(settled?.statusesOf("a"), ["told", "told"])
    })
  )
})

describe("a failure", () => {
  it.effect("of a step fails the handler, which is retried", () =>
    Effect.gen(function* () {
      const retried = ["begin a retry 1", "work a", "end a"]
      assert.deepStrictEqual((yield* under(at(2, "fail before"), working)).diary, ["begin a", ...retried])
      assert.deepStrictEqual((yield* under(at(2, "fail after"), working)).diary, ["begin a", "work a", ...retried])
    })
  )

  it.effect("of a publish is a refusal, or a stored message without a confirm", () =>
    Effect.gen(function* () {
      const telling: Handler.TaskHandler<Diary>["handle"] = (_task, context) =>
        Effect.catch(context.publishStatus("told"), ({ _tag }) => note(_tag))
      const refused = yield* under(at(2, "fail before"), telling)
      assert.deepStrictEqual([refused.diary, refused.settled?.statusesOf("a")], [["PublishRefused"], []])
      const unknown = yield* under(at(2, "fail after"), telling)
      assert.deepStrictEqual([unknown.diary, unknown.settled?.statusesOf("a")], [["PublishUnknown"], ["told"]])
    })
  )

  it.effect("of Redis comes before the command, or instead of its reply", () =>
    Effect.gen(function* () {
      const counting: Handler.TaskHandler<Diary | Redis>["handle"] = () =>
        Effect.gen(function* () {
          const { command } = yield* Redis
          yield* Effect.catch(command("INCR", "count"), ({ retryable }) => note(`retryable: ${retryable}`))
          yield* note(`count: ${yield* command("GET", "count")}`)
        })
      assert.deepStrictEqual((yield* under([], counting)).diary, ["count: 1"])
      assert.deepStrictEqual((yield* under(at(2, "fail before"), counting)).diary, ["retryable: true", "count: null"])
      assert.deepStrictEqual((yield* under(at(2, "fail after"), counting)).diary, ["retryable: true", "count: 1"])
    })
  )

  it.effect("to return in time is the handler's timeout, or else the broker's, which closes the channel", () =>
    Effect.gen(function* () {
      const timed = yield* under(at(2, "hang"), working, { handleWithin: "1 minute" })
      assert.deepStrictEqual(timed.diary, ["begin a", "begin a retry 1", "work a", "end a"])
      assert.deepStrictEqual((yield* under(at(2, "hang"), working)).diary, ["begin a", ...again])
    })
  )
})

describe("a delivery", () => {
  it.effect("is there twice", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* under(at(1, "duplicate"), working)).diary, [...once, ...once])
    })
  )

  it.effect("comes after the next message", () =>
    Effect.gen(function* () {
      const { diary } = yield* under(at(1, "reorder"), working, { tasks: ["a", "b"] })
      assert.deepStrictEqual(diary, ["begin b", "work b", "end b", ...once])
    })
  )
})

describe("a redelivery", () => {
  it.effect("that moves stays a redelivery", () =>
    Effect.gen(function* () {
      const twice = [...at(1, "disconnect before"), ...at(2, "reorder")]
      assert.deepStrictEqual((yield* under(twice, working)).diary, again)
    })
  )
})

describe("a delay", () => {
  it.effect("lets time pass before an operation or before its result", () =>
    Effect.gen(function* () {
      const timed: Handler.TaskHandler<Diary>["handle"] = () =>
        Effect.gen(function* () {
          yield* step(
            "work",
            Effect.flatMap(Clock.currentTimeMillis, (now) => note(`work at ${now}`))
          )
          yield* note(`end at ${yield* Clock.currentTimeMillis}`)
        })
      assert.deepStrictEqual((yield* under(at(2, "delay before"), timed)).diary, ["work at 5000", "end at 5000"])
      assert.deepStrictEqual((yield* under(at(2, "delay after"), timed)).diary, ["work at 0", "end at 5000"])
    })
  )
})

it.effect("a step outside a check is the effect itself", () =>
  Effect.gen(function* () {
    assert.strictEqual(yield* step("work", Effect.succeed(1), { error: () => "never" }), 1)
  })
)
