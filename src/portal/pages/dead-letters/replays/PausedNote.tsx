import type { ReplayJobDetail } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./Replay.module.css"

/** A job that has paused itself has one of these instead of a person. */
const itself: ReadonlySet<string | null> = new Set(["stop_after", "failed_step"])

/** Says why a replay is paused, and what ends the pause. */
export const PausedNote = ({ at, by, reason }: NonNullable<ReplayJobDetail["paused"]>) => (
  <p className={styles.paused} role="status">
    <StatusWord meaning="warning">paused</StatusWord>{" "}
    {itself.has(by) ? (
      <>
        It has stopped itself: <ForeignText>{`${reason}.`}</ForeignText> That was <When at={at} />.
      </>
    ) : (
      <>
        <ForeignText>{by ?? "Somebody"}</ForeignText>: <ForeignText>{reason}</ForeignText>, <When at={at} />.
      </>
    )}{" "}
    Nothing more is published until it is resumed.
  </p>
)
