import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { withQuery } from "../../api/http.ts"
import { tasksPath } from "../../api/tasks.ts"
import { Empty } from "../../shared/page/Empty.tsx"

/** The widest range that the index keeps is asked for at once. */
const everything = "30d"

export const NoTasks = ({ query }: { readonly query: Readonly<Record<string, string>> }) => (
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
  </Empty>
)
