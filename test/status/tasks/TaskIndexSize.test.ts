import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Database } from "../../../src/services/Database.ts"
import * as PostgresTaskIndex from "../../../src/status/tasks/PostgresTaskIndex.ts"
import * as RedisTaskIndex from "../../../src/status/tasks/RedisTaskIndex.ts"
import { type TaskFilter, TaskIndex, type TaskPosition } from "../../../src/status/tasks/TaskIndex.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import { sequentialScans } from "../../SequentialScans.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"

/** With this variable, the times of an index of a million tasks are printed. */
const printsTimes = process.env["SVC_TEST_FIGURES"] !== undefined
const taskCount = printsTimes ? 1_000_000 : 200_000

/** As a month of a busy installation: 20 types, 2 % failed, a tenth with a parent, three attempts at most. */
const fill = Effect.gen(function* () {
  const { sql } = yield* Database
  const step = 50_000
  for (let from = 0; from < taskCount; from += step) {
    yield* sql`INSERT INTO task_index
      SELECT 'task-' || md5(n::text), 'type-' || n % 20,
        CASE WHEN n % 50 = 0 THEN 'failed' WHEN n % 997 = 0 THEN 'processing' ELSE 'completed' END,
        1790000000000000 + n * 1000000, 1790000000000000 + n * 1000000 + n % 7 * 100000, n % 3, 'queue-' || n % 10,
        'host-' || n % 40 || ':1', CASE WHEN n % 10 = 0 THEN 'parent-' || n / 1000 END,
        CASE WHEN n % 50 = 0 THEN 'Error' || n % 7 END, 'Page ' || n || ' of the book is read',
        CASE WHEN n % 4 = 0 THEN jsonb_build_object('book', (n / 100)::text) ELSE '{}' END, true, true
      FROM generate_series(${from}::bigint, ${from + step - 1}::bigint) AS n`
  }
  // what autovacuum comes to do on its own
  yield* sql`VACUUM (ANALYZE) task_index`
})

const filters: ReadonlyArray<readonly [what: string, filter: TaskFilter]> = [
  ["nothing", {}],
  ["a common status", { status: "completed" }],
  ["a rare status", { status: "failed" }],
  ["a status that no task has", { status: "unheard" }],
  ["a type and a status", { task_type: "type-3", status: "failed" }],
  ["a parent", { parent_id: "parent-500" }],
  ["an exception", { error_class: "Error3" }],
  ["a worker that no task has", { worker: "nobody" }],
  ["an attribute", { attributes: { book: "4242" } }],
  ["an attribute and a status", { attributes: { book: "4242" }, status: "failed" }],
  ["a text that no task has", { q: "whale" }],
  ["a text", { q: "page 999" }],
  ["a day", { since: 1_790_000_000_000_000 + 900_000 * 1_000_000 }],
  ["an old day", { since: 1_790_000_000_000_000, until: 1_790_000_000_000_000 + 86_400 * 1_000_000 }],
  ["a queue on an old day", { queue: "queue-3", until: 1_790_000_000_000_000 + 86_400 * 1_000_000 }]
]

/** The fastest of five: others work on the machine as well. */
const fastest = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < 5; run++) {
    const startedAt = performance.now()
    yield* work
    best = Math.min(best, performance.now() - startedAt)
  }
  return best
})

const middle: TaskPosition = { micros: 1_790_500_000_000_000, id: "task-a" }

const printTimes = Effect.gen(function* () {
  const index = yield* TaskIndex
  for (const [what, filter] of filters) {
    const [first, next, counts] = [
      yield* fastest(index.list(filter, { limit: 100 })),
      yield* fastest(index.list(filter, { limit: 100, after: middle })),
      yield* fastest(index.counts(filter))
    ].map((ms) => `${ms.toFixed(0)} ms`)
    process.stderr.write(`${what}: list ${first}, in the middle ${next}, counts ${counts}\n`)
  }
})

describe.skipIf(TemporaryDatabase.server === null)("an index of many tasks in PostgreSQL", () => {
  it.live(
    "no list or count reads the whole table",
    () =>
      Effect.gen(function* () {
        yield* fill
        const index = yield* TaskIndex
        for (const [what, filter] of filters) {
          const { scanned } = yield* sequentialScans(
            Effect.all([
              index.list(filter, { limit: 100 }),
              index.list(filter, { limit: 100, after: middle }),
              index.counts(filter)
            ])
          )
          assert.deepStrictEqual(scanned, [], what)
        }
        if (printsTimes) yield* printTimes
      }).pipe(
        Effect.provide(PostgresTaskIndex.layer().pipe(Layer.provideMerge(MigratedDatabase.of(TemporaryDatabase.layer))))
      ),
    400_000
  )
})

describe.skipIf(TemporaryPrefix.server === null || !printsTimes)("an index of as many tasks as Redis keeps", () => {
  it.live(
    "prints the times of lists and counts",
    () =>
      Effect.gen(function* () {
        const index = yield* TaskIndex
        for (let from = 0; from < 100_000; from += 1_000) {
          yield* index.record(
            Array.from({ length: 1_000 }, (_, i) => {
              const n = from + i
              const micros = 1_790_000_000_000_000 + n * 1_000_000
              return {
                isProgress: true,
                isTerminal: true,
                task: {
                  task_id: `task-${n}`,
                  task_type: `type-${n % 20}`,
                  status: n % 50 === 0 ? "failed" : "completed",
                  first_micros: micros,
                  last_micros: micros,
                  attempt: 0,
                  queue: `queue-${n % 10}`,
                  worker: `host-${n % 40}:1`,
                  parent_id: n % 10 === 0 ? `parent-${n}` : null,
                  error_class: n % 50 === 0 ? "Error" : null,
                  message: `Page ${n} of the book is read`,
                  attributes: { book: String(n % 100) }
                }
              }
            })
          )
        }
        yield* printTimes
      }).pipe(Effect.provide(RedisTaskIndex.layer().pipe(Layer.provide(TemporaryPrefix.layer)))),
    200_000
  )
})
