import { Effect, type Redacted } from "effect"
import { Vault } from "./Vault.ts"

/** An upstream credential of a row. `Unreadable`: there is one, and it cannot be opened; nothing stands in for it. */
export type StoredCredential =
  | { readonly _tag: "Missing" }
  | { readonly _tag: "Unreadable" }
  | { readonly _tag: "Present"; readonly credential: Redacted.Redacted }

export const missing: StoredCredential = { _tag: "Missing" }

/** Opens what a row holds; the log says which row to mend. */
export const open = Effect.fnUntraced(function* (sealed: string | null, context: string) {
  if (sealed === null) return missing
  const vault = yield* Vault
  return yield* vault.open(sealed, context).pipe(
    Effect.map((credential): StoredCredential => ({ _tag: "Present", credential })),
    Effect.catchTag("UnreadableSecret", ({ message, reason }) =>
      Effect.as(Effect.logError("a stored credential cannot be opened", { context, reason, why: message }), {
        _tag: "Unreadable" as const
      })
    )
  )
})
