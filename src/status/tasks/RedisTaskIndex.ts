import { Clock, Effect, Layer, Predicate } from "effect"
import { Redis, type Reply, type Script } from "../../services/Redis.ts"
import { defaultPrefix } from "../store/DefaultPrefix.ts"
import { type IndexedTask, merge, type TaskChange } from "./IndexedTask.ts"
import {
  exactUpTo,
  type Looked,
  type Progress,
  type TaskFilter,
  TaskIndex,
  TaskIndexError,
  type TaskPosition
} from "./TaskIndex.ts"

export interface Options {
  /** The prefix of the Redis keys. Default: `svc`. */
  readonly prefix?: string | undefined
  /** The maximum number of tasks. A task needs about 600 bytes. Default: 100,000. */
  readonly tasksAtMost?: number | undefined
  /** The maximum number of tasks that one list or count looks at. Default: 10,000. */
  readonly looksAtMost?: number | undefined
  /** The days that a task is kept after its latest status. Default: 30. */
  readonly keepDays?: number | undefined
}

/** Entries that are read at once. A larger number would keep Redis busy for longer. */
const chunkSize = 1_000
const maxConflicts = 20

/**
 * Keeps the index in Redis: a hash with the JSON of each task, and a sorted set of their ids by the time of the latest
 * status. A search reads the newest tasks and filters them here.
 */
export const make = Effect.fnUntraced(function* ({
  keepDays = 30,
  looksAtMost = 10_000,
  prefix = defaultPrefix,
  tasksAtMost = 100_000
}: Options = {}) {
  const redis = yield* Redis
  const key = (name: string) => redis.key(`${prefix}:{tasks}:${name}`)
  const [tasks, times, progressKey] = [key("tasks"), key("times"), key("progress")]

  const read = (ids: ReadonlyArray<string>) =>
    ids.length === 0
      ? Effect.succeed([])
      : Effect.map(redis.command("HMGET", tasks, ...ids), (reply) => (Array.isArray(reply) ? reply : []))

  /** Another writer may have changed a task since it was read. Such tasks are merged again. */
  const record = Effect.fnUntraced(function* (changes: ReadonlyArray<TaskChange>, progress?: Progress) {
    let open = changes
    for (let round = 0; open.length > 0; round++) {
      if (round === maxConflicts) {
        return yield* Effect.die(new Error("Other writers change the same tasks of the index all the time."))
      }
      const stored = yield* read(open.map(({ task }) => task.task_id))
      const writes = open.flatMap((change, at) => {
        const before = stored[at] ?? null
        const merged = merge(before === null ? undefined : decodeStored(String(before)), change)
        return [
          change.task.task_id,
          before === null ? "" : String(before),
          encodeStored(merged),
          merged.task.last_micros
        ]
      })
      const conflicts = new Set(yield* redis.run(writeTasks, [tasks, times], [tasksAtMost, ...writes]))
      open = open.filter(({ task }) => conflicts.has(task.task_id))
    }
    if (progress !== undefined) yield* redis.command("HSET", progressKey, progress.source, progress.position)
  })

  /** Reads tasks, newest first, until `visit` returns false or the bound is reached. */
  const walk = Effect.fnUntraced(function* (
    { since, until }: TaskFilter,
    after: TaskPosition | undefined,
    visit: (found: TaskChange) => boolean
  ) {
    let last: TaskPosition | undefined
    let looked = 0
    const upper = Math.min(until === undefined ? Infinity : until - 1, after?.micros ?? Infinity)
    const [from, to] = [Number.isFinite(upper) ? upper : "+inf", since ?? "-inf"]
    for (let offset = 0; ; offset += chunkSize) {
      const ids = texts(yield* redis.command("ZREVRANGEBYSCORE", times, from, to, "LIMIT", offset, chunkSize))
      const entries = yield* read(ids)
      for (const entry of entries) {
        const stored = entry === null ? undefined : decodeStored(String(entry))
        if (stored === undefined || (after !== undefined && !isBefore(stored.task, after))) continue
        if (looked === looksAtMost) return { complete: false, last }
        looked++
        last = { micros: stored.task.last_micros, id: stored.task.task_id }
        if (!visit(stored)) return { complete: false, last }
      }
      if (ids.length < chunkSize) return { complete: true, last }
    }
  })

  const lookedOf = ({
    complete,
    last
  }: {
    readonly complete: boolean
    readonly last: TaskPosition | undefined
  }): Looked => ({
    complete,
    backTo: last?.micros
  })

  const list = Effect.fnUntraced(function* (
    filter: TaskFilter,
    { after, limit }: { readonly limit: number; readonly after?: TaskPosition | undefined }
  ) {
    const matches = matcherOf(filter)
    const found: Array<IndexedTask> = []
    const walked = yield* walk(filter, after, (stored) => {
      if (matches(stored)) found.push(stored.task)
      return found.length <= limit
    })
    const page = found.slice(0, limit)
    const last = page.at(-1)
    const more = found.length > limit && last !== undefined
    const next = more ? { micros: last.last_micros, id: last.task_id } : walked.complete ? undefined : walked.last
    return { tasks: page, next, looked: lookedOf(more ? { complete: false, last: next } : walked) }
  })

  const counts = Effect.fnUntraced(function* (filter: TaskFilter) {
    const matches = matcherOf(filter)
    const found = new Map<string, number>()
    const walked = yield* walk(filter, undefined, (stored) => {
      const { status } = stored.task
      if (matches(stored)) found.set(status, (found.get(status) ?? 0) + 1)
      return true
    })
    return {
      counts: [...found]
        .map(([status, count]) => ({
          status,
          count: Math.min(count, exactUpTo),
          at_least: !walked.complete || count > exactUpTo
        }))
        .toSorted((one, other) => (one.status < other.status ? -1 : 1)),
      looked: lookedOf(walked)
    }
  })

  return TaskIndex.of({
    kept: { store: "redis", looksAtMost, tasksAtMost, days: keepDays },
    record: (changes, progress) => orIndexError(record(changes, progress)),
    progress: (source) =>
      orIndexError(
        Effect.map(redis.command("HGET", progressKey, source), (reply) => (reply === null ? undefined : String(reply)))
      ),
    get: (taskId) =>
      orIndexError(
        Effect.map(redis.command("HGET", tasks, taskId), (reply) =>
          reply === null ? undefined : decodeStored(String(reply))?.task
        )
      ),
    list: (filter, page) => orIndexError(list(filter, page)),
    counts: (filter) => orIndexError(counts(filter)),
    trim: orIndexError(
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        redis.run(removeOlder, [tasks, times], [(now - keepDays * 86_400_000) * 1_000])
      )
    )
  })
})

