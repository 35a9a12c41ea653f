import { Button } from "@mantine/core"
import { useHeldTime } from "../../address/shownTime.ts"
import { type List, pageCount } from "../../api/queries.ts"
import styles from "./DataTable.module.css"

interface Props {
  readonly query: List<unknown>["query"]
  readonly count: number
}

/** The end of a list that is read page by page. What was read further stays: it would begin anew in each minute. */
export const MorePages = ({ count, query }: Props) => {
  useHeldTime(pageCount(query.data) > 1)
  if (!query.hasNextPage && !query.isFetchingNextPage) return null
  return (
    <footer className={styles.footer}>
      <span>{count} shown, there are more</span>
      <Button variant="default" loading={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        Show more
      </Button>
    </footer>
  )
}
