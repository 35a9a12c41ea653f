import { type Redis, RedisError, type Reply } from "../../src/services/Redis.ts"

type Operation = RedisError["operation"]

/** After these errors Redis has written nothing, so a retry is safe and may succeed. */
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

/** Redis 6 wraps the error of a command in a script into a longer message. */
const kindOf = (message: string): string =>
  /^ERR Error running script .* -([A-Z]+) /.exec(message)?.[1] ?? message.split(" ", 1)[0] ?? ""

/** Takes only text. The driver's error contains the command, which may be AUTH with the password. */
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
