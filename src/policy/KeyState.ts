import { Option } from "effect"
import type { KeyPolicy } from "./KeyPolicy.ts"

/** What decides whether a key may be used at all. */
export interface KeyState {
  readonly disabled: boolean
  readonly revoked: boolean
  /** This version can decode the key's policy. A key whose restrictions are not known is not usable. */
  readonly readable: boolean
  /** Epoch milliseconds. */
  readonly expiresAt: Option.Option<number>
  /** The last use that is on record, else the creation, or when it was last enabled; epoch milliseconds. */
  readonly lastUsedAt: number
}

/** A key, and the secret that led to it. */
export interface PresentedKey extends KeyState {
  /** Until when the secret is the key's: one that was rotated away has a grace. Epoch milliseconds. */
  readonly secretEndsAt: Option.Option<number>
}

/** Why a known key may not be used now, or `undefined`. */
export const unusableReason = (state: KeyState, now: number): Exclude<KeyCode, "invalid_virtual_key"> | undefined => {
  if (state.revoked) return "revoked_virtual_key"
  if (state.disabled) return "disabled_virtual_key"
  if (Option.exists(state.expiresAt, (expiresAt) => expiresAt <= now)) return "expired_virtual_key"
  return state.readable ? undefined : "control_state_unavailable"
}

const dayMs = 86_400_000

/** How many days without a use disable a key, when by what is known of it so many have passed. */
export const exceededUnusedDays = (
  { lastUsedAt }: KeyState,
  { unused_key_auto_disable_after_days: days }: KeyPolicy,
  now: number
): number | undefined => (days._tag === "Limited" && lastUsedAt <= unusedCutoff(days.max, now) ? days.max : undefined)

/** A key that was last used before is one that was not used for `days`. */
export const unusedCutoff = (days: number, now: number): number => now - days * dayMs

/** The sentence for each reason to refuse a key. */
export const refusalMessages = {
  invalid_virtual_key: "The gateway key is not known.",
  disabled_virtual_key: "The gateway key is disabled; an operator can enable it.",
  revoked_virtual_key: "The gateway key was revoked; ask for a new one.",
  expired_virtual_key: "The gateway key has expired; ask for a new one.",
  control_state_unavailable:
    "This version of the gateway cannot decode the gateway key's policy; an operator can update the gateway, or save the policy again."
} as const

export type KeyCode = keyof typeof refusalMessages

export interface KeyRefusal {
  readonly code: KeyCode
  readonly message: string
}

export const refusal = (code: KeyCode): KeyRefusal => ({ code, message: refusalMessages[code] })

/** Why the key may not be used now with the secret that was presented, or `undefined`. */
export const refusalOf = (key: PresentedKey, now: number): KeyRefusal | undefined => {
  const endedAt = Option.getOrUndefined(key.secretEndsAt)
  if (endedAt !== undefined && endedAt <= now) return rotatedRefusal(endedAt)
  const code = unusableReason(key, now)
  return code && refusal(code)
}

/** The secret was the key's until the grace of a rotation ended. */
const rotatedRefusal = (endedAt: number): KeyRefusal => ({
  code: "invalid_virtual_key",
  message: `The gateway key was rotated, and this secret worked until ${new Date(endedAt).toISOString()}; use the new one.`
})
