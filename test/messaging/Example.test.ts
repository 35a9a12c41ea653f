import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as ExamplePublisher from "../../src/example/ExamplePublisher.ts"
import { PendingBooks } from "../../src/example/PendingBooks.ts"
import * as Workers from "../../src/example/Workers.ts"
import { listening } from "./StatusStream.ts"
import { settleDown } from "./TaskWorker.ts"

const atWork = Layer.merge(Workers.layer, ExamplePublisher.layer).pipe(Layer.provideMerge(BrokerMemory.layer()))

describe("the example", () => {
  it.effect("reads, scans, binds and summarises a book a minute", () =>
    Effect.gen(function* () {
      yield* settleDown
      const said = yield* listening("svc.example.status")
      yield* TestClock.adjust("1 second")
      yield* settleDown
      yield* TestClock.adjust("2 seconds")
      yield* settleDown
      const of = (task: string) => said.filter(({ task_id }) => task_id === task).map(({ status }) => status)
      const read = ["processing", "aggregating", "completed"]
      assert.deepStrictEqual(of("book-1000.1"), ["processing", "retrying", ...read])
      assert.deepStrictEqual(of("book-1000.2"), ["processing", "manual_retrying", ...read])
      assert.deepStrictEqual(of("book-1000.3"), read)
      assert.deepStrictEqual(of("book-1000"), ["aggregation-complete", "completed"])
      assert.deepStrictEqual(of("letter-1000.1"), ["processing", "failed"])
      yield* TestClock.adjust("1 minute")
      yield* settleDown
      assert.deepStrictEqual(of("book-61000.3"), read)
    }).pipe(Effect.scoped, Effect.provide(atWork))
  )
})

describe("the bookbinder's shelf", () => {
  it("answers the words of a book once, with its last page, whatever order pages come in and however often", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(20), { minLength: 1, maxLength: 8 }),
        fc.infiniteStream(fc.nat()),
        (words, choices) => {
          const shelf = new PendingBooks()
          const left = new Set(words.keys())
          const answers: Array<number | undefined> = []
          for (const choice of choices) {
            const page = choice % words.length
            left.delete(page)
            answers.push(shelf.put("b", { page, pages: words.length, words: words[page] ?? 0 }))
            if (left.size === 0) break
          }
          const sum = words.reduce((sum, count) => sum + count, 0)
          assert.deepStrictEqual(answers, [...answers.slice(1).map(() => undefined), sum])
        }
      )
    )
  })

  it("gives up the book that was begun first when there are too many", () => {
    const shelf = new PendingBooks(2)
    for (const book of ["a", "b", "c"]) shelf.put(book, { page: 1, pages: 2, words: 1 })
    assert.strictEqual(shelf.put("b", { page: 2, pages: 2, words: 2 }), 3)
    assert.strictEqual(shelf.put("a", { page: 2, pages: 2, words: 2 }), undefined)
  })
})
