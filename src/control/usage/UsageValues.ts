import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import * as UsageSums from "../../state/UsageSums.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { FilterField } from "../api/usage/UsageApi.ts"
import { computedRows } from "../store/Rows.ts"

/** The values of a field of the usage records, in alphabetical order. */
export interface Values {
  readonly field: string
  readonly values: ReadonlyArray<string>
}

const defaultLimit = 50

export const make = (sql: SqlClient) => {
  /**
   * Each step looks the next value up in an index. A DISTINCT would read all entries of each value, which may be
   * millions.
   */
  const distinct = ({ column, condition = "true", table }: Source, { from, to }: Bounds, limit: number) => {
    const next = (bound: Fragment) => sql`SELECT ${sql.literal(column)} FROM ${sql.literal(table)}
      WHERE ${sql.literal(condition)} AND ${sql.literal(column)} ${bound} AND ${sql.literal(column)} <= ${to}
      ORDER BY 1 LIMIT 1`
    return sql`
      WITH RECURSIVE found (value) AS (
        (${next(sql`>= ${from}`)})
        UNION ALL
        SELECT (${next(sql`> found.value`)}) FROM found WHERE value IS NOT NULL
      )
      SELECT value::text COLLATE "C" AS value FROM found WHERE value IS NOT NULL LIMIT ${limit}`
  }

  /** The records that are not in the sums yet are few. */
  const ofLatest = (expression: string, prefix: string, watermark: number, limit: number) => {
    const value = sql.literal(`(${expression} COLLATE "C")`)
    const { from, to } = textBounds(prefix)
    return sql`SELECT DISTINCT ${value} AS value FROM usage_events
      WHERE created_at >= ${new Date(watermark)} AND ${value} BETWEEN ${from} AND ${to} ORDER BY 1 LIMIT ${limit}`
  }

  const statement = (field: FilterField, prefix: string, watermark: number, limit: number) => {
    if (isFree(field)) return distinct({ table: "usage_events", column: field }, textBounds(prefix), limit)
    const { event, isUuid = false, ...column } = summedColumns[field]
    const bounds = isUuid ? idBounds(prefix) : textBounds(prefix)
    if (bounds === undefined) return undefined
    return sql`SELECT DISTINCT value FROM (
        (${distinct({ table: "usage_rollups", ...column }, bounds, limit)})
        UNION ALL (${ofLatest(event, prefix, watermark, limit)})
      ) AS found ORDER BY 1 LIMIT ${limit}`
  }

  return {
    /** Reads the values that begin with `prefix`. The sums contain all records before `watermark`. */
    read: (field: FilterField, prefix: string, watermark: number, limit = defaultLimit) => {
      const read = statement(field, prefix, watermark, limit)
      const rows = read === undefined ? Effect.succeed([]) : textRows.all(read.unprepared)
      return Effect.map(rows, (found): Values => ({ field, values: found.map(({ value }) => value) }))
    }
  }
}

export const checkedField = (field: string): Effect.Effect<FilterField, Refused<"invalid_usage_query">> =>
  isField(field)
    ? Effect.succeed(field)
    : Effect.fail(
        new ControlError("invalid_usage_query", `field must be one of ${FilterField.literals.join(", ")}.`, {
          param: "field"
        })
      )

/** Clients choose these values freely, so there are no sums by them. */
type FreeField = "session_id" | "end_user"

const isFree = (field: FilterField): field is FreeField => field === "session_id" || field === "end_user"

interface Source {
  readonly table: string
  readonly column: string
  /** The condition of the partial index. */
  readonly condition?: string
}

interface SummedColumn extends Omit<Source, "table"> {
  /** SQL: the value of an event. */
  readonly event: string
  readonly isUuid?: boolean
}

const inOverview = "grain = 'day' AND part = 'overview'"
const inDays = "grain = 'day' AND part <> 'task'"

const summedColumns: Readonly<Record<Exclude<FilterField, FreeField>, SummedColumn>> = {
  route: { column: "route", condition: inOverview, event: "route" },
  provider: { column: "provider", condition: inOverview, event: "provider" },
  service: { column: "service_name", event: "service_name" },
  endpoint: { column: "endpoint", condition: inDays, event: UsageSums.endpointOfEvent },
  model: { column: "model", event: UsageSums.modelOfEvent },
  task_id: { column: "task_id", event: "task_id" },
  run_id: { column: "run_id", event: "run_id" },
  client: { column: "client", condition: inDays, event: "client" },
  subject: { column: "subject", event: "subject" },
  team_id: { column: "team_id", event: "team_id" },
  project_id: { column: "project_id", event: "project_id::text", isUuid: true },
  key_id: { column: "key_id", event: "key_id::text", isUuid: true }
}

interface Bounds {
  readonly from: string
  readonly to: string
}

/** In the collation "C", no character of a valid text sorts after this one. */
const lastCharacter = "\u{10ffff}"

const textBounds = (prefix: string): Bounds => ({ from: prefix, to: `${prefix}${lastCharacter}` })

/** UUIDs sort as their texts do. Returns `undefined` if no id begins with the prefix. */
const idBounds = (prefix: string): Bounds | undefined => {
  const filled = (digit: string) => prefix + idPattern.slice(prefix.length).replaceAll("x", digit)
  const bounds = { from: filled("0"), to: filled("f") }
  return isId(bounds.from) ? bounds : undefined
}

const idPattern = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
const isId = (text: string): boolean => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)

const isField = Schema.is(FilterField)

const textRows = computedRows(Schema.Struct({ value: Schema.String }))
