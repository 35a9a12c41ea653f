import { useTextSearch } from "../../address/search.ts"
import { withQuery } from "../../api/http.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useTasksApi } from "../../api/queries.ts"
import type { DeadLetterQueues } from "../../api/TaskTypes.ts"
import { tasksPath } from "../../api/tasks.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { countText } from "../../shared/words/format.ts"
import { Archive } from "./archive/Archive.tsx"
import { Groups } from "./groups/Groups.tsx"
import { Letters } from "./letters/Letters.tsx"
import { letterQuery } from "./letters/letterFilter.ts"
import { QueuesOfLetters } from "./QueuesOfLetters.tsx"
import { Replays } from "./replays/Replays.tsx"
import { UnknownLane } from "./UnknownLane.tsx"

const topics = ["dead_letters"] as const

/** Returns the address that the open tab reads. */
const addressOfTab = (text: (name: string) => string | undefined): string => {
  const letters = (query: Readonly<Record<string, string | undefined>>) => withQuery(`${tasksPath}/dlq/messages`, query)
  switch (text("tab")) {
    case "letters":
      return letters(letterQuery(text))
    case "unknown":
      return letters({ state: "replay_unknown" })
    case "archive":
      return letters({ state: "archived" })
    case "replays":
      return `${tasksPath}/dlq/replays`
    case "queues":
      return `${tasksPath}/dlq/queues`
    default:
      return `${tasksPath}/dlq/groups`
  }
}

/** What has failed for good: by cause, one by one, and what is done about it. */
const DeadLettersPage = () => {
  useLiveRefresh(topics, [tasksPath])
  const queues = useTasksApi<DeadLetterQueues>("/dlq/queues").data?.queues ?? []
  const sum = (count: "open_count" | "unknown_count") => queues.reduce((total, queue) => total + queue[count], 0)
  const { text } = useTextSearch()
  const counted = (label: string, count: number, what = "") =>
    count === 0 ? label : `${label} (${countText(count)}${what})`
  return (
    <>
      <PageHeader
        title="Dead letters"
        lead="Messages that have failed for good. Find the cause, then replay, edit or archive them."
        actions={<CopyAs address={addressOfTab(text)} />}
      />
      <Tabs
        tabs={[
          { value: "groups", label: "Groups", content: () => <Groups /> },
          { value: "letters", label: counted("Letters", sum("open_count"), " open"), content: () => <Letters /> },
          { value: "unknown", label: counted("Replay unknown", sum("unknown_count")), content: () => <UnknownLane /> },
          { value: "replays", label: "Replays", content: () => <Replays /> },
          { value: "archive", label: "Archive", content: () => <Archive /> },
          { value: "queues", label: "Queues", content: () => <QueuesOfLetters /> }
        ]}
      />
    </>
  )
}

export default DeadLettersPage
