import { type Redis, RedisError, type Reply } from "../../src/services/Redis.ts"

type Operation = RedisError["operation"]

/** Temporary error kinds: nothing was written, and the same command may succeed later. */
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

export const refused = (operation: Operation, message: string): RedisError =>
  new RedisError({ operation, retryable: retryableKinds.has(kindOf(message)), cause: new Error(message) })

/** Redis 6 wraps the error of a command inside a script. */
const kindOf = (message: string): string =>
  /^ERR Error running script .* -([A-Z]+) /.exec(message)?.[1] ?? message.split(" ", 1)[0] ?? ""

/** Keeps only the text of the cause: a driver's error contains the command, and for AUTH the password. */
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
