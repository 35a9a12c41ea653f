import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import fc from "fast-check"
import * as RedisMemory from "../../../layers/RedisMemory.ts"
import { type IndexedTask, merge, type TaskChange } from "../../../src/status/tasks/IndexedTask.ts"
import * as PostgresTaskIndex from "../../../src/status/tasks/PostgresTaskIndex.ts"
import * as RedisTaskIndex from "../../../src/status/tasks/RedisTaskIndex.ts"
import { type TaskFilter, TaskIndex, type TaskPosition } from "../../../src/status/tasks/TaskIndex.ts"
import * as MigratedDatabase from "../../MigratedDatabase.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"

interface Variant {
  readonly name: string
  readonly skip: boolean
  readonly index: (bounds: Bounds) => Layer.Layer<TaskIndex, unknown>
}

interface Bounds {
  readonly looksAtMost?: number
  readonly keepDays?: number
}

const variants: ReadonlyArray<Variant> = [
  {
    name: "Redis in memory",
    skip: false,
    index: (bounds: Bounds) => RedisTaskIndex.layer(bounds).pipe(Layer.provide(RedisMemory.layer()))
  },
  {
    name: "Redis",
    skip: TemporaryPrefix.server === null,
    index: (bounds: Bounds) => RedisTaskIndex.layer(bounds).pipe(Layer.provide(TemporaryPrefix.layer))
  },
  {
    name: "embedded PostgreSQL",
    skip: false,
    index: (bounds: Bounds) => PostgresTaskIndex.layer(bounds).pipe(Layer.provide(MigratedDatabase.embedded))
  },
  {
    name: "PostgreSQL",
    skip: TemporaryDatabase.server === null,
    index: (bounds: Bounds) =>
      PostgresTaskIndex.layer(bounds).pipe(Layer.provide(MigratedDatabase.of(TemporaryDatabase.layer)))
  }
]

const at = 1_790_000_000_000_000

const change = (task_id: string, given: Partial<IndexedTask> = {}, more: Partial<TaskChange> = {}): TaskChange => ({
  isProgress: true,
  isTerminal: false,
  ...more,
  task: {
    task_id,
    task_type: null,
    status: "processing",
    first_micros: given.last_micros ?? at,
    last_micros: at,
    attempt: null,
    queue: null,
    worker: null,
    parent_id: null,
    error_class: null,
    message: null,
    attributes: {},
    ...given
  }
})

/** Ten tasks, one second apart: t9 is the newest. Even ones failed. */
const ten = Array.from({ length: 10 }, (_, n) =>
  change(`t${n}`, {
    last_micros: at + n * 1_000_000,
    status: n % 2 === 0 ? "failed" : "completed",
    task_type: n < 5 ? "read" : "write",
    queue: n < 3 ? "books" : "letters",
    worker: `w${n % 3}`,
    parent_id: n === 1 || n === 7 ? "parent" : null,
    error_class: n % 4 === 0 ? "ECONN" : null,
    message: n === 5 ? "No Such Page" : null,
    attributes: n % 5 === 0 ? { book: "42" } : {}
  })
)

const ids = (tasks: ReadonlyArray<IndexedTask>) => tasks.map(({ task_id }) => task_id)

/** Every page of a list, as a client reads them. */
const pages = Effect.fnUntraced(function* (filter: TaskFilter, limit: number) {
  const index = yield* TaskIndex
  const found: Array<ReadonlyArray<string>> = []
  let after: TaskPosition | undefined
  for (;;) {
    const page = yield* index.list(filter, { limit, after })
    found.push(ids(page.tasks))
    if (page.next === undefined) return found
    after = page.next
  }
})

