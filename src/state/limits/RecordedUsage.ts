import { type Array as Arr, Data, DateTime, Effect } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { Database } from "../../services/Database.ts"
import { Redis, type Script } from "../../services/Redis.ts"
import { usageQueue } from "../UsageQueue.ts"
import * as UsageRow from "../UsageRow.ts"
import { admittedCount, admittedEvent, isAdmitted } from "../UsageSums.ts"
import type { CountedOwner } from "./LimitScopes.ts"
import * as Meters from "./Meters.ts"

const maxQueuedRecords = 20_000

/** Meters with equal keys count the same usage records in different units. One database query can sum all units. */
export const recordSetKey = ({ counted, windowId }: Meters.Meter): string => `${windowId} ${JSON.stringify(counted)}`

/** Too many usage records wait for the database. Its message is a sentence for operators. */
export class LongQueue extends Data.TaggedError("LongQueue")<{ readonly message: string }> {}

type Sums = Record<Meters.Unit, number>

/**
 * Returns what lost counters have to be set to: the sums of the usage records, without what operators have forgiven.
 * The meters have the same scope and the same `recordSetKey`.
 */
export const restoredAmounts = Effect.fnUntraced(function* (meters: Arr.NonEmptyReadonlyArray<Meters.Meter>) {
  const { forgiven, sums } = yield* readRecords(meters[0])
  return meters.map((meter) => [meter, Math.max(0, sums[meter.unit] - (forgiven.get(meter.name) ?? 0))] as const)
})

/**
 * Returns the sums of the usage records, and what operators have forgiven of them, by the names of counters. Reads the
 * queue before the table. A record that moves meanwhile is then found twice, and counted only once.
 */
export const readRecords = Effect.fnUntraced(function* (meter: Meters.Meter) {
  const { id: scope, owner } = meter.scope
  const { endsAt, startsAt } = Meters.windowAt(meter.window, DateTime.makeUnsafe(meter.endsAt - 1))
  const { sql } = yield* Database
  const members =
    owner._tag === "Layer" && owner.kind === "team"
      ? (yield* sql<{ id: string }>`SELECT id::text AS id FROM api_keys WHERE team_id = ${owner.scopeId}`).map(
          ({ id }) => id
        )
      : []
  const queued = (yield* queuedRecords(searchTextOf(owner))).filter(
    (record) =>
      record.createdAt >= startsAt &&
      record.createdAt < endsAt &&
      belongsTo(owner, members, record) &&
      isCounted(meter, record)
  )
  const [start, end] = [new Date(startsAt), new Date(endsAt)]
  const condition = sql.and([ownerCondition(sql, owner, members), countedCondition(sql, meter)])
  const part = sql.literal(meter.counted === "all" && usesOverview(owner) ? "('overview')" : "('untasked', 'tasked')")
  const [row] = yield* sql<{
    requests: string
    tokens: string
    nanos: string
    forgiven: Readonly<Record<string, string>>
    written: ReadonlyArray<string>
  }>`
    SELECT coalesce(sum(requests), 0)::text AS requests, coalesce(sum(tokens), 0)::text AS tokens,
      coalesce(sum(nanos), 0)::text AS nanos,
      (SELECT coalesce(jsonb_object_agg(counter, forgiven::text), '{}') FROM limit_resets
        WHERE scope = ${scope} AND window_id = ${meter.windowId}) AS forgiven,
      ARRAY(SELECT id::text FROM usage_events WHERE (created_at, id) IN (
        SELECT to_timestamp(at / 1000.0), id FROM unnest(${queued.map(({ createdAt }) => String(createdAt))}::bigint[],
          ${queued.map(({ id }) => id)}::uuid[]) AS waiting (at, id))) AS written
    FROM (
      SELECT ${sql.literal(admittedCount)} AS requests, total_tokens AS tokens, cost_nanos AS nanos FROM usage_rollups
      WHERE grain = 'day' AND part IN ${part} AND bucket >= ${start} AND bucket < ${end} AND ${condition}
      UNION ALL
      SELECT (${sql.literal(admittedEvent)})::integer, total_tokens, cost_nanos FROM usage_events
      WHERE created_at >= greatest(${start}, (SELECT until FROM usage_rolled)) AND created_at < ${end} AND ${condition}
    ) AS found`
  const written = new Set(row?.written)
  const sums: Sums = { requests: Number(row?.requests), tokens: Number(row?.tokens), nanos: Number(row?.nanos) }
  for (const record of queued) {
    if (written.has(record.id)) continue
    if (record.admitted) sums.requests += 1
    sums.tokens += record.tokens
    sums.nanos += record.nanos
  }
  const forgiven = Object.entries(row?.forgiven ?? {}).map(([name, amount]) => [name, Number(amount)] as const)
  return { sums, forgiven: new Map(forgiven) }
})

