import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // NULL also in rows of older versions. Without defaults, no row is rewritten. "C": a prefix is a range of an index.
  `ALTER TABLE usage_events
    ADD COLUMN first_byte_ms integer,
    ADD COLUMN gateway_ms integer,
    ADD COLUMN subject text COLLATE "C",
    ADD COLUMN end_user text COLLATE "C",
    ADD COLUMN session_id text COLLATE "C",
    ADD COLUMN client text COLLATE "C"`,

  // Clients and subjects are few enough for sums. Sessions and end users are read from the events.
  `ALTER TABLE usage_rollups ADD COLUMN client text COLLATE "C", ADD COLUMN subject text COLLATE "C"`,
  `CREATE INDEX usage_rollups_by_subject ON usage_rollups (subject, grain, bucket) WHERE subject IS NOT NULL`,

  // Sums by one dimension at a time, so that charts and breakdowns read few rows. name is the label of a group, and
  // series the digest of name and status_code, because names may be too long for an index.
  // Minutes are summed from the events and kept for 48 hours. Hours and days are summed from usage_rollups when they
  // are over. They are in force only while their dimension 'all' counts as many requests as usage_rollups, so that late
  // events, also those of older versions, are never missing in an answer.
  // latency, first_byte and gateway are histograms with logarithmic buckets. An element is a bucket's number, shifted
  // left by 40 bits, and the number of requests in it. A bucket may be in an array several times, so that arrays merge
  // by concatenation.
  `CREATE TABLE usage_series (
    grain text NOT NULL CHECK (grain IN ('minute', 'hour', 'day')),
    dimension text NOT NULL,
    bucket timestamptz NOT NULL,
    series uuid NOT NULL,
    name text COLLATE "C" NOT NULL,
    status_code integer NOT NULL,
    request_count bigint NOT NULL,
    reported_count bigint NOT NULL,
    estimated_count bigint NOT NULL,
    guardrail_block_count bigint NOT NULL,
    expensive_request_count bigint NOT NULL,
    unpriced_count bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    total_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost_nanos numeric NOT NULL,
    total_latency_ms bigint NOT NULL,
    fallback_count bigint NOT NULL,
    latency bigint[],
    first_byte bigint[],
    gateway bigint[],
    PRIMARY KEY (grain, dimension, bucket, series)
  )`,
  // A range may have hundreds of thousands of tasks. PostgreSQL counts their requests in the order of this index.
  `CREATE INDEX usage_series_by_task ON usage_series (grain, name, bucket) INCLUDE (request_count, status_code)
    WHERE dimension = 'task'`,

  // The sums by the minute contain all events of 48 hours before minutes_until and no later ones.
  `ALTER TABLE usage_rolled ADD COLUMN minutes_until timestamptz NOT NULL DEFAULT now() - interval '48 hours'`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
