import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"

/** Nothing is stored of a task with this id. */
export const UnknownTask = () => (
  <Panel>
    <Empty
      action={
        <Button variant="default" renderRoot={(props) => <Link {...props} to="/tasks" />}>
          Search for tasks
        </Button>
      }
    >
      No status, attempt or dead letter is stored for this id. Statuses of a task are kept for a while after its latest
      one.
    </Empty>
  </Panel>
)
