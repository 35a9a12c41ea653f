import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { HttpServer } from "effect/http"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { BrokerClient } from "../../src/messaging/index.ts"
import { eventually } from "../Eventually.ts"
import * as WorkerExample from "../messaging/WorkerExample.ts"
import { connect } from "../status/EventClient.ts"
import * as RecordedWorkerExample from "./RecordedWorkerExample.ts"
import * as ServerExample from "./ServerExample.ts"

const servers = Layer.merge(BrokerMemory.layer(), RedisMemory.layer({ prefix: "svc:" }))

const Explained = Schema.Struct({
  dlq_id: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String),
  exception_type: Schema.NullOr(Schema.String)
})

describe("the guide's example of statuses, dead letters and graphs", () => {
  it.live("tells of the mails that the worker of messaging sends", () =>
    Effect.gen(function* () {
      const served = yield* Layer.build(ServerExample.server(0))
      const { address } = Context.get(served, HttpServer.HttpServer)
      const port = "port" in address ? address.port : 0
      yield* Layer.build(WorkerExample.worker)
      const client = yield* connect(`http://127.0.0.1:${port}/mails/m1/events`)
      yield* (yield* BrokerClient.make({ topology: ServerExample.lifespan.topology })).publishTask({
        task_id: "m1",
        task_type: "send",
        payload: { to: "ada@example.com", text: "hello" }
      })
      yield* client.until(({ ended }) => ended)
      assert.include(client.text, `"status":"sent"`)
      const ask = (path: string) =>
        Effect.promise(() => fetch(`http://127.0.0.1:${port}${path}`).then((answer) => answer.json()))
      assert.deepInclude(yield* ask("/mails/m1/explain"), { verdict: "finished", status: "sent" })
      assert.deepInclude(yield* ask("/dlq/queues"), { queues: [] })
    }).pipe(Effect.scoped, Effect.provide(servers))
  )

  it.live("tells why a mail failed, of the worker that records it", () =>
    Effect.gen(function* () {
      const served = yield* Layer.build(ServerExample.server(0))
      const { address } = Context.get(served, HttpServer.HttpServer)
      const port = "port" in address ? address.port : 0
      yield* Layer.build(RecordedWorkerExample.recorded)
      yield* (yield* BrokerClient.make({ topology: ServerExample.lifespan.topology })).publishTask({
        task_id: "m2",
        task_type: "send",
        payload: { to: 5 }
      })
      const explained = Effect.promise(() =>
        fetch(`http://127.0.0.1:${port}/mails/m2/explain`).then((answer) => answer.json())
      ).pipe(Effect.map(Schema.decodeUnknownSync(Explained)))
      const { exception_type, reason } = yield* eventually(explained, ({ dlq_id }) => dlq_id !== null)
      assert.deepStrictEqual([reason, exception_type], ["payload_schema_violation", "TaskRefused"])
    }).pipe(Effect.scoped, Effect.provide(servers))
  )
})
