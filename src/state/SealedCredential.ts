import { Effect } from "effect"
import { missing, type StoredSecret } from "../policy/routes/StoredCredential.ts"
import { Vault } from "./Vault.ts"

export const open = Effect.fnUntraced(function* (sealed: string | null, context: string) {
  if (sealed === null) return missing
  const vault = yield* Vault
  return yield* vault.open(sealed, context).pipe(
    Effect.map((credential): StoredSecret => ({ _tag: "Present", credential })),
    Effect.catchTag("UnreadableSecret", ({ message, reason }) =>
      Effect.as(
        Effect.logError("a stored credential cannot be decrypted; requests that need it fail", {
          context,
          reason,
          why: message
        }),
        {
          _tag: "Unreadable" as const
        }
      )
    )
  )
})
