import { Clock, Effect } from "effect"
import { unusedCutoff } from "../policy/KeyState.ts"
import { Database } from "../services/Database.ts"
import * as AuditLog from "./AuditLog.ts"
import * as Changes from "./Changes.ts"
import * as StoredKeys from "./StoredKeys.ts"

/** Disables the key if nobody used or enabled it in the last `days` days. Requests at other gateways count as use. */
export const disableUnused = (keyId: string, days: number, requestId: string) =>
  Effect.gen(function* () {
    const { sql, transaction } = yield* Database
    const since = new Date(unusedCutoff(days, yield* Clock.currentTimeMillis))
    yield* transaction(
      Effect.gen(function* () {
        const [retired] = yield* sql`UPDATE api_keys k SET disabled = true, updated_at = now()
          WHERE id = ${keyId} AND NOT disabled AND revoked_at IS NULL
          AND ${sql.literal(StoredKeys.lastUsedAtSql)} <= ${since} RETURNING 1`
        if (retired === undefined) return
        yield* AuditLog.append({
          actorTokenId: null,
          action: "keys:disable",
          targetType: "key",
          targetId: keyId,
          before: JSON.stringify({ disabled: false }),
          after: JSON.stringify({ disabled: true, unused_for_days: days }),
          requestId,
          ip: null,
          userAgent: "gateway"
        })
        yield* Changes.publish({ _tag: "Key", id: keyId })
      })
    )
  })
