import { Option } from "effect"
import type { KeyPolicy } from "./KeyPolicy.ts"

/** The properties that decide whether a key may be used. Times are epoch milliseconds. */
export interface KeyState {
  readonly disabled: boolean
  readonly revoked: boolean
  /** False if this version cannot decode the key's policy. The key is then refused. */
  readonly readable: boolean
  readonly expiresAt: Option.Option<number>
  /** The time of the last use, of the creation, or of the last enabling by an operator, whichever is latest. */
  readonly lastUsedAt: number
}

export interface PresentedKey extends KeyState {
  /** The time when the presented secret expires. It is set only if a rotation has replaced the secret. */
  readonly secretEndsAt: Option.Option<number>
}

export const unusableReason = (state: KeyState, now: number): Exclude<KeyCode, "invalid_virtual_key"> | undefined => {
  if (state.revoked) return "revoked_virtual_key"
  if (state.disabled) return "disabled_virtual_key"
  if (Option.exists(state.expiresAt, (expiresAt) => expiresAt <= now)) return "expired_virtual_key"
  return state.readable ? undefined : "control_state_unavailable"
}

const dayMs = 86_400_000

export const exceededUnusedDays = (
  { lastUsedAt }: KeyState,
  { unused_key_auto_disable_after_days: days }: KeyPolicy,
  now: number
): number | undefined => (days._tag === "Limited" && lastUsedAt <= unusedCutoff(days.max, now) ? days.max : undefined)

export const unusedCutoff = (days: number, now: number): number => now - days * dayMs

export const refusalMessages = {
  invalid_virtual_key: "The gateway key is not known. Check the key, or ask an operator for a new one.",
  disabled_virtual_key: "The gateway key is disabled; an operator can enable it.",
  revoked_virtual_key: "The gateway key was revoked; ask for a new one.",
  expired_virtual_key: "The gateway key has expired; ask for a new one.",
  control_state_unavailable:
    "This version of the gateway cannot decode the gateway key's policy; an operator can update the gateway, or save the policy again."
} as const

type KeyCode = keyof typeof refusalMessages

export interface KeyRefusal {
  readonly code: KeyCode
  readonly message: string
}

export const refusal = (code: KeyCode): KeyRefusal => ({ code, message: refusalMessages[code] })

export const refusalOf = (key: PresentedKey, now: number): KeyRefusal | undefined => {
  const endedAt = Option.getOrUndefined(key.secretEndsAt)
  if (endedAt !== undefined && endedAt <= now) return rotatedRefusal(endedAt)
  const code = unusableReason(key, now)
  return code && refusal(code)
}

const rotatedRefusal = (endedAt: number): KeyRefusal => ({
  code: "invalid_virtual_key",
  message: `The gateway key was rotated, and this secret expired at ${new Date(endedAt).toISOString()}. Use the new secret.`
})
