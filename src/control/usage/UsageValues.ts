import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
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
  const startsWith = (column: string, prefix: string) =>
    sql`${sql.literal(column)} >= ${prefix} AND ${sql.literal(column)} < ${`${prefix}${lastCharacter}`}`

  const labels = (field: FreeField, prefix: string, limit: number) => sql`
    SELECT DISTINCT ${sql.literal(field)} AS value FROM usage_events
    WHERE ${sql.literal(field)} IS NOT NULL AND ${startsWith(field, prefix)} ORDER BY 1 LIMIT ${limit}`

  const summed = (field: Exclude<FilterField, FreeField>, prefix: string, watermark: number, limit: number) => {
    const { bucket, event, part } = valueColumns[field]
    return sql`
      SELECT DISTINCT value FROM (
        (SELECT DISTINCT ${sql.literal(bucket)} AS value FROM usage_rollups
          WHERE grain = 'day' AND ${sql.literal(part)} AND ${startsWith(bucket, prefix)} ORDER BY 1 LIMIT ${limit})
        UNION ALL
        (SELECT DISTINCT ${sql.literal(event)} COLLATE "C" AS value FROM usage_events
          WHERE created_at >= ${new Date(watermark)} AND ${startsWith(`(${event} COLLATE "C")`, prefix)} ORDER BY 1 LIMIT ${limit})
      ) AS found ORDER BY 1 LIMIT ${limit}`
  }

  return {
    /** Reads the values that begin with `prefix`. The sums contain all records before `watermark`. */
    read: (field: FilterField, prefix: string, watermark: number, limit = defaultLimit) =>
      Effect.map(
        textRows.all(
          (isFree(field) ? labels(field, prefix, limit) : summed(field, prefix, watermark, limit)).unprepared
        ),
        (read): Values => ({ field, values: read.map(({ value }) => value) })
      )
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

const valueColumns: Readonly<
  Record<Exclude<FilterField, FreeField>, { readonly bucket: string; readonly event: string; readonly part: string }>
> = {
  route: { bucket: "route", event: "route", part: "part <> 'task'" },
  provider: { bucket: "provider", event: "provider", part: "part <> 'task'" },
  service: { bucket: "service_name", event: "service_name", part: "part <> 'task'" },
  endpoint: { bucket: "endpoint", event: UsageSums.endpointOfEvent, part: "part <> 'task'" },
  model: { bucket: "model", event: UsageSums.modelOfEvent, part: "part <> 'task'" },
  task_id: { bucket: "task_id", event: "task_id", part: "part = 'task'" },
  run_id: { bucket: "run_id", event: "run_id", part: "part = 'task'" },
  client: { bucket: "client", event: "client", part: "part <> 'task'" },
  subject: { bucket: "subject", event: "subject", part: "part <> 'task'" },
  team_id: { bucket: "team_id", event: "team_id", part: "part <> 'task'" },
  project_id: { bucket: `(project_id::text COLLATE "C")`, event: "project_id::text", part: "part <> 'task'" },
  key_id: { bucket: `(key_id::text COLLATE "C")`, event: "key_id::text", part: "part <> 'task'" }
}

const isField = Schema.is(FilterField)

/** In the collation "C", no character of a valid text sorts after this one. */
const lastCharacter = "\u{10ffff}"

const textRows = computedRows(Schema.Struct({ value: Schema.String }))
