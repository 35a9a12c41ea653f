import { createHash, randomUUID } from "node:crypto"
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { Database } from "../../services/Database.ts"

/** SHA-256, as the driver gives and takes it. */
export const Hash = Schema.Uint8Array

/** What was done, by whom. `before` and `after` are JSON. */
export interface Event {
  /** `null`: nobody over HTTP. */
  readonly actorTokenId: string | null
  readonly action: string
  readonly targetType: string
  readonly targetId: string
  readonly before: string | null
  readonly after: string | null
  readonly requestId: string
  readonly ip: string | null
  readonly userAgent: string | null
}

/** An event, as its hash sees it: JSON in the database's own text, time in microseconds since 1970. */
export interface Linked extends Event {
  readonly sequence: number
  readonly previousHash: Uint8Array
  readonly id: string
  readonly micros: number
}

/**
 * SHA-256 over every field, each with its length in bytes before it (`5:hello,`; nothing is `-,`), so that no two events
 * are written alike. The migration that chained the first events writes the same.
 */
export const hashOf = (event: Linked): Uint8Array => {
  const fields = [
    `${event.sequence}`,
    Buffer.from(event.previousHash).toString("hex"),
    event.id,
    `${event.micros}`,
    event.actorTokenId,
    event.action,
    event.targetType,
    event.targetId,
    event.before,
    event.after,
    event.requestId,
    event.ip,
    event.userAgent
  ]
  const written = fields.map((field) => (field === null ? "-," : `${Buffer.byteLength(field)}:${field},`))
  return createHash("sha256").update(written.join("")).digest()
}

/**
 * Writes the event behind the last one. Call it inside the transaction of what it tells, and last: the head of the chain
 * is locked from here to the transaction's end, so that whoever holds the head waits for nobody.
 */
export const append = Effect.fnUntraced(function* ({
  after,
  before,
  ...told
}: Event): Effect.fn.Return<void, SqlError.SqlError | Schema.SchemaError, Database> {
  const { sql } = yield* Database
  const [head] = yield* Effect.flatMap(
    sql`SELECT sequence::text, hash, (extract(epoch FROM now()) * 1000000)::bigint::text AS micros,
        ${before}::jsonb::text AS before, ${after}::jsonb::text AS after
      FROM audit_chain FOR UPDATE`,
    decodeHead
  )
  const event: Linked = {
    ...told,
    sequence: head.sequence + 1,
    previousHash: head.hash,
    id: randomUUID(),
    micros: head.micros,
    before: head.before,
    after: head.after
  }
  const hash = hashOf(event)
  yield* sql`
    WITH head AS (UPDATE audit_chain SET sequence = ${event.sequence}, hash = ${hash})
    INSERT INTO audit_events
      (sequence, previous_hash, hash, id, actor_token_id, action, target_type, target_id, before_json, after_json,
       request_id, ip, user_agent)
    VALUES (${event.sequence}, ${head.hash}, ${hash}, ${event.id}, ${event.actorTokenId}, ${event.action},
      ${event.targetType}, ${event.targetId}, ${before}::jsonb, ${after}::jsonb, ${event.requestId}, ${event.ip},
      ${event.userAgent})`
})

const Text = Schema.NullOr(Schema.String)

const decodeHead = Schema.decodeUnknownEffect(
  Schema.Tuple([
    Schema.Struct({
      sequence: Schema.FiniteFromString,
      hash: Hash,
      micros: Schema.FiniteFromString,
      before: Text,
      after: Text
    })
  ])
)
