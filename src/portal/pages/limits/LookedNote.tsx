import { Button } from "@mantine/core"
import { countedText } from "../../shared/words/format.ts"
import { When } from "../../shared/words/When.tsx"
import styles from "./HeatMap.module.css"
import type { Looked } from "./useLimitPages.ts"

interface Props {
  readonly looked: Looked
  readonly hasMore: boolean
  readonly isBusy: boolean
  readonly onMore: () => void
}

/** Says how far the page has looked, and what it leaves out. */
export const LookedNote = ({ hasMore, isBusy, looked: { backTo, keys, leftOut }, onMore }: Props) => (
  <p className={styles.looked}>
    Looked at {countedText(keys, "usable key that was", "usable keys that were")} used in this month
    {hasMore && backTo !== null && (
      <>
        , back to <When at={backTo} />
      </>
    )}
    .
    {leftOut > 0 &&
      ` ${countedText(leftOut, "limit further from its maximum is", "limits further from their maximum are")} left out.`}{" "}
    {hasMore && (
      <Button variant="subtle" loading={isBusy} onClick={onMore}>
        Look at keys that were used before
      </Button>
    )}
  </p>
)
