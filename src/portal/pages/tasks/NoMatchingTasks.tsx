import { useTextSearch } from "../../address/search.ts"
import { withQuery } from "../../api/http.ts"
import { tasksPath } from "../../api/tasks.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LongerRange } from "../../shared/links/LongerRange.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { queryOf } from "./searchText.ts"

const filters = [{ name: "q" }]

interface Props {
  readonly query: Readonly<Record<string, string>>
  /** The statuses that the tasks of the search have. */
  readonly statuses: ReadonlyArray<string>
}

export const NoMatchingTasks = ({ query, statuses }: Props) => {
  const { text } = useTextSearch()
  const { since, until } = queryOf(text("q") ?? "")
  const isOfRange = since === undefined && until === undefined
  return (
    <EmptyList
      filters={filters}
      isOfRange={isOfRange}
      unmatched={
        <>
          {isOfRange ? "No task matches in this range." : "No task matches in the time of the search."}
          {query["status"] !== undefined && statuses.length > 0 && (
            <>
              {" "}
              None has the status <ForeignText>{query["status"]}</ForeignText>: there are{" "}
              <ForeignText>{statuses.join(", ")}</ForeignText>.
            </>
          )}
        </>
      }
    >
      <Empty action={<LongerRange />} command={curlOf({ address: withQuery(`${tasksPath}/tasks`, query) })}>
        No task had a status in this range. A task appears with its first status.
      </Empty>
    </EmptyList>
  )
}
