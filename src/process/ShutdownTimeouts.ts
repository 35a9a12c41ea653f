/**
 * The longest time of each step that follows the drain of a process, in seconds. The steps follow one another, so
 * whoever stops a process must give it the sum beside `GATEWAY_DRAIN_DELAY_SECONDS` and `GATEWAY_DRAIN_SECONDS`.
 */
export const shutdownSeconds = {
  /** Ended requests return their reservations. */
  settlement: 20,
  /** Usage records in memory reach Redis. */
  usageLog: 5,
  /** Usage records in Redis reach the database. */
  usageWriter: 5,
  controlListener: 5,
  upstreamUiListener: 5,
  /** The last traces, logs and metrics are exported. */
  telemetry: 3
} as const
