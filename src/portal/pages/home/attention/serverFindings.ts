import type { HubState } from "../../../api/TaskTypes.ts"
import { sentenceOfLateHub } from "../../../shared/tasks/lateHub.ts"
import { countedText } from "../../../shared/words/format.ts"
import type { Finding } from "./findings.ts"

interface Observed {
  readonly name: string
  readonly request_count: number
  readonly error_count: number
  readonly timeout_count: number
  readonly fallback_count: number
}

const fewRequests = 10

/** Parts of a day's requests from which errors and timeouts are worth a look, and from which they are bad. */
const [noticed, high] = [0.05, 0.1]

export const ofTraffic = (observed: ReadonlyArray<Observed>): ReadonlyArray<Finding> =>
  observed
    .filter(({ request_count }) => request_count >= fewRequests)
    .flatMap(({ error_count, fallback_count, name, request_count, timeout_count }) => {
      const percent = (count: number) => `${Math.round((count / request_count) * 100)} %`
      const found = { name, path: "/upstreams" }
      return [
        ...(timeout_count / request_count >= noticed
          ? [
              {
                ...found,
                id: `timeouts ${name}`,
                weight: timeout_count / request_count >= high ? (3 as const) : (2 as const),
                sentence: `timed out in ${percent(timeout_count)} of the requests of a day`
              }
            ]
          : []),
        ...(error_count / request_count >= noticed
          ? [
              {
                ...found,
                id: `errors ${name}`,
                weight: error_count / request_count >= high ? (3 as const) : (2 as const),
                sentence: `failed ${percent(error_count)} of the requests that were sent to it in a day`,
                path: "/requests",
                search: { status: "failure", range: "24h" }
              }
            ]
          : []),
        ...(fallback_count > 0
          ? [
              {
                ...found,
                id: `fallbacks ${name}`,
                weight: 1 as const,
                sentence: `was the fallback of ${fallback_count} requests of a day`
              }
            ]
          : [])
      ]
    })

interface Health {
  readonly name: string
  readonly status: string
  readonly last_error_code: string | null
  readonly consecutive_failures: number
  readonly status_since: string | null
  readonly updated_at: string
}

export const ofHealth = (states: ReadonlyArray<Health>, at: (iso: string) => string): ReadonlyArray<Finding> =>
  states
    .filter(({ status }) => status === "unhealthy" || status === "degraded")
    .map(({ consecutive_failures, last_error_code, name, status, status_since, updated_at }) => ({
      id: `health ${name}`,
      weight: status === "unhealthy" ? 3 : 2,
      name,
      sentence: `is ${status}${last_error_code === null ? "" : ` (${last_error_code})`}${consecutive_failures === 0 ? "" : ` after ${countedText(consecutive_failures, "failure")} in a row`}${status_since === null ? "" : `; it became so ${at(status_since)}`}, last checked ${at(updated_at)}`,
      path: "/upstreams"
    }))

interface Queue {
  readonly queue: string
  readonly state: string
}

/** States of queues in which nothing gets done without a person. */
const badStates: Readonly<Record<string, 1 | 2 | 3>> = {
  "no consumer": 3,
  stalled: 3,
  growing: 1,
  paused: 1,
  unknown: 2
}

export const ofQueues = (queues: ReadonlyArray<Queue>): ReadonlyArray<Finding> => [
  ...ofAlarm(queues.filter(({ state }) => state === "alarm").length),
  ...queues.flatMap(({ queue, state }): ReadonlyArray<Finding> => {
    const weight = badStates[state]
    const sentence = state === "no consumer" ? "has no consumer" : `is ${state}`
    return weight === undefined ? [] : [{ id: `queue ${queue}`, weight, name: queue, sentence, path: "/tasks/board" }]
  })
]

/** The alarm is one of the broker: it is told once, however many queues it has. */
const ofAlarm = (queues: number): ReadonlyArray<Finding> =>
  queues === 0
    ? []
    : [
        {
          id: "alarm",
          weight: 3,
          sentence: `The broker lacks memory or disk and takes no messages: an alarm for ${countedText(queues, "queue")}`,
          path: "/tasks/board"
        }
      ]

export const ofHub = (hub: HubState): ReadonlyArray<Finding> => {
  const sentence = sentenceOfLateHub(hub)
  return sentence === undefined ? [] : [{ id: "hub", weight: 2, sentence, path: "/tasks/board" }]
}

/** Letters that wait for somebody. A queue keeps the messages of those that were replayed, too. */
export const ofLetters = (
  queues: ReadonlyArray<{ readonly queue_name: string; readonly open_count: number }>
): ReadonlyArray<Finding> =>
  queues
    .filter(({ open_count }) => open_count > 0)
    .map(({ open_count, queue_name }) => ({
      id: `dead ${queue_name}`,
      weight: 2,
      name: queue_name,
      sentence: `has ${countedText(open_count, "open dead letter")}: tasks that have failed for good`,
      path: "/dead-letters"
    }))

interface System {
  readonly checks: Readonly<Record<string, string>>
  readonly doors: ReadonlyArray<{
    readonly door: string
    readonly variant: string
    readonly lost_at_exit: boolean
    readonly reachable: boolean | null
    readonly since: string | null
  }>
}

/** Servers that do not respond, a configuration that is not applied, and data that ends with the process. */
export const ofSystem = ({ checks, doors }: System, at: (iso: string) => string): ReadonlyArray<Finding> => {
  const lost = doors.filter(({ lost_at_exit }) => lost_at_exit).map(({ door }) => door)
  const configuration = checks["configuration"]
  return [
    ...doors
      .filter(({ reachable }) => reachable === false)
      .map(({ door, since }) => ({
        id: `door ${door}`,
        weight: 3 as const,
        name: door,
        sentence: `is unreachable${since === null ? "" : `, ${at(since)}`}`,
        path: "/system"
      })),
    ...(configuration !== undefined && configuration !== "current"
      ? [
          {
            id: "configuration",
            weight: 2 as const,
            sentence: `The configuration in force is ${configuration.replaceAll("_", " ")}`,
            path: "/system"
          }
        ]
      : []),
    ...(lost.length > 0
      ? [
          {
            id: "lost at exit",
            weight: 1 as const,
            sentence: `This process loses its data when it ends: ${lost.join(", ")} ${lost.length === 1 ? "is" : "are"} within it`,
            path: "/system"
          }
        ]
      : [])
  ]
}