export const layer = (options?: Options): Layer.Layer<TaskIndex, never, Redis> => Layer.effect(TaskIndex, make(options))

const orIndexError = <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, TaskIndexError, R> =>
  Effect.mapError(work, (cause) => new TaskIndexError({ cause }))

const isBefore = ({ last_micros, task_id }: IndexedTask, after: TaskPosition): boolean =>
  last_micros < after.micros ||
  (last_micros === after.micros && Buffer.compare(Buffer.from(task_id), Buffer.from(after.id)) < 0)

const matcherOf = ({ attributes = {}, ended, q, ...equal }: TaskFilter) => {
  const part = q?.toLowerCase()
  const wanted = (["parent_id", "error_class", "task_type", "status", "worker", "queue"] as const).flatMap((name) => {
    const value = equal[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const wantedAttributes = Object.entries(attributes)
  return ({ isTerminal, task }: TaskChange): boolean =>
    (ended === undefined || isTerminal === ended) &&
    wanted.every(([name, value]) => task[name] === value) &&
    wantedAttributes.every(([name, value]) => task.attributes[name] === value) &&
    (part === undefined ||
      `${task.task_id} ${task.message ?? ""} ${task.error_class ?? ""}`.toLowerCase().includes(part))
}

/** A search reads thousands of entries, and a schema would take most of its time. Only this program writes entries. */
const decodeStored = (text: string): TaskChange | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return isChange(value) ? value : undefined
  } catch {
    return undefined
  }
}

const isChange = (value: unknown): value is TaskChange =>
  Predicate.hasProperty(value, "task") &&
  Predicate.hasProperty(value.task, "task_id") &&
  typeof value.task.task_id === "string" &&
  Predicate.hasProperty(value.task, "last_micros") &&
  typeof value.task.last_micros === "number" &&
  Predicate.hasProperty(value.task, "attributes") &&
  typeof value.task.attributes === "object"

const encodeStored = (change: TaskChange): string => JSON.stringify(change)

const texts = (reply: Reply): ReadonlyArray<string> => (Array.isArray(reply) ? reply.map(String) : [])

/**
 * KEYS: tasks, times. ARGV: the maximum number of tasks, then for each task its id, the expected entry or an empty
 * string, the new entry, and its time. Returns the ids of tasks whose entry is not the expected one.
 */
const writeTasks: Script<ReadonlyArray<string>> = {
  name: "write-indexed-tasks",
  lua: `
local conflicts = {}
for at = 2, #ARGV, 4 do
  local id, expected, entry, time = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  if (redis.call('HGET', KEYS[1], id) or '') == expected then
    redis.call('HSET', KEYS[1], id, entry)
    redis.call('ZADD', KEYS[2], time, id)
  else
    conflicts[#conflicts + 1] = id
  end
end
local surplus = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[1])
if surplus > 0 then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '+inf', 'LIMIT', 0, surplus)) do
    redis.call('HDEL', KEYS[1], id)
    redis.call('ZREM', KEYS[2], id)
  end
end
return conflicts`,
  step: (call, [tasks = "", times = ""], [most = "", ...writes]) => {
    const conflicts: Array<string> = []
    for (let at = 0; at + 3 < writes.length; at += 4) {
      const [id = "", expected = "", entry = "", time = ""] = writes.slice(at, at + 4)
      if ((call("HGET", tasks, id) ?? "") === expected) {
        call("HSET", tasks, id, entry)
        call("ZADD", times, time, id)
      } else conflicts.push(id)
    }
    const surplus = Number(call("ZCARD", times)) - Number(most)
    if (surplus > 0) {
      for (const id of texts(call("ZRANGEBYSCORE", times, "-inf", "+inf", "LIMIT", 0, surplus))) {
        call("HDEL", tasks, id)
        call("ZREM", times, id)
      }
    }
    return conflicts
  },
  decode: texts
}

const removedAtOnce = 5_000

/** KEYS: tasks, times. ARGV: a time. Removes tasks before that time, at most 5,000. Returns their number. */
const removeOlder: Script<number> = {
  name: "remove-indexed-tasks",
  lua: `
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. ARGV[1], 'LIMIT', 0, ${removedAtOnce})
for _, id in ipairs(old) do
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
end
return #old`,
  step: (call, [tasks = "", times = ""], [before = ""]) => {
    const old = texts(call("ZRANGEBYSCORE", times, "-inf", `(${before}`, "LIMIT", 0, removedAtOnce))
    for (const id of old) {
      call("HDEL", tasks, id)
      call("ZREM", times, id)
    }
    return old.length
  },
  decode: Number
}
