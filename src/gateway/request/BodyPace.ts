/**
 * The minimum pace at which a client must send its body. Otherwise a client that sends one byte a minute would hold
 * memory until the route's timeout.
 */
export interface BodyPace {
  readonly idleMs: number
  /** The average rate is not checked during this time, because slow connections start late. */
  readonly graceMs: number
  readonly bytesPerSecond: number
}

/** Suits mobile clients. A phone may be offline for seconds, and even the slowest networks reach 4 KiB a second. */
export const defaultPace: BodyPace = { idleMs: 15_000, graceMs: 15_000, bytesPerSecond: 1_024 }

export type TimeoutCause = "deadline" | "idle" | "rate"

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

export const timeoutMessage = (
  { bytesPerSecond, graceMs, idleMs }: BodyPace,
  by: TimeoutCause,
  withinMs: number
): string => {
  switch (by) {
    case "deadline":
      return `The request body did not arrive within ${withinMs} ms (timeout_ms of the route). Send it faster, or ask an operator to raise the limit.`
    case "idle":
      return `The request body paused for ${idleMs} ms, which is the limit. Send it without long pauses.`
    case "rate":
      return `The request body arrived at less than ${bytesPerSecond} bytes a second on average after the first ${graceMs} ms. Send it faster.`
  }
}
