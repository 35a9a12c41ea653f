import { openAsBlob } from "node:fs"
import { Effect, Layer, Option } from "effect"
import { inject } from "vitest"
import * as DatabaseEmbedded from "../layers/DatabaseEmbedded.ts"
import * as Migrations from "../layers/postgres/Migrations.ts"

const snapshot = Layer.effect(
  DatabaseEmbedded.Snapshot,
  Effect.promise(() => openAsBlob(inject("embeddedSnapshot")).then(Option.some))
)

/** An embedded database that has the product's schema already. Benches have no snapshot and make the schema. */
export const layer =
  process.env["VITEST"] === undefined
    ? Layer.provideMerge(Layer.effectDiscard(Migrations.run), DatabaseEmbedded.layer)
    : DatabaseEmbedded.layer.pipe(Layer.provide(snapshot))
