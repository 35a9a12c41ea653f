import { Clock, DateTime, Effect, Layer } from "effect"
import { type FindSource, TaskSources } from "../../src/control/find/FindSource.ts"
import { tasksPath } from "../../src/control/http/Paths.ts"
import { Cancellations } from "../../src/status/cancellations/Cancellations.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import { ReplayJobs } from "../../src/status/replay/ReplayJobs.ts"
import { TaskIndex } from "../../src/status/tasks/TaskIndex.ts"

const scopes: FindSource["scopes"] = ["tasks:read", "tasks:operate"]

/** Finds tasks, dead letters, replays and cancellations for operators. */
export const layer = Layer.effect(
  TaskSources,
  Effect.gen(function* () {
    const [index, letters] = [yield* TaskIndex, yield* DeadLetterStore]
    const [replayJobs, cancellationJobs] = [yield* ReplayJobs, yield* Cancellations]
    const daysAgo = (days: number) =>
      Effect.map(Clock.currentTimeMillis, (now) => DateTime.makeUnsafe(now - days * 86_400_000))
    const one = <A>(found: A | undefined): ReadonlyArray<A> => (found === undefined ? [] : [found])
    const tasks: FindSource = {
      kind: "task",
      scopes,
      find: (id) =>
        Effect.map(index.get(id), (task) =>
          one(task).map(({ last_micros, status, task_id, task_type }) => ({
            id: task_id,
            title: [task_type, status].filter((word) => word !== null).join(", "),
            at: DateTime.makeUnsafe(last_micros / 1_000),
            path: `${tasksPath}/status/${encodeURIComponent(task_id)}`
          }))
        ),
      since: daysAgo(index.kept.days)
    }
    const deadLetters: FindSource = {
      kind: "dead_letter",
      scopes,
      find: (id) =>
        Effect.map(letters.get(id), (letter) =>
          one(letter).map(({ dead_lettered_at, dlq_id, queue_name, reason }) => ({
            id: dlq_id,
            title: `${queue_name}, ${reason}`,
            at: DateTime.makeUnsafe(dead_lettered_at),
            path: `${tasksPath}/dlq/messages/${encodeURIComponent(dlq_id)}`
          }))
        ),
      since: Effect.succeed(null)
    }
    const replays: FindSource = {
      kind: "replay",
      scopes,
      find: (id) =>
        Effect.map(replayJobs.get(id), (job) =>
          one(job).map(({ replay_id, started_at, state, total }) => ({
            id: replay_id,
            title: `${state}, ${total} dead letters`,
            at: DateTime.makeUnsafe(started_at),
            path: `${tasksPath}/dlq/replays/${encodeURIComponent(replay_id)}`
          }))
        ),
      since: Effect.succeed(null)
    }
    const cancellations: FindSource = {
      kind: "cancellation",
      scopes,
      find: (id) =>
        Effect.map(cancellationJobs.get(id), (job) =>
          one(job).map(({ cancellation_id, started_at, state, total }) => ({
            id: cancellation_id,
            title: `${state}, ${total} tasks`,
            at: DateTime.makeUnsafe(started_at),
            path: `${tasksPath}/tasks/cancellations/${encodeURIComponent(cancellation_id)}`
          }))
        ),
      since: Effect.succeed(null)
    }
    return [tasks, deadLetters, replays, cancellations]
  })
)