for (const { index, name, skip } of variants) {
  const law = (title: string, test: Effect.Effect<void, unknown, TaskIndex>, bounds: Bounds = {}) =>
    it.live(title, () => test.pipe(Effect.provide(index(bounds))), 60_000)

  describe.skipIf(skip)(`an index of tasks: ${name}`, () => {
    law(
      "keeps a task whose texts are as long as they may be",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        // texts without repetition, because PostgreSQL would compress them
        const text = (from: number) =>
          String.fromCharCode(...Array.from({ length: 255 }, (_, n) => 0x4e00 + from + n * 7))
        const [task_id, task_type, status] = [text(0), text(2_000), text(4_000)]
        yield* index.record([change(task_id, { task_type, status, parent_id: text(6_000), error_class: text(8_000) })])
        assert.deepStrictEqual(yield* pages({ task_type, status }, 10), [[task_id]])
      })
    )

    law(
      "finds a task by its id, with everything that is known of it",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        const all = change("a/1 %{ü}", {
          task_type: "read",
          attempt: 2,
          queue: "q",
          worker: "w",
          parent_id: "p",
          error_class: "E",
          message: "m",
          attributes: { book: "42", "odd name'": '\\ "' }
        })
        yield* index.record([all])
        assert.deepStrictEqual(yield* index.get("a/1 %{ü}"), all.task)
        assert.isUndefined(yield* index.get("other"))
      })
    )

    law(
      "lists the newest tasks first, in pages without gaps and repetitions",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        yield* index.record(ten)
        yield* index.record([
          change("same-b", { last_micros: at + 4_000_000 }),
          change("same-a", { last_micros: at + 4_000_000 })
        ])
        const newest = ["t9", "t8", "t7", "t6", "t5", "t4", "same-b", "same-a", "t3", "t2", "t1", "t0"]
        assert.deepStrictEqual((yield* pages({}, 5)).flat(), newest)
        assert.deepStrictEqual((yield* pages({}, 1)).flat(), newest)
        assert.deepStrictEqual((yield* pages({}, 200)).flat(), newest)
      })
    )

    law(
      "filters by each member, by several, by a time and by a text",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        yield* index.record(ten)
        const found = (filter: TaskFilter) => Effect.map(pages(filter, 3), (pages) => pages.flat())
        assert.deepStrictEqual(yield* found({ status: "failed" }), ["t8", "t6", "t4", "t2", "t0"])
        assert.deepStrictEqual(yield* found({ status: "failed", task_type: "read" }), ["t4", "t2", "t0"])
        assert.deepStrictEqual(yield* found({ queue: "books" }), ["t2", "t1", "t0"])
        assert.deepStrictEqual(yield* found({ worker: "w0", status: "failed" }), ["t6", "t0"])
        assert.deepStrictEqual(yield* found({ parent_id: "parent" }), ["t7", "t1"])
        assert.deepStrictEqual(yield* found({ error_class: "ECONN" }), ["t8", "t4", "t0"])
        assert.deepStrictEqual(yield* found({ attributes: { book: "42" } }), ["t5", "t0"])
        assert.deepStrictEqual(yield* found({ attributes: { book: "42" }, status: "failed" }), ["t0"])
        assert.deepStrictEqual(yield* found({ attributes: { book: "43" } }), [])
        assert.deepStrictEqual(yield* found({ q: "such page" }), ["t5"])
        assert.deepStrictEqual(yield* found({ q: "econn", task_type: "write" }), ["t8"])
        assert.deepStrictEqual(yield* found({ q: "%" }), [])
        assert.deepStrictEqual(yield* found({ since: at + 7_000_000, until: at + 9_000_000 }), ["t8", "t7"])
      })
    )

    law(
      "counts by status what the filter selects",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        yield* index.record(ten)
        const exact = (status: string, count: number) => ({ status, count, at_least: false })
        assert.deepStrictEqual((yield* index.counts({})).counts, [exact("completed", 5), exact("failed", 5)])
        const read = yield* index.counts({ task_type: "read" })
        assert.deepStrictEqual(read.counts, [exact("completed", 2), exact("failed", 3)])
        assert.isTrue(read.looked.complete)
        assert.deepStrictEqual((yield* index.counts({ q: "econn" })).counts, [exact("failed", 3)])
        assert.deepStrictEqual((yield* index.counts({ status: "failed", queue: "books" })).counts, [exact("failed", 2)])
        assert.deepStrictEqual((yield* index.counts({ parent_id: "nobody" })).counts, [])
      })
    )

    law(
      "tells tasks that have ended from those that have not",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        yield* index.record(ten.map((one, n) => ({ ...one, isTerminal: n % 3 !== 0 })))
        const found = (filter: TaskFilter) => Effect.map(pages(filter, 3), (pages) => pages.flat())
        assert.deepStrictEqual(yield* found({ ended: false }), ["t9", "t6", "t3", "t0"])
        assert.deepStrictEqual(yield* found({ ended: true, status: "failed" }), ["t8", "t4", "t2"])
        assert.deepStrictEqual(yield* found({ ended: false, attributes: { book: "42" } }), ["t0"])
        assert.deepStrictEqual((yield* index.counts({ ended: false })).counts, [
          { status: "completed", count: 2, at_least: false },
          { status: "failed", count: 2, at_least: false }
        ])
      })
    )

    law(
      "says how far it looked, and looks further from there",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        yield* index.record(ten)
        const first = yield* index.list({ queue: "books" }, { limit: 5 })
        assert.deepStrictEqual(ids(first.tasks), [])
        assert.deepStrictEqual(first.looked, { complete: false, backTo: at + 6_000_000 })
        assert.deepStrictEqual((yield* pages({ queue: "books" }, 5)).flat(), ["t2", "t1", "t0"])
        const counted = yield* index.counts({ q: "t" })
        assert.deepStrictEqual(counted.looked, { complete: false, backTo: at + 6_000_000 })
        assert.deepStrictEqual(counted.counts, [
          { status: "completed", count: 2, at_least: true },
          { status: "failed", count: 2, at_least: true }
        ])
      }),
      { looksAtMost: 4 }
    )

    law(
      "counts exactly up to 10,000, and then says that there are at least so many",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        const many = Array.from({ length: 10_050 }, (_, n) =>
          change(`m${n}`, { last_micros: at + n, status: n < 10_020 ? "completed" : "failed" })
        )
        for (let from = 0; from < many.length; from += 2_000) yield* index.record(many.slice(from, from + 2_000))
        assert.deepStrictEqual((yield* index.counts({})).counts, [
          { status: "completed", count: 10_000, at_least: true },
          { status: "failed", count: 30, at_least: false }
        ])
      }),
      { looksAtMost: 20_000 }
    )

    law(
      "stores the progress of a reader with the tasks",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        assert.isUndefined(yield* index.progress("stream:a"))
        yield* index.record([change("t1")], { source: "stream:a", position: "7 abc" })
        yield* index.record([], { source: "stream:b", position: "1 d" })
        yield* index.record([change("t2")], { source: "stream:a", position: "8 def" })
        assert.strictEqual(yield* index.progress("stream:a"), "8 def")
        assert.strictEqual(yield* index.progress("stream:b"), "1 d")
      })
    )

    law(
      "removes tasks that had no status for the days that it keeps",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        const now = Date.now() * 1_000
        const day = 86_400_000_000
        yield* index.record([change("old", { last_micros: now - 3 * day }), change("new", { last_micros: now - day })])
        assert.strictEqual(yield* index.trim, 1)
        assert.deepStrictEqual((yield* pages({}, 10)).flat(), ["new"])
      }),
      { keepDays: 2 }
    )

    law(
      "does not lose what writers change at once",
      Effect.gen(function* () {
        const index = yield* TaskIndex
        const batch = (writer: number) =>
          Array.from({ length: 20 }, (_, n) =>
            change(`t${n}`, { last_micros: at + writer, attributes: { [`by${writer}`]: "yes" } })
          )
        yield* Effect.forEach([1, 2, 3, 4], (writer) => index.record(batch(writer)), { concurrency: 4 })
        const task = yield* index.get("t7")
        assert.deepStrictEqual(task?.attributes, { by1: "yes", by2: "yes", by3: "yes", by4: "yes" })
        assert.deepInclude(task, { first_micros: at + 1, last_micros: at + 4 })
      })
    )
  })
}

