import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, References } from "effect"
import * as Journal from "../../../layers/journal/Journal.ts"
import * as TemporaryData from "../../TemporaryData.ts"

const isText = (value: unknown): value is string => typeof value === "string"

/** A list of texts that a journal keeps. */
const open = (folder: string, rewriteBytes?: number) =>
  Effect.gen(function* () {
    mkdirSync(folder, { recursive: true })
    const texts: Array<string> = []
    const journal = yield* Journal.make({
      folder,
      isRecord: isText,
      replay: (text) => texts.push(text),
      capture: () => texts.slice(),
      rewriteBytes
    })
    const add = (text: string) => {
      texts.push(text)
      journal.append(text)
      journal.flush()
    }
    return { add, journal, texts }
  }).pipe(Effect.provideService(References.MinimumLogLevel, "Error"))

const firstLog = "00000001.log"

describe("a journal", () => {
  it.live("has every flushed record for whoever opens its files, also while the process still runs", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const { add } = yield* open(join(path, "a"))
      add("one")
      add("two ☃")
      cpSync(join(path, "a"), join(path, "b"), { recursive: true })
      assert.deepStrictEqual((yield* open(join(path, "b"))).texts, ["one", "two ☃"])
    })
  )

  it.live("drops an unfinished record at its end, wherever it was cut, and continues after the whole ones", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const { add } = yield* open(join(path, "a"))
      add("one")
      const whole = statSync(join(path, "a", firstLog)).size
      add("two")
      const size = statSync(join(path, "a", firstLog)).size
      for (let cut = whole; cut < size; cut++) {
        const copy = join(path, `cut-${cut}`)
        cpSync(join(path, "a"), copy, { recursive: true })
        truncateSync(join(copy, firstLog), cut)
        yield* Effect.scoped(Effect.map(open(copy), ({ add }) => add("three")))
        assert.deepStrictEqual((yield* Effect.scoped(open(copy))).texts, ["one", "three"])
      }
    })
  )

  it.live("drops what a power cut left at its end: zeros, or bytes of other files", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const { add } = yield* open(join(path, "a"))
      add("one")
      for (const rest of [Buffer.alloc(5_000), Buffer.from("SVJ\n and other bytes", "utf8")]) {
        const copy = join(path, `rest-${rest.length}`)
        cpSync(join(path, "a"), copy, { recursive: true })
        writeFileSync(join(copy, firstLog), Buffer.concat([readFileSync(join(copy, firstLog)), rest]))
        assert.deepStrictEqual((yield* Effect.scoped(open(copy))).texts, ["one"])
      }
    })
  )

  it.live("is refused when a byte in its middle differs, with the file, the place and the way out", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const { add } = yield* open(join(path, "a"))
      add("one")
      const place = statSync(join(path, "a", firstLog)).size
      add("two")
      add("three")
      const log = join(path, "b", firstLog)
      cpSync(join(path, "a"), join(path, "b"), { recursive: true })
      const bytes = readFileSync(log)
      bytes[place + 15]! ^= 1
      writeFileSync(log, bytes)
      const { message } = yield* Effect.flip(Effect.scoped(open(join(path, "b"))))
      assert.include(message, `The file ${log} is damaged at byte ${place}`)
      assert.include(message, `truncate --size=${place} ${log}`)
      truncateSync(log, place)
      assert.deepStrictEqual((yield* Effect.scoped(open(join(path, "b")))).texts, ["one"])
    })
  )

  it.live("replaces a long log by a snapshot, so that its files stay small, and is whole at every moment", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const folder = join(path, "a")
      const { add, journal, texts } = yield* open(folder, 2_000)
      for (let number = 0; number < 2_000; number++) {
        add(`text ${number}`)
        texts.splice(0, texts.length - 20)
        if (number % 97 === 0) {
          const copy = join(path, `copy-${number}`)
          cpSync(folder, copy, { recursive: true })
          const kept = (yield* Effect.scoped(open(copy))).texts
          assert.deepStrictEqual(kept.slice(-texts.length), texts)
        }
        if (number % 50 === 0) yield* Effect.promise(() => journal.rewritten)
      }
      yield* Effect.promise(() => journal.rewritten)
      const total = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
      assert.isBelow(total, 6_000)
      assert.isAtMost(readdirSync(folder).length, 3)
    })
  )

  it.live("keeps what it has confirmed when the disk is full, and says that it loses the rest", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const program = 'ulimit -f 16; exec "$@"'
      const command = [process.execPath, join(import.meta.dirname, "FullDisk.ts"), path]
      const { stderr, stdout } = spawnSync("sh", ["-c", program, "sh", ...command], { encoding: "utf8" })
      assert.include(stdout, `The last changes in ${path} are lost, because they cannot be written`, stderr)
      const confirmed = Number(/^confirmed (\d+)$/m.exec(stdout)?.[1])
      assert.isAbove(confirmed, 0)
      assert.lengthOf((yield* open(path)).texts, confirmed)
    })
  )

  it.live("is refused when a file between others is missing", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const folder = join(path, "a")
      yield* Effect.scoped(Effect.map(open(folder), ({ add }) => add("one")))
      cpSync(join(folder, firstLog), join(folder, "00000003.log"))
      const { message } = yield* Effect.flip(Effect.scoped(open(folder)))
      assert.include(message, "00000002.log is missing")
    })
  )
})
