import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { BrokerClient, type HandlerContext } from "../../src/messaging/index.ts"
import { desk } from "./AtWork.ts"
import { shared } from "./SampleTopologies.ts"

describe("a publish with a wrong member", () => {
  it.effect("does not compile, and is refused where the compiler is told that its members are aliases", () =>
    Effect.gen(function* () {
      const { publishStatus, publishTask, publishTasks } = yield* BrokerClient
      const refused = (publish: Effect.Effect<void, { readonly _tag: string }>) =>
        Effect.map(Effect.flip(publish), ({ _tag }) => assert.strictEqual(_tag, "EnvelopeError"))
      // @ts-expect-error
      yield* refused(publishTask({ taskId: "x" }))
      // @ts-expect-error
      yield* refused(publishTask({ payload: {} }))
      // @ts-expect-error
      yield* refused(publishTask({ task_id: "x", payload: [1] }))
      // @ts-expect-error
      yield* refused(publishTasks([{ task_id: "x" }, { taskId: "y" }]))
      // @ts-expect-error
      yield* refused(publishStatus({ task_id: "x", status: "done", result: [1] }))
      // @ts-expect-error
      yield* refused(publishStatus({ task_id: "x" }))
      yield* refused(publishTask({ taskId: "x" }, { aliased: true }))
      yield* refused(publishStatus({ task_id: "x" }, { aliased: true }))
    }).pipe(Effect.provide(desk({ topology: shared() })))
  )

  it("does not compile in camelCase either, where it would be taken for an extra member", () => {
    const notCalled = ({ publishStatus, publishTask, publishToStage }: BrokerClient["Service"], my: HandlerContext) => [
      publishTask({ task_id: "x", extra: 1, task_type: undefined }),
      publishToStage({ task_id: "x", extra: 1 }, "write"),
      publishStatus({ task_id: "x", status: "done", extra: 1 }),
      my.publishStatus("done", { correlation_id: "c", extra: 1 }),
      // @ts-expect-error
      publishTask({ task_id: "x", taskType: "resize" }),
      // @ts-expect-error
      publishTask({ task_id: "x", correlationId: "c" }),
      // @ts-expect-error
      publishToStage({ task_id: "x", messageId: "m" }, "write"),
      // @ts-expect-error
      publishStatus({ task_id: "x", status: "done", eventId: "e" }),
      // @ts-expect-error
      my.publishStatus("done", { correlationId: "c" })
    ]
    assert.isFunction(notCalled)
  })
})
