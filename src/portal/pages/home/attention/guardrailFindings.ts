import { countedText } from "../../../shared/words/format.ts"
import type { Finding } from "./findings.ts"

interface Sum {
  readonly guardrail_name: string
  readonly failure_policy: string
  readonly failed_count: number
}

/** Each failure policy says what becomes of a text that the guardrail could not judge, and weighs it. */
const consequences: Readonly<Record<string, readonly [weight: Finding["weight"], sentence: string]>> = {
  fail_closed: [3, "and the requests were refused"],
  fail_open: [3, "and the texts passed without it"],
  dry_run: [1, "and it only records what it would do"]
}

/** Finds guardrails that did not respond, or not as they should, also where the requests went on. */
export const ofGuardrails = (sums: ReadonlyArray<Sum>): ReadonlyArray<Finding> =>
  [...Map.groupBy(sums, ({ failure_policy, guardrail_name }) => `${failure_policy} ${guardrail_name}`)].flatMap(
    ([id, [first, ...more]]): ReadonlyArray<Finding> => {
      const failed = [first, ...more].reduce((sum, one) => sum + (one?.failed_count ?? 0), 0)
      const consequence = consequences[first?.failure_policy ?? ""]
      if (first === undefined || consequence === undefined || failed === 0) return []
      const [weight, sentence] = consequence
      return [
        {
          id: `guardrail ${id}`,
          weight,
          name: first.guardrail_name,
          sentence: `failed ${failed === 1 ? "once" : countedText(failed, "time")} in a day, ${sentence}`,
          path: `/guardrails/${encodeURIComponent(first.guardrail_name)}`
        }
      ]
    }
  )
