import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { withQuery } from "../../api/http.ts"
import { tasksPath } from "../../api/tasks.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"

/** The widest range that the index keeps is asked for at once. */
const everything = "30d"

interface Props {
  readonly query: Readonly<Record<string, string>>
  /** The statuses that the tasks of the search have. */
  readonly statuses: ReadonlyArray<string>
}

export const NoTasks = ({ query, statuses }: Props) => (
  <Empty
    action={
      <Button
        variant="default"
        renderRoot={(props) => <Link {...props} to="/tasks" search={(before) => ({ ...before, range: everything })} />}
      >
        Look at 30 days
      </Button>
    }
    command={`curl -s '${window.location.origin}${withQuery(`${tasksPath}/tasks`, query)}' -H "authorization: Bearer $OPERATOR"`}
  >
    No task matches in this range. A task appears with its first status.
    {query["status"] !== undefined && statuses.length > 0 && (
      <>
        {" "}
        None has the status <ForeignText>{query["status"]}</ForeignText>: there are{" "}
        <ForeignText>{statuses.join(", ")}</ForeignText>.
      </>
    )}
  </Empty>
)
