import { type Meaning, StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./RequestDetail.module.css"
import type { Explanation } from "./useRequest.ts"

type CheckResult = Explanation["decided"]["checks"][number]

interface Props {
  readonly checks: ReadonlyArray<CheckResult>
  readonly none: string
}

const meanings: Readonly<Record<CheckResult["result"], Meaning>> = { passed: "good", refused: "bad", unchecked: "idle" }
const words: Readonly<Record<CheckResult["result"], string>> = {
  passed: "passed",
  refused: "refused",
  unchecked: "not checked"
}

/** The checks in the order in which they ran, up to the one that refused. */
export const Checks = ({ checks, none }: Props) => (
  <div className={styles.part}>
    <h3>Checks, in their order</h3>
    {checks.length === 0 ? (
      <p className={styles.muted}>{none}</p>
    ) : (
      <ol className={styles.checks} aria-label="Checks, in their order">
        {checks.map(({ check, result }) => (
          <li key={check}>
            <code>{check}</code> <StatusWord meaning={meanings[result]}>{words[result]}</StatusWord>
          </li>
        ))}
      </ol>
    )}
  </div>
)
