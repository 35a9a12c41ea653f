import { type Check, checkNames } from "../../policy/Policy.ts"
import type { CheckResult } from "../api/policies/PolicyApi.ts"

interface Decided {
  /** The check that refused the request. It may be a limit, which is counted beside the checks of the policy. */
  readonly check: string | null
  readonly wasForwarded: boolean
  readonly hasReadBody: boolean
}

/**
 * Returns the checks that a recorded request has passed, and the one that refused it. Without its body, only the checks
 * that need none have surely passed. The same holds for a refusal by a limit, which may come before the body is read.
 */
export const ofRecord = ({ check, hasReadBody, wasForwarded }: Decided): ReadonlyArray<CheckResult> => {
  const known = (hasReadBody ? checkNames.all : checkNames.beforeBody).filter(isOfRequest)
  if (wasForwarded) return passed(known)
  if (check === null) return []
  const before = checksBefore(check) ?? checkNames.beforeBody
  return [...passed(known.filter((name) => before.includes(name))), refused(check)]
}

/** Returns the results of today's decision. Without its input a check may refuse all the same, but not pass. */
export const ofDecision = (check: string | null, unchecked: ReadonlyArray<string>): ReadonlyArray<CheckResult> => [
  ...passed((check === null ? undefined : checksBefore(check)) ?? checkNames.all)
    .map((one) => (unchecked.includes(one.check) ? { ...one, result: "unchecked" as const } : one))
    .filter((one) => isOfRequest(one.check) || one.result === "unchecked"),
  ...(check === null ? [] : [refused(check)])
]

/** Returns `undefined` for the name of a limit. */
const checksBefore = (check: string): ReadonlyArray<Check> | undefined => {
  const place = checkNames.all.map(String).indexOf(check)
  return place === -1 ? undefined : checkNames.all.slice(0, place)
}

/** The size of the response is not known when the checks run. The gateway bounds it while it forwards the response. */
const isOfRequest = (check: string): boolean => check !== "response_bytes"

const passed = (checks: ReadonlyArray<Check>) => checks.map((check): CheckResult => ({ check, result: "passed" }))

const refused = (check: string): CheckResult => ({ check, result: "refused" })
