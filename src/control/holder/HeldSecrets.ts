import { Context, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { Fragment } from "effect/sql/Statement"
import { Database } from "../../services/Database.ts"
import * as Secret from "../../state/Secret.ts"
import type { EndedGrace, RevokedKey, RotatedKey } from "../api/holder/HolderApi.ts"
import type { KeyHistoryEntry } from "../api/holder/KeyTest.ts"
import { Key } from "../api/keys/KeysApi.ts"
import { ControlError, type Refused, type RequestId } from "../api/schema/Errors.ts"
import { KeyHolder } from "../api/schema/Security.ts"
import { Audit, Snapshots } from "../audit/Audit.ts"
import { replaceSecret } from "../keys/KeyRotation.ts"
import { columnsOf, keyRows, toKey } from "../keys/KeyRows.ts"
import type { StoreFailure } from "../store/Rows.ts"
import { asHolder } from "./AsHolder.ts"
import { readHistory } from "./KeyHistory.ts"

type Refusal = StoreFailure | Refused<"rotation_forbidden" | "key_revoked">
type Caller = KeyHolder | RequestId | HttpServerRequest.HttpServerRequest

/** What the holder of a key may do with its secret, where an operator has set `holder_rotation`. */
export class HeldSecrets extends Context.Service<
  HeldSecrets,
  {
    readonly history: Effect.Effect<ReadonlyArray<KeyHistoryEntry>, StoreFailure, KeyHolder>
    /** Replaces the secret that authenticated the request. */
    readonly rotate: (graceSeconds: number) => Effect.Effect<typeof RotatedKey.Type, Refusal, Caller>
    /** Stops the secret that the last rotation replaced. */
    readonly endGrace: Effect.Effect<typeof EndedGrace.Type, Refusal, Caller>
    /** Ends the key for good, such as after its secret was seen by others. */
    readonly revoke: Effect.Effect<typeof RevokedKey.Type, Refusal, Caller>
  }
>()("svc/control/HeldSecrets") {
  static readonly layer = Layer.suspend(() => Layer.effect(HeldSecrets, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit

  /** Locks the key of the request. A secret that was replaced, which may have leaked, does nothing. */
  const lockCurrent = Effect.gen(function* () {
    const { keyId, secretDigest } = yield* KeyHolder
    const key = yield* keyRows.first(sql`SELECT ${columnsOf(sql)} FROM api_keys WHERE id = ${keyId}
      AND key_hash = decode(${secretDigest}, 'hex') FOR UPDATE`)
    if (key === undefined) return yield* replacedSecret
    if (key.revoked_at !== null) return yield* revokedKey
    return key.holder_rotation ? key : yield* forbidden
  })

  const rotate = Effect.fn("HeldSecrets.rotate")((graceSeconds: number) => {
    const raw = Secret.mint(Secret.keyPrefix)
    return audit
      .mutate(function* ({ write }) {
        const before = yield* lockCurrent
        const after = toKey(yield* replaceSecret(write, before.id, raw, graceSeconds))
        return {
          result: { ...after, raw_key: raw },
          auditAction: { target: "key", action: "keys:rotate_by_holder" },
          targetId: before.id,
          snapshots: yield* snapshots(toKey(before), after),
          changes: [{ _tag: "Key", id: before.id }]
        }
      })
      .pipe(asHolder)
  })

  const change = (action: "keys:end_grace_by_holder" | "keys:revoke_by_holder", set: Fragment) =>
    audit
      .mutate(function* ({ write }) {
        const before = yield* lockCurrent
        const after = toKey(
          yield* keyRows.only(write`UPDATE api_keys SET ${set}, updated_at = now() WHERE id = ${before.id}
            RETURNING ${columnsOf(sql)}`)
        )
        return {
          result: after,
          auditAction: { target: "key", action },
          targetId: before.id,
          snapshots: yield* snapshots(toKey(before), after),
          changes: [{ _tag: "Key", id: before.id }]
        }
      })
      .pipe(asHolder)

  return HeldSecrets.of({
    rotate,
    // a secret that has expired already keeps the time at which it did
    endGrace: change(
      "keys:end_grace_by_holder",
      sql`previous_key_expires_at = LEAST(previous_key_expires_at, now())`
    ).pipe(Effect.withSpan("HeldSecrets.endGrace")),
    revoke: change("keys:revoke_by_holder", sql`revoked_at = now()`).pipe(Effect.withSpan("HeldSecrets.revoke")),
    history: Effect.flatMap(KeyHolder, ({ keyId }) => readHistory(sql, keyId))
  })
})

const revokedKey = new ControlError("key_revoked", "The key is revoked. Ask for another key.")
const forbidden = new ControlError(
  "rotation_forbidden",
  "This key may not be rotated or revoked by its holder. Ask an operator to do it, or to set holder_rotation."
)
const replacedSecret = new ControlError(
  "rotation_forbidden",
  "This secret was already replaced by another one. Use the new secret to rotate or revoke the key."
)

const snapshots = Snapshots.of(Key)
