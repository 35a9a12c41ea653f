/** Something that needs a person, with the page on which to act. */
export interface Finding {
  readonly id: string
  /** 3 is the worst. */
  readonly weight: 1 | 2 | 3
  readonly sentence: string
  /** A name from data, after which the sentence goes on. */
  readonly name?: string
  readonly path: string
  readonly search?: Readonly<Record<string, string>>
}

interface Limit {
  readonly meter: string
  readonly unit: string
  readonly window: string
  readonly scope: string
  readonly scope_id: string | null
  readonly scope_name: string
  readonly share: number | null
  readonly resets_at: string
  readonly forecast: string | null
}

const dayMs = 86_400_000

/** Budgets and limits of days and months that are used up, or will be before their reset. */
export const ofLimits = (limits: ReadonlyArray<Limit>, at: (iso: string) => string): ReadonlyArray<Finding> =>
  limits
    .filter(({ share, window }) => window !== "minute" && share !== null)
    .flatMap(({ forecast, meter, scope, scope_id, scope_name, share, unit }): ReadonlyArray<Finding> => {
      const found = {
        id: `limit ${scope} ${scope_id} ${meter}`,
        name: scope_name,
        path: unit === "usd" ? "/limits/budgets" : "/limits",
        search: { open: `${scope}:${scope_id ?? ""}` }
      }
      if ((share ?? 0) >= 1) return [{ ...found, weight: 3, sentence: `has used up ${meter}` }]
      if (forecast !== null) return [{ ...found, weight: 2, sentence: `will have used up ${meter} ${at(forecast)}` }]
      return []
    })

interface Key {
  readonly id: string
  readonly name: string | null
  readonly key_prefix: string
  readonly expires_at: string | null
  readonly rotation_due_at: string | null
}

const soonMs = 7 * dayMs

export const ofKeys = (keys: ReadonlyArray<Key>, now: number, at: (iso: string) => string): ReadonlyArray<Finding> =>
  keys.flatMap(({ expires_at, id, key_prefix, name, rotation_due_at }) => {
    const found = { name: name ?? key_prefix, path: `/keys/${id}` }
    const isSoon = (time: string | null): time is string => time !== null && Date.parse(time) - now < soonMs
    return [
      ...(isSoon(expires_at)
        ? [{ ...found, id: `expires ${id}`, weight: 2 as const, sentence: `expires ${at(expires_at)}` }]
        : []),
      ...(isSoon(rotation_due_at)
        ? [{ ...found, id: `rotate ${id}`, weight: 1 as const, sentence: `is due for rotation ${at(rotation_due_at)}` }]
        : [])
    ]
  })

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
                sentence: `had failures in ${percent(error_count)} of the requests of a day, refusals included`
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
  readonly updated_at: string
}

export const ofHealth = (states: ReadonlyArray<Health>, at: (iso: string) => string): ReadonlyArray<Finding> =>
  states
    .filter(({ status }) => status === "unhealthy" || status === "degraded")
    .map(({ last_error_code, name, status, updated_at }) => ({
      id: `health ${name}`,
      weight: status === "unhealthy" ? 3 : 2,
      name,
      sentence: `is ${status}${last_error_code === null ? "" : ` (${last_error_code})`}, checked ${at(updated_at)}`,
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

export const ofQueues = (queues: ReadonlyArray<Queue>): ReadonlyArray<Finding> =>
  queues.flatMap(({ queue, state }) => {
    const weight = badStates[state]
    return weight === undefined
      ? []
      : [
          {
            id: `queue ${queue}`,
            weight,
            name: queue,
            sentence: state === "no consumer" ? "has no consumer" : `is ${state}`,
            path: "/tasks/board"
          }
        ]
  })

interface Asked {
  readonly id: string
  readonly key_name: string | null
  readonly key_prefix: string
  readonly meter: string | null
  readonly reason: string
}

/** Holders of keys who wait for an answer. */
export const ofAsked = (asked: ReadonlyArray<Asked>): ReadonlyArray<Finding> =>
  asked.map(({ id, key_name, key_prefix, meter, reason }) => ({
    id: `asked ${id}`,
    weight: 2,
    name: key_name ?? key_prefix,
    sentence: `asks for more${meter === null ? "" : ` ${meter}`}: ${reason}`,
    path: "/limits/requests",
    search: { state: "open" }
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

/** The worst first. */
export const sorted = (findings: ReadonlyArray<Finding>): ReadonlyArray<Finding> =>
  findings.toSorted((a, b) => b.weight - a.weight)
