import type { ReplayStep } from "../../../api/TaskTypes.ts"
import { countedText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { wordsOfStep } from "./jobWords.ts"
import styles from "./Replay.module.css"

/** Each step with its verdict. A step begins once the one before is over. */
export const Steps = ({ steps }: { readonly steps: ReadonlyArray<ReplayStep> }) => (
  <ol className={styles.steps} aria-label="Steps">
    {steps.map((step) => {
      const [meaning, words] = wordsOfStep(step)
      return (
        <li key={step.step} data-verdict={step.verdict}>
          <header>
            <strong>
              Step {step.step}: {countedText(step.size, "letter")}
            </strong>
            <StatusWord meaning={meaning}>{words}</StatusWord>
            {step.began_at !== null && step.verdict !== "not_begun" && (
              <span className={styles.when}>
                began <When at={step.began_at} />
              </span>
            )}
          </header>
          {step.verdict !== "not_begun" && (
            <>
              <StepBar step={step} />
              <p className={styles.when}>
                {step.replayed} published: {step.handled} handled, {step.failed_again} failed again, {step.open} still
                open
                {step.not_replayed > 0 && `; ${step.not_replayed} not published`}
              </p>
            </>
          )}
        </li>
      )
    })}
  </ol>
)

const StepBar = ({ step }: { readonly step: ReplayStep }) => {
  const share = (count: number) => `${step.size === 0 ? 0 : (count / step.size) * 100}%`
  return (
    <div
      className={styles.bar}
      role="img"
      aria-label={`${step.handled} handled, ${step.failed_again} failed again and ${step.open} open of ${step.size}`}
    >
      <span data-meaning="good" style={{ width: share(step.handled) }} />
      <span data-meaning="bad" style={{ width: share(step.failed_again) }} />
      <span data-meaning="waiting" style={{ width: share(step.open) }} />
      <span data-meaning="idle" style={{ width: share(step.not_replayed) }} />
    </div>
  )
}
