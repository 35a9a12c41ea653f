import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import * as Quantiles from "../../state/Quantiles.ts"
import { minuteLabels, statusOfEvent, summands, summedEvents } from "../../state/UsageSums.ts"

/** Adds the events of `source` to the sums by the minute. */
export const minuteStatement = (sql: SqlClient, source: Fragment): Fragment => sql`
  INSERT INTO usage_series (grain, dimension, bucket, series, name, status_code, ${sql.literal(columns.join(", "))})
  WITH labelled AS (
    SELECT date_trunc('minute', created_at, 'UTC') AS bucket, dimension, name, ${sql.literal(statusOfEvent)} AS code,
      ${sql.literal(eventColumns)}
    FROM (SELECT * FROM ${source}) AS events
      CROSS JOIN LATERAL (VALUES ${sql.literal(dimensionRows)}) AS labels (dimension, name)
  ), sums AS (
    SELECT bucket, dimension, name, code, ${sql.literal(summedEvents)} FROM labelled GROUP BY 1, 2, 3, 4
  ), counts AS (
    SELECT bucket, dimension, name, code, measure, ${sql.literal(Quantiles.bucketOf("ms"))} AS number, count(*) AS count
    FROM labelled CROSS JOIN LATERAL (VALUES ${sql.literal(measureRows)}) AS measured (measure, ms)
    WHERE ms IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6
  ), histograms AS (
    SELECT bucket, dimension, name, code, ${sql.literal(histogramColumns)} FROM counts GROUP BY 1, 2, 3, 4
  )
  SELECT 'minute', dimension, bucket, md5(ROW(name, code)::text)::uuid, name, code, ${sql.literal(columns.join(", "))}
  FROM sums LEFT JOIN histograms USING (bucket, dimension, name, code)
  ON CONFLICT (grain, dimension, bucket, series) DO UPDATE SET ${sql.literal(merged)}`

const histograms = Object.values(Quantiles.measures)

const columns = [...summands, ...histograms]

const eventColumns =
  "usage_source, cost_source, error_code, cost_nanos, input_tokens, output_tokens, total_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens, latency_ms, first_byte_ms, gateway_ms, upstream_ms, fallback_count"

const dimensionRows = Object.entries(minuteLabels)
  .map(([dimension, label]) => `('${dimension}', ${label})`)
  .join(", ")

const measureRows = Object.entries(Quantiles.measures)
  .map(([column, measure]) => `('${measure}', ${column}::bigint)`)
  .join(", ")

const histogramColumns = histograms
  .map(
    (measure) => `array_agg(${Quantiles.packed("number", "count")}) FILTER (WHERE measure = '${measure}') AS ${measure}`
  )
  .join(", ")

const merged = [
  ...summands.map((name) => `${name} = usage_series.${name} + excluded.${name}`),
  ...histograms.map((name) => `${name} = usage_series.${name} || excluded.${name}`)
].join(", ")
