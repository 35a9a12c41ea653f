import { Empty } from "../shared/page/Empty.tsx"
import { PageHeader } from "../shared/page/PageHeader.tsx"
import { Panel } from "../shared/page/Panel.tsx"

/** Instead of a page of tasks, where the process that answers has none. */
export const NoTasks = ({ title }: { readonly title: string }) => (
  <>
    <PageHeader title={title} />
    <Panel>
      <Empty>
        This process has no tasks. Start it with <code>--tasks ./tasks.ts</code> for those of a module, or with{" "}
        <code>--example</code> to see how an example&apos;s are shown.
      </Empty>
    </Panel>
  </>
)
