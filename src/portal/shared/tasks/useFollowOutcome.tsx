import { Anchor } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { type QueryClient, useQueryClient } from "@tanstack/react-query"
import { useNavigate } from "@tanstack/react-router"
import type { Letter } from "../../api/TaskTypes.ts"
import { callTasks, taskPath, tasksPath } from "../../api/tasks.ts"
import { AuditLink } from "../change/useTell.tsx"

const firstWaitMs = 500
/** Slowly more, so that the note does not wait while the page of the letter says more already. */
const waitGrowth = 1.12
const longestWaitMs = 10_000
const successMs = 20_000
const followMs = 15 * 60_000

/** The note of the latest replay of each message. The note of an earlier one would contradict it. */
const latest = new Map<string, string>()

type Navigate = ReturnType<typeof useNavigate>

/**
 * Returns what follows a replay: a note says that the message is published, and turns to "handled" or "failed again" by
 * itself, whatever page is open then. It never says more than the server has proved.
 */
export const useFollowOutcome = (): ((followed: Pick<Followed, "dlqId" | "of" | "operation">) => void) => {
  const client = useQueryClient()
  const navigate = useNavigate()
  return ({ dlqId, of, operation }) => {
    const earlier = latest.get(of)
    if (earlier !== undefined) notifications.hide(earlier)
    const note = notifications.show({
      loading: true,
      autoClose: false,
      title: of,
      message: (
        <>
          Published, waiting for a worker. This note tells what becomes of it.{" "}
          <AuditLink of={{ type: "tasks", id: operation }} />
        </>
      )
    })
    latest.set(of, note)
    void follow({ client, navigate, note, dlqId, of, operation })
  }
}

interface Followed {
  readonly client: QueryClient
  readonly navigate: Navigate
  readonly note: string
  readonly dlqId: string
  /** The title of the note, which names the replayed letter. */
  readonly of: string
  /** The address that was called, by which the audit log names the operation. */
  readonly operation: string
}

const follow = async ({ client, dlqId, navigate, note, of }: Followed): Promise<void> => {
  const until = Date.now() + followMs
  for (let wait = firstWaitMs; Date.now() < until; wait = Math.min(longestWaitMs, wait * waitGrowth)) {
    await new Promise((resolve) => window.setTimeout(resolve, wait))
    const letter = await callTasks<Letter>("GET", taskPath`/dlq/messages/${dlqId}`).catch(() => undefined)
    const known = letter?.replay_outcome
    if (latest.get(of) !== note) return
    if (letter === undefined || known === undefined || known === null || known.outcome === "published") continue
    void client.invalidateQueries({ queryKey: [tasksPath] })
    const open = (id: string) => (
      <Anchor
        component="button"
        type="button"
        onClick={() => void navigate({ to: "/dead-letters/$dlqId", params: { dlqId: id } })}
      >
        Open it
      </Anchor>
    )
    notifications.update({
      id: note,
      loading: false,
      autoClose: known.outcome === "handled" ? successMs : false,
      color: known.outcome === "handled" ? "accent" : "red",
      title: of,
      message:
        known.outcome === "handled" ? (
          "Handled: a status of the task proves it."
        ) : (
          <>It has failed again. {open(known.failed_again_as ?? dlqId)}</>
        )
    })
    return
  }
  notifications.update({
    id: note,
    loading: false,
    title: of,
    message: "Published. What became of it is still not known; its page goes on to tell."
  })
}
