import { Effect, Layer, Schema } from "effect"
import * as LeasedSource from "../../live/LeasedSource.ts"
import { Database } from "../../services/Database.ts"
import type { Redis } from "../../services/Redis.ts"
import { Count, computedRows, storedRows } from "../store/Rows.ts"

/**
 * Tells operators what was changed, while somebody follows the topic. It reads the audit log, because commands and
 * gateways change things as well.
 */
export const layer: Layer.Layer<never, never, Database | Redis> = Layer.effectDiscard(
  Effect.gen(function* () {
    const { sql } = yield* Database
    const head = Effect.map(
      headRows.only(sql`SELECT sequence FROM audit_chain`),
      ({ sequence }): LeasedSource.Step => ({ progress: String(sequence), changes: [] })
    )
    const after = (sequence: string) =>
      Effect.map(
        eventRows.all(sql`
          SELECT sequence, action, target_type, target_id, actor_token_id, request_id, created_at
          FROM audit_events WHERE sequence > ${sequence}::bigint ORDER BY sequence LIMIT ${mostEvents}`),
        (events): LeasedSource.Step => ({
          progress: String(events.at(-1)?.sequence ?? sequence),
          changes: events.map(({ created_at, ...event }) => ({
            kind: "changed",
            detail: { at: created_at.getTime(), ...event }
          }))
        })
      )
    yield* LeasedSource.watch({
      topic: "configuration",
      name: "audit",
      every: lookEveryMs,
      advance: Effect.fnUntraced(function* (progress) {
        return progress === undefined ? yield* head : yield* after(progress)
      })
    })
  })
)

const lookEveryMs = 1_000
const mostEvents = 1_000

const headRows = computedRows(Schema.Struct({ sequence: Count }))

const eventRows = storedRows(
  Schema.Struct({
    sequence: Count,
    action: Schema.String,
    target_type: Schema.String,
    target_id: Schema.String,
    actor_token_id: Schema.NullOr(Schema.String),
    request_id: Schema.String,
    created_at: Schema.Date
  }),
  { table: "audit_events", key: ["sequence"] }
)
