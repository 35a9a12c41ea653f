import { Layer } from "effect"
import * as Migrations from "../layers/postgres/Migrations.ts"
import type { Database } from "../src/services/Database.ts"
import * as EmbeddedDatabase from "./EmbeddedDatabase.ts"
import * as RealTime from "./RealTime.ts"

/** `database`, with the product's schema in it before anybody sees it. */
export const of = <E>(database: Layer.Layer<Database, E>) =>
  Layer.provideMerge(Layer.effectDiscard(Migrations.run), database)

/** An embedded one of a test's own, for tests on the test clock too. */
export const embedded = RealTime.layer(EmbeddedDatabase.layer)
