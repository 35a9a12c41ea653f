/** What is asked of a client that sends a body, beside the route's `timeout_ms`: else a byte a minute holds a place. */
export interface BodyPace {
  /** The longest silence in a body. */
  readonly idleMs: number
  /** For so long the rate does not count: the first bytes of a slow connection come late. */
  readonly graceMs: number
  /** On the average of the time after that. */
  readonly bytesPerSecond: number
}

/** A phone in a tunnel is silent for some seconds, and the slowest mobile networks give 4 KiB a second. */
export const defaultPace: BodyPace = { idleMs: 15_000, graceMs: 15_000, bytesPerSecond: 1_024 }

/** Why a body takes too long. `deadline`: the route's own. */
export type TimeoutCause = "deadline" | "idle" | "rate"

/** For how much longer a body may be waited for, if nothing of it comes, and by what it is then late. */
export const nextTimeout = (
  { bytesPerSecond, graceMs, idleMs }: BodyPace,
  {
    bytes,
    silentMs,
    waitedMs,
    withinMs
  }: {
    readonly bytes: number
    readonly silentMs: number
    readonly waitedMs: number
    readonly withinMs: number
  }
): { readonly ms: number; readonly by: TimeoutCause } => {
  const deadline = withinMs - waitedMs
  const idle = idleMs - silentMs
  const rate = graceMs + (bytes * 1_000) / bytesPerSecond - waitedMs
  const ms = Math.min(deadline, idle, rate)
  return { ms, by: ms === deadline ? "deadline" : ms === idle ? "idle" : "rate" }
}

/** For a refusal. */
export const timeoutMessage = (
  { bytesPerSecond, graceMs, idleMs }: BodyPace,
  by: TimeoutCause,
  withinMs: number
): string => {
  switch (by) {
    case "deadline":
      return `The request body did not arrive within ${withinMs} ms (timeout_ms of the route).`
    case "idle":
      return `Nothing of the request body came for ${idleMs} ms. Send it without such a pause.`
    case "rate":
      return `The request body came at less than ${bytesPerSecond} bytes a second, averaged after its first ${graceMs} ms. Send it faster.`
  }
}
