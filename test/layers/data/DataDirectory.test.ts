import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { DataDirectory, layer } from "../../../layers/data/DataDirectory.ts"
import * as DirectoryVersion from "../../../layers/data/DirectoryVersion.ts"
import * as TemporaryData from "../../TemporaryData.ts"

const open = (path: string) => Effect.asVoid(Layer.build(Layer.fresh(layer(path))))

describe("a data directory", () => {
  it.effect("is created, and can be opened again after it was closed", () =>
    Effect.gen(function* () {
      const path = join(yield* TemporaryData.path, "new", "data")
      yield* Effect.scoped(open(path))
      yield* Effect.scoped(open(path))
      assert.include(readFileSync(join(path, "version.json"), "utf8"), '"format":1')
      const folder = yield* Effect.map(DataDirectory, (held) => held.folder("redis")).pipe(Effect.provide(layer(path)))
      assert.strictEqual(folder, join(path, "redis"))
    })
  )

  it.effect("is refused while another one holds it, and names the holder", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      yield* open(path)
      const { _tag, message } = yield* Effect.flip(Effect.scoped(open(path)))
      assert.strictEqual(_tag, "DataInUse")
      assert.include(
        message,
        `The data directory ${path} is in use by another svc-runtime (process ${process.pid} since`
      )
    })
  )

  it.effect("is refused where other files are, and left alone", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      writeFileSync(join(path, "letter.txt"), "dear")
      const { message } = yield* Effect.flip(Effect.scoped(open(path)))
      assert.include(message, "is not a data directory")
    })
  )

  it.effect("is refused if its lock cannot be opened or its version not be written, and says so", () =>
    Effect.gen(function* () {
      for (const blocked of ["lock", "lock.holder", "version.json.new"]) {
        const path = yield* TemporaryData.path
        mkdirSync(join(path, blocked))
        const { _tag, message } = yield* Effect.flip(Effect.scoped(open(path)))
        assert.strictEqual(_tag, "DataUnusable")
        assert.include(message, `The data directory ${path} cannot be used: `)
      }
    })
  )

  it.effect("is refused where a file has its name", () =>
    Effect.gen(function* () {
      const path = join(yield* TemporaryData.path, "data")
      writeFileSync(path, "")
      const { message } = yield* Effect.flip(Effect.scoped(open(path)))
      assert.include(message, `The data directory ${path} cannot be used: EEXIST`)
    })
  )

  it.effect("that a newer version wrote is refused by the name of that version", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      writeFileSync(join(path, "version.json"), JSON.stringify({ format: 2, program: "0.9.0" }))
      const { message } = yield* Effect.flip(Effect.scoped(open(path)))
      assert.include(message, "was written by svc-runtime 0.9.0, which is newer than this version")
      assert.include(message, "its format is 2, and this version reads formats up to 1")
    })
  )

  it.effect("of an older format is upgraded step by step", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      writeFileSync(join(path, "version.json"), JSON.stringify({ format: 1, program: "0.0.1" }))
      const steps: Array<number> = []
      const upgrades = { 1: () => steps.push(1), 2: () => steps.push(2) }
      yield* DirectoryVersion.check(path, { format: 3, upgrades })
      assert.deepStrictEqual(steps, [1, 2])
      yield* DirectoryVersion.check(path, { format: 3, upgrades })
      assert.deepStrictEqual(steps, [1, 2])
    })
  )

  it.effect("with a damaged version file is refused", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      writeFileSync(join(path, "version.json"), "{")
      const { message } = yield* Effect.flip(Effect.scoped(open(path)))
      assert.include(message, "version.json is damaged")
    })
  )
})
