import type { Reply } from "../../src/services/Redis.ts"
import type { Journal } from "../journal/Journal.ts"
import type { Keyspace, StoredKey } from "./Keyspace.ts"

type Command = readonly [name: string, ...args: ReadonlyArray<string>]

/** A key of a snapshot, or the commands that one command or script ran, with the time at which it ran. */
export type LogRecord =
  | readonly ["key", stored: StoredKey]
  | readonly ["run", now: number, commands: ReadonlyArray<Command>]

/** The checksum of a record shows that this program wrote it, so its kind is enough. */
export const isLogRecord = (value: unknown): value is LogRecord =>
  Array.isArray(value) && (value[0] === "key" || value[0] === "run")

/** Commands that change no key. A command that is missing here is only logged without need. */
const reads = new Set([
  ...["PING", "EXISTS", "TTL", "PTTL", "TYPE", "TIME", "INFO", "PUBLISH", "GET", "MGET", "HGET", "HMGET", "HGETALL"],
  ...["HKEYS", "HVALS", "HLEN", "LLEN", "LRANGE", "SMEMBERS", "SCARD", "ZSCORE", "ZCARD", "ZRANGEBYSCORE"],
  ...["ZREVRANGEBYSCORE", "XRANGE", "XREVRANGE", "XLEN"]
])

/** For these commands, the reply 0 means that nothing has changed. */
const removals = new Set(["DEL", "EXPIRE", "PEXPIRE", "HDEL", "SREM", "ZREM", "ZREMRANGEBYSCORE", "XDEL", "XTRIM"])

const hasEffect = (name: string, reply: Reply): boolean =>
  !reads.has(name) && reply !== null && !(reply === 0 && removals.has(name))

/**
 * Logs the commands that changed keys. A command depends only on the keys, its arguments and the time, so the same
 * commands at the same times build the same keys, also those with expiries or generated stream ids.
 */
export class CommandLog {
  readonly #journal: Journal<LogRecord>
  #commands: Array<Command> = []

  constructor(journal: Journal<LogRecord>) {
    this.#journal = journal
  }

  onCommand(name: string, args: ReadonlyArray<string>, reply: Reply): void {
    if (hasEffect(name, reply)) this.#commands.push([name, ...args])
  }

  /**
   * Runs one command or script, whose commands form one record, so that a crash loses all or none of them. If they
   * cannot be written, this throws `JournalFailure`, and nothing more runs before they are.
   */
  run<A>(now: number, work: () => A): A {
    this.#journal.flush()
    try {
      return work()
    } finally {
      if (this.#commands.length > 0) {
        this.#journal.append(["run", now, this.#commands])
        this.#commands = []
        this.#journal.flush()
      }
    }
  }
}

export const capture = (keys: Keyspace): Iterable<LogRecord> =>
  keys.capture().map((stored): LogRecord => ["key", stored])

export const replayInto =
  (keys: Keyspace, call: (command: Command) => void) =>
  (record: LogRecord): void => {
    if (record[0] === "key") {
      keys.restore(record[1])
      return
    }
    const [, now, commands] = record
    keys.advance(now)
    for (const command of commands) call(command)
  }
