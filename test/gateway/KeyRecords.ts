import { Option } from "effect"
import type { KeyRecord } from "../../src/gateway/snapshot/KeyRecord.ts"
import * as GuardrailPolicy from "../../src/policy/GuardrailPolicy.ts"
import { neutral } from "../../src/policy/KeyPolicy.ts"
import { unbound } from "../../src/policy/routes/StoredCredential.ts"

/** A key that may do everything, of nobody. */
export const recordOf = (of: Partial<KeyRecord>): KeyRecord => ({
  id: "k",
  prefix: "rk_live_00000000",
  projectId: Option.none(),
  projectName: Option.none(),
  teamId: Option.none(),
  disabled: false,
  revoked: false,
  readable: true,
  expiresAt: Option.none(),
  secretEndsAt: Option.none(),
  lastUsedAt: 0,
  ownLayer: { kind: "key", scopeId: "k", version: 1, policy: neutral, guardrails: GuardrailPolicy.neutral, since: {} },
  ownerSince: 0,
  raises: [],
  services: [],
  keyMapping: unbound,
  projectMapping: unbound,
  ...of
})