describe.skipIf(TemporaryPrefix.server === null)("an index of tasks in Redis", () => {
  it.live("keeps the newest tasks within its bound", () =>
    Effect.gen(function* () {
      const index = yield* TaskIndex
      yield* index.record(ten)
      assert.deepStrictEqual((yield* pages({}, 10)).flat(), ["t9", "t8", "t7"])
      assert.isUndefined(yield* index.get("t6"))
    }).pipe(Effect.provide(RedisTaskIndex.layer({ tasksAtMost: 3 }).pipe(Layer.provide(TemporaryPrefix.layer))))
  )
})

describe("the statuses of a task", () => {
  const status = fc.record({
    time: fc.integer({ min: 0, max: 50 }),
    status: fc.constantFrom("processing", "retrying", "completed"),
    error: fc.option(fc.constantFrom("E1", "E2"), { nil: null }),
    isProgress: fc.boolean()
  })

  it("give the same task in whatever order they come", () => {
    fc.assert(
      fc.property(fc.uniqueArray(status, { minLength: 1, maxLength: 6, selector: ({ time }) => time }), (all) => {
        const changes = all.map(({ error, isProgress, status, time }) =>
          change("t", { status, last_micros: at + time, error_class: error }, { isProgress, isTerminal: false })
        )
        const folded = (some: ReadonlyArray<TaskChange>) =>
          some.reduce<TaskChange | undefined>((known, one) => merge(known, one), undefined)
        const facts = (task: IndexedTask | undefined) => [task?.first_micros, task?.last_micros, task?.status]
        assert.deepStrictEqual(facts(folded(changes.toReversed())?.task), facts(folded(changes)?.task))
      })
    )
  })
})
