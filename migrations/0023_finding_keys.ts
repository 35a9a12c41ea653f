import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** ASCII characters that are neither letters nor digits. The parser of PostgreSQL would also split 8e12ab at "8e12". */
const separators = `'[\\x01-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7f]+'`
const longestWord = 64

/** Requests with and without a task are in different rows. */
const monthsOf = (rows: string, condition = "true") => `
  SELECT key_id, (date_trunc('month', bucket, 'UTC') AT TIME ZONE 'UTC')::date AS month, sum(cost_nanos) AS cost_nanos
  FROM ${rows} WHERE grain = 'day' AND part IN ('untasked', 'tasked') AND key_id IS NOT NULL AND ${condition} GROUP BY 1, 2`

const statements = [
  // A search finds texts with words that begin with the words of the search.
  `CREATE FUNCTION search_words(texts text[]) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT array_to_tsvector(array_remove(array_agg(DISTINCT left(word, ${longestWord})), ''))
    FROM regexp_split_to_table(lower(array_to_string(texts, ' ')), ${separators}) AS word
  $$`,
  `CREATE FUNCTION search_query(texts text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(string_agg(quote_literal(left(word, ${longestWord})) || ':*', ' & '), '')::tsquery
    FROM regexp_split_to_table(lower(texts), ${separators}) AS word WHERE word <> ''
  $$`,
  ...["api_keys", "projects"].map(
    (table) => `ALTER TABLE ${table}
    ADD COLUMN description text,
    ADD COLUMN owner_email text,
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}'`
  ),
  `ALTER TABLE api_keys ADD COLUMN words tsvector
    GENERATED ALWAYS AS (search_words(ARRAY[name, key_prefix, owner_email] || tags)) STORED`,
  `ALTER TABLE projects ADD COLUMN words tsvector
    GENERATED ALWAYS AS (search_words(ARRAY[name, owner_email] || tags)) STORED`,
  `CREATE INDEX api_keys_by_words ON api_keys USING gin (words)`,
  `CREATE INDEX projects_by_words ON projects USING gin (words)`,
  `CREATE INDEX api_keys_by_tags ON api_keys USING gin (tags)`,
  `CREATE INDEX projects_by_tags ON projects USING gin (tags)`,
  // Keys that never expire are last, and keys that were never used are the least recently used.
  `CREATE INDEX api_keys_by_expiry ON api_keys (coalesce(expires_at, 'infinity'), id)`,
  `CREATE INDEX api_keys_revoked ON api_keys (revoked_at) WHERE revoked_at IS NOT NULL`,
  `CREATE INDEX api_keys_by_use ON api_keys (coalesce(last_used_at, '-infinity'), id)`,

  // The cost of the requests of the latest month (UTC) in which the key was used.
  `CREATE TABLE key_spend (
    key_id uuid PRIMARY KEY,
    month date NOT NULL DEFAULT '-infinity',
    cost_nanos numeric NOT NULL DEFAULT 0
  )`,
  `CREATE INDEX key_spend_by_cost ON key_spend (month, cost_nanos, key_id)`,
  // Triggers, because older versions of the gateway also write keys and sums.
  `CREATE FUNCTION begin_key_spend() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO key_spend (key_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER begin_key_spend AFTER INSERT ON api_keys FOR EACH ROW EXECUTE FUNCTION begin_key_spend()`,
  `CREATE FUNCTION add_key_spend() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'UPDATE' THEN
      UPDATE key_spend SET cost_nanos = key_spend.cost_nanos - replaced.cost_nanos
      FROM (${monthsOf("former")}) AS replaced
      WHERE key_spend.key_id = replaced.key_id AND key_spend.month = replaced.month;
    END IF;
    INSERT INTO key_spend (key_id, month, cost_nanos)
    SELECT DISTINCT ON (key_id) key_id, month, cost_nanos FROM (${monthsOf("changed")}) AS months ORDER BY key_id, month DESC
    ON CONFLICT (key_id) DO UPDATE SET
      cost_nanos = excluded.cost_nanos + CASE WHEN key_spend.month = excluded.month THEN key_spend.cost_nanos ELSE 0 END,
      month = excluded.month
    WHERE key_spend.month <= excluded.month;
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER add_key_spend AFTER INSERT ON usage_rollups REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION add_key_spend()`,
  `CREATE TRIGGER change_key_spend AFTER UPDATE ON usage_rollups REFERENCING OLD TABLE AS former NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION add_key_spend()`,
  `INSERT INTO key_spend (key_id, month, cost_nanos)
    SELECT id, coalesce(spent.month, '-infinity'), coalesce(spent.cost_nanos, 0) FROM api_keys LEFT JOIN (
      ${monthsOf("usage_rollups", `bucket >= date_trunc('month', now(), 'UTC')`)}
    ) AS spent ON spent.key_id = api_keys.id`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
