import { Console, Effect, Layer, Option, Redacted } from "effect"
import * as OperatorTokens from "../../src/control/operators/OperatorTokens.ts"
import { seededLimits } from "../../src/policy/routes/CanonicalRoute.ts"
import { Vault } from "../../src/state/Vault.ts"
import type { Settings } from "../Environment.ts"
import * as Migrations from "../postgres/Migrations.ts"
import { bannerLine, StartRefused } from "../Startup.ts"

/** Migrates the schema and makes sure that an operator token exists. Prints a generated token once. */
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
 * During a rolling upgrade, two versions run at once. The older version starts on the newer schema with a warning. It
 * refuses to start if the name of a migration marks the schema as incompatible.
 */
const checkNewerSchema = Effect.fnUntraced(function* (newer: ReadonlyArray<Migrations.NewerMigration>) {
  if (newer.length === 0) return
  const names = newer.map(({ id, name }) => `${String(id).padStart(4, "0")}_${name}`).join(", ")
  if (newer.some(Migrations.isIncompatible)) {
    return yield* new StartRefused({
      message: `The database schema was migrated by a newer version and is incompatible with this one (${names}). Start the newer version, or restore a backup from before the upgrade.`
    })
  }
  const sentence = `The database schema is newer than this version (${names}). This version continues. It disables rows that it cannot decode, and readiness then reports degraded.`
  yield* warn(sentence)
})

const warn = (sentence: string) =>
  Effect.andThen(Console.log(bannerLine("warning", sentence)), Effect.logWarning(sentence))

const ignoredAdminToken =
  "GATEWAY_ADMIN_TOKEN is ignored and grants no access, because another operator token is active. If that token is lost, create one with `operator-token create`."

export const vault = ({ encryptionKey, previousEncryptionKey }: Settings) =>
  Vault.layer(encryptionKey, previousEncryptionKey)
