import { createHash, randomUUID } from "node:crypto"
import { Effect, Schema } from "effect"
import { Database } from "../../services/Database.ts"

/** SHA-256, as the driver gives and takes it. */
export const Hash = Schema.Uint8Array

/** An event, as its hash sees it: JSON in the database's own text, time in microseconds since 1970. */
export interface Linked {
  readonly sequence: number
  readonly previousHash: Uint8Array
  readonly id: string
  readonly micros: number
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

/**
 * SHA-256 over every field, each with its length in bytes before it (`5:hello,`; nothing is `-,`), so that no two events
 * are written alike. The migration that chained the first events writes the same.
 */
export const hashOf = (event: Linked): Uint8Array => {
  const fields = [
    `${event.sequence}`,
    hex(event.previousHash),
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

export const hex = (hash: Uint8Array): string => Buffer.from(hash).toString("hex")

/** What was done, by whom, and the request that did it. `before` and `after` are JSON. */
export type Event = Omit<Linked, "sequence" | "previousHash" | "id" | "micros">

const Head = Schema.Struct({
  sequence: Schema.FiniteFromString,
  hash: Hash,
  micros: Schema.FiniteFromString,
  before: Schema.NullOr(Schema.String),
  after: Schema.NullOr(Schema.String)
})
const decodeHeads = Schema.decodeUnknownEffect(Schema.Tuple([Head]))

/**
 * Adds an event to the log, in the transaction that is under way. The head of the chain is locked from here to its end:
 * with every other lock taken before, whoever holds the head waits for nobody.
 */
export const append = Effect.fnUntraced(function* (event: Event) {
  const { sql } = yield* Database
  const { action, actorTokenId, after, before, ip, requestId, targetId, targetType, userAgent } = event
  const [head] = yield* Effect.flatMap(
    sql`SELECT sequence::text AS sequence, hash, (extract(epoch FROM now()) * 1000000)::bigint::text AS micros,
      ${before}::jsonb::text AS before, ${after}::jsonb::text AS after FROM audit_chain FOR UPDATE`,
    decodeHeads
  )
  const linked: Linked = {
    ...event,
    sequence: head.sequence + 1,
    previousHash: head.hash,
    id: randomUUID(),
    micros: head.micros,
    before: head.before,
    after: head.after
  }
  const hash = hashOf(linked)
  yield* sql`
    WITH head AS (UPDATE audit_chain SET sequence = ${linked.sequence}, hash = ${hash})
    INSERT INTO audit_events
      (sequence, previous_hash, hash, id, actor_token_id, action, target_type, target_id, before_json, after_json,
       request_id, ip, user_agent)
    VALUES (${linked.sequence}, ${head.hash}, ${hash}, ${linked.id}, ${actorTokenId}, ${action}, ${targetType},
      ${targetId}, ${before}::jsonb, ${after}::jsonb, ${requestId}, ${ip}, ${userAgent})`
})
