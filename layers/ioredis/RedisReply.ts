import { type Redis, RedisError, type Reply } from "../../src/services/Redis.ts"

type Operation = RedisError["operation"]

/**
 * Refusals that say "not now": nothing was written, and the same command may succeed later. Memory (`OOM`), disk
 * (`MISCONF`) and replicas (`NOREPLICAS`) come back as a server does that was gone.
 */
const retryableKinds: ReadonlySet<string> = new Set([
  "LOADING",
  "BUSY",
  "MASTERDOWN",
  "READONLY",
  "TRYAGAIN",
  "CLUSTERDOWN",
  "OOM",
  "MISCONF",
  "NOREPLICAS"
])

/** Redis answered with an error: its first word is the kind (`ERR`, `WRONGTYPE`, …). */
export const refused = (operation: Operation, message: string): RedisError =>
  new RedisError({ operation, retryable: retryableKinds.has(kindOf(message)), cause: new Error(message) })

/** Redis 6 puts what a script's command was refused with behind words of its own. */
const kindOf = (message: string): string =>
  /^ERR Error running script .* -([A-Z]+) /.exec(message)?.[1] ?? message.split(" ", 1)[0] ?? ""

/** No answer. Takes the text of the cause alone: a driver's error carries the command, and so an AUTH its password. */
export const unanswered = (operation: Operation, why: string): RedisError =>
  new RedisError({ operation, retryable: true, cause: new Error(why) })

export const lagging = (): RedisError => unanswered("subscribe", "Messages were lost: the subscriber was too slow")

export const isReply = (value: unknown): value is Reply =>
  typeof value === "string" ||
  typeof value === "number" ||
  value === null ||
  (Array.isArray(value) && value.every(isReply))

export const keyOf =
  (prefix: string): Redis["Service"]["key"] =>
  (name) =>
    prefix + name
