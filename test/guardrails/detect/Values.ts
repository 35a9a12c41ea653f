import { Result } from "effect"
import { DetectorSet } from "../../../src/guardrails/detect/DetectorSet.ts"
import { scan } from "../../../src/guardrails/detect/Scanner.ts"

/** Returns the kind and the raw text of each value. */
export const valuesIn = (config: Readonly<Record<string, unknown>>, text: string) =>
  scan(Result.getOrThrow(DetectorSet.of(config)), "plain", text).flatMap((segment) =>
    segment._tag === "Found" ? [`${segment.kind} ${segment.raw}`] : []
  )
