import { Console, Effect, Layer, Option, Redacted } from "effect"
import * as OperatorTokens from "../../src/control/operators/OperatorTokens.ts"
import { seededLimits } from "../../src/policy/routes/CanonicalRoute.ts"
import { Vault } from "../../src/state/Vault.ts"
import type { Settings } from "../Environment.ts"
import * as Migrations from "../postgres/Migrations.ts"
import { bannerLine, StartRefused } from "../Startup.ts"

/** The schema, then exactly one operator token; a generated one is shown here and never again. */
export const prepare = (settings: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* Migrations.runWithLimits({ ...seededLimits, ...settings.routeLimits })
      yield* checkNewerSchema(yield* Migrations.newerMigrations)
      const generated = yield* OperatorTokens.bootstrap(settings.adminToken)
      if (Option.isSome(generated)) yield* Console.log(`svc-runtime operator token: ${Redacted.value(generated.value)}`)
      if (Option.isSome(settings.adminToken) && !(yield* OperatorTokens.isActive(settings.adminToken.value))) {
        yield* warn(ignoredAdminToken)
      }
    })
  )

/**
 * Two versions work side by side during a rolling upgrade, and the older one may come back: it starts beside a newer
 * schema and says so, unless a migration's name says that it cannot work with it.
 */
const checkNewerSchema = Effect.fnUntraced(function* (newer: ReadonlyArray<Migrations.NewerMigration>) {
  if (newer.length === 0) return
  const named = newer.map(({ id, name }) => `${String(id).padStart(4, "0")}_${name}`).join(", ")
  if (newer.some(Migrations.isIncompatible)) {
    return yield* new StartRefused({
      message: `The database has been brought up to a version that this one cannot work with (${named}). Start the newer version, or restore a backup from before the upgrade.`
    })
  }
  const sentence = `The database is of a newer version (${named}). This one works beside it; what it cannot decode is switched off, and readiness then says degraded.`
  yield* warn(sentence)
})

const warn = (sentence: string) =>
  Effect.andThen(Console.log(bannerLine("warning", sentence)), Effect.logWarning(sentence))

const ignoredAdminToken =
  "GATEWAY_ADMIN_TOKEN was ignored, and opens nothing: another operator token is active. Where that one is lost, `operator-token create` makes one."

/** Seals under the key, and opens what is sealed under it or the one before. */
export const vault = ({ encryptionKey, previousEncryptionKey }: Settings) =>
  Vault.layer(encryptionKey, previousEncryptionKey)