interface QueuedRecord {
  readonly id: string
  readonly createdAt: number
  readonly keyId: string
  readonly projectId: string
  readonly route: string
  readonly model: string
  readonly admitted: boolean
  readonly tokens: number
  readonly nanos: number
}

const queuedRecords = Effect.fnUntraced(function* (needle: string) {
  const redis = yield* Redis
  const { count, lines } = yield* redis.run(queuedRecordsScript, [redis.key(usageQueue)], [needle, maxQueuedRecords])
  if (count > maxQueuedRecords) {
    return yield* new LongQueue({
      message: `The usage of a limit cannot be added up while ${count} usage records wait for the database (the most is ${maxQueuedRecords}). Try again when fewer wait.`
    })
  }
  return lines.map((line): QueuedRecord => {
    const field = UsageRow.fieldReader(line)
    return {
      id: field("id"),
      createdAt: Number(field("created_at")),
      keyId: field("key_id"),
      projectId: field("project_id"),
      route: field("route"),
      model: field("model"),
      admitted: isAdmitted(field("error_code")),
      tokens: Number(field("total_tokens")),
      nanos: Number(field("cost_nanos"))
    }
  })
})

/** KEYS: usage queue. ARGV: text to search for, and the maximum queue length. A longer queue is not searched. */
const queuedRecordsScript: Script<{ readonly count: number; readonly lines: ReadonlyArray<string> }> = {
  name: "waiting",
  lua: `
local count, found = redis.call('LLEN', KEYS[1]), {}
if count <= tonumber(ARGV[2]) then
  for _, line in ipairs(redis.call('LRANGE', KEYS[1], '0', '-1')) do
    if string.find(line, ARGV[1], 1, true) then found[#found + 1] = line end
  end
end
return { count, unpack(found) }`,
  step: (call, [queue = ""], [needle = "", maximum = ""]) => {
    const count = Number(call("LLEN", queue))
    const records = count <= Number(maximum) ? call("LRANGE", queue, "0", "-1") : []
    return [count, ...(Array.isArray(records) ? records : []).filter((line) => String(line).includes(needle))]
  },
  decode: (reply) => {
    const [count, ...lines] = Array.isArray(reply) ? reply : []
    return { count: Number(count), lines: lines.map(String) }
  }
}

/** Returns a text that every queued record of the owner contains. Redis returns only the records with this text. */
const searchTextOf = (owner: CountedOwner): string => {
  if (owner._tag === "Key") return owner.keyId
  return owner.kind === "team" || owner.kind === "global" ? "" : owner.scopeId
}

const belongsTo = (owner: CountedOwner, members: ReadonlyArray<string>, record: QueuedRecord): boolean => {
  if (owner._tag === "Key") return record.keyId === owner.keyId
  switch (owner.kind) {
    case "global":
      return true
    case "project":
      return record.projectId === owner.scopeId
    case "team":
      return members.includes(record.keyId)
    case "route":
      return record.route === owner.scopeId
    case "model":
      return record.model === owner.scopeId
  }
}

const isCounted = ({ counted }: Meters.Meter, { model, route }: QueuedRecord): boolean =>
  counted === "all" || counted.routes.includes(route) || counted.models.includes(model)

type Sql = Database["Service"]["sql"]

/** Expresses the condition of `belongsTo` in SQL over `usage_events` and `usage_rollups`. */
const ownerCondition = (sql: Sql, owner: CountedOwner, members: ReadonlyArray<string>): Fragment => {
  if (owner._tag === "Key") return sql`key_id = ${owner.keyId}`
  switch (owner.kind) {
    case "global":
      return sql`true`
    case "project":
      return sql`project_id = ${owner.scopeId}`
    case "team":
      return sql`key_id = ANY(${members}::uuid[])`
    case "route":
      return sql`route = ${owner.scopeId}`
    case "model":
      return sql`model = ${owner.scopeId}`
  }
}

const countedCondition = (sql: Sql, { counted }: Meters.Meter): Fragment =>
  counted === "all" ? sql`true` : sql`(route = ANY(${counted.routes}) OR model = ANY(${counted.models}))`

/** True if the coarse `overview` sums suffice. They have far fewer rows, because they do not distinguish keys. */
const usesOverview = (owner: CountedOwner): boolean =>
  owner._tag === "Layer" && (owner.kind === "global" || owner.kind === "route")
