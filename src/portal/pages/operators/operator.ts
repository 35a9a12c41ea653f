import type { ResponseOf } from "../../api/Endpoints.ts"
import type { Meaning } from "../../shared/words/StatusWord.tsx"

export const tokensPath = "/admin-ui/admin/operator-tokens"
export const tokenPath = "/admin-ui/admin/operator-tokens/:id"
export const sessionsPath = "/admin-ui/admin/operator-sessions"
export const sessionPath = "/admin-ui/admin/operator-sessions/:id"
/** What is old once a token has changed. */
export const staleAfterTokens = [tokensPath, sessionsPath, "/admin-ui/admin/audit-events"]

export type Token = ResponseOf<"GET", typeof tokensPath>[number]

/** Whether a token can be used, in a word. */
export const stateOf = ({ active, disabled, revoked_at }: Token): readonly [meaning: Meaning, word: string] =>
  active
    ? ["good", "active"]
    : revoked_at !== null
      ? ["bad", "revoked"]
      : disabled
        ? ["idle", "disabled"]
        : ["warning", "expired"]
