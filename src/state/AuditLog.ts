import { createHash, randomUUID } from "node:crypto"
import { Effect, Schema } from "effect"
import { Database } from "../services/Database.ts"

interface AuditEntry {
  /** The id of the operator's token. It is `null` if a command or the gateway itself made the change. */
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

/** A stored audit event. `before` and `after` are JSON text from PostgreSQL. `micros` are microseconds since 1970. */
export interface ChainedEvent extends AuditEntry {
  readonly sequence: number
  readonly previousHash: Uint8Array
  readonly id: string
  readonly micros: number
}

/**
 * Returns the SHA-256 of all fields. Each field has its length as a prefix (`5:hello,`), and `null` is `-,`. The
 * migration that hashed older events uses the same encoding.
 */
export const hashOf = (event: ChainedEvent): Uint8Array => {
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
  const encodedFields = fields.map((field) => (field === null ? "-," : `${Buffer.byteLength(field)}:${field},`))
  return createHash("sha256").update(encodedFields.join("")).digest()
}

const Heads = Schema.Array(
  Schema.Struct({
    sequence: Schema.FiniteFromString,
    hash: Schema.Uint8Array,
    micros: Schema.FiniteFromString,
    before: Schema.NullOr(Schema.String),
    after: Schema.NullOr(Schema.String)
  })
)
const decodeHeads = Schema.decodeUnknownEffect(Heads)

/**
 * Call this after a transaction's changes and before its notices. The row of the last event stays locked until the
 * transaction ends. Every transaction locks that row before the epoch, which prevents deadlocks.
 */
export const append = Effect.fnUntraced(function* (entry: AuditEntry) {
  const { sql } = yield* Database
  const [head] = yield* Effect.flatMap(
    sql`
      SELECT sequence::text AS sequence, hash, (extract(epoch FROM now()) * 1000000)::bigint::text AS micros,
        ${entry.before}::jsonb::text AS before, ${entry.after}::jsonb::text AS after
      FROM audit_chain FOR UPDATE`,
    decodeHeads
  )
  if (head === undefined) return yield* Effect.die(new Error("table audit_chain is empty; restore it from a backup"))
  const event: ChainedEvent = {
    ...entry,
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
    VALUES (${event.sequence}, ${head.hash}, ${hash}, ${event.id}, ${entry.actorTokenId}, ${entry.action},
      ${entry.targetType}, ${entry.targetId}, ${entry.before}::jsonb, ${entry.after}::jsonb, ${entry.requestId}, ${entry.ip},
      ${entry.userAgent})`
})
