import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // One row per task, made of its statuses. "C": ids are compared as bytes, so a cursor is a range of the index.
  `CREATE TABLE task_index (
    task_id text COLLATE "C" PRIMARY KEY,
    task_type text COLLATE "C",
    status text COLLATE "C" NOT NULL,
    first_micros bigint NOT NULL,
    last_micros bigint NOT NULL,
    attempt integer,
    queue text COLLATE "C",
    worker text COLLATE "C",
    parent_id text COLLATE "C",
    error_class text COLLATE "C",
    message text,
    attributes jsonb NOT NULL DEFAULT '{}',
    is_progress boolean NOT NULL,
    is_terminal boolean NOT NULL
  ) WITH (fillfactor = 80)`,
  `CREATE INDEX task_index_by_time ON task_index (last_micros DESC, task_id DESC)`,
  `CREATE INDEX task_index_by_status ON task_index (status, last_micros DESC, task_id DESC)`,
  `CREATE INDEX task_index_by_type ON task_index (task_type, last_micros DESC, task_id DESC)`,
  // Tasks of one type are all over the table. Reading thousands of them to filter by status would read most of its pages.
  `CREATE INDEX task_index_by_type_and_status ON task_index (task_type, status, last_micros DESC, task_id DESC)`,
  // Partial indexes: most tasks have no parent and no error, and cost these indexes nothing.
  `CREATE INDEX task_index_by_parent ON task_index (parent_id, last_micros DESC, task_id DESC) WHERE parent_id IS NOT NULL`,
  `CREATE INDEX task_index_by_error ON task_index (error_class, last_micros DESC, task_id DESC) WHERE error_class IS NOT NULL`,
  `CREATE INDEX task_index_by_attributes ON task_index USING gin (attributes jsonb_path_ops) WHERE attributes <> '{}'`,

  // Up to where the stream of statuses is in the index. A batch of tasks and its progress are written in one transaction.
  `CREATE TABLE task_index_progress (
    source text COLLATE "C" PRIMARY KEY,
    position text NOT NULL
  )`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
