import { openAsBlob } from "node:fs"
import { Effect, Layer, Option } from "effect"
import { inject } from "vitest"
import * as DatabaseEmbedded from "../layers/DatabaseEmbedded.ts"

const snapshot = Layer.effect(
  DatabaseEmbedded.Snapshot,
  Effect.promise(() => openAsBlob(inject("embeddedSnapshot")).then(Option.some))
)

/** An embedded database that has the product's schema already. */
export const layer = DatabaseEmbedded.layer.pipe(Layer.provide(snapshot))
