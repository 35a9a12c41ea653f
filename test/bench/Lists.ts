import { Effect, Layer, Redacted } from "effect"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import * as DeadLetterStore from "../../src/status/dead-letters/DeadLetterStore.ts"
import * as RedisDLQStore from "../../src/status/dead-letters/RedisDLQStore.ts"
import { deadLetter } from "../status/DeadLetters.ts"
import { BenchFailed } from "./Child.ts"
import type { Upstream } from "./Entrants.ts"
import * as Footprint from "./Footprint.ts"
import * as Gateway from "./Gateway.ts"
import { number } from "./Markdown.ts"
import * as Questions from "./Questions.ts"
import { models, path } from "./Scenario.ts"
import type { Store } from "./Store.ts"

export interface Lists {
  readonly answered: ReadonlyArray<Questions.Answered>
  /** MiB of the process that answers. */
  readonly memory: { readonly before: number; readonly peak: number }
}

const keys = 100_000
const projects = 1_000
const teams = 200
const usedKeys = 1_000
const deadLetters = 100_000
const tasks = 1_000_000

/** The lists and searches of a large installation: keys, limits, dead letters and tasks. */
export const run = Effect.fnUntraced(function* ({ origin }: Upstream, say: (line: string) => void) {
  const installation = yield* Gateway.makeInstallation(origin)
  const { store } = installation
  const process = yield* Gateway.startProcess("lists", installation, ["all", "--example"])
  const { read } = Gateway.callsOf("lists", process.control, installation.token)
  const before = Footprint.peakMiB(process.child.pid)

  yield* fill(store, process.origin, say)

  const projectId = yield* store.text("SELECT id FROM projects ORDER BY name LIMIT 1")
  const keyId = yield* store.text(`SELECT id FROM api_keys WHERE key_prefix = '${rawKey(1).slice(0, 16)}' LIMIT 1`)
  const answered = yield* Questions.ask(read, questionsOf(projectId, keyId), say)
  const lists: Lists = { answered, memory: { before, peak: Footprint.peakMiB(process.child.pid) } }
  return lists
})

/** Makes a large installation of the one whose program answers at `proxy`. */
export const fill = Effect.fnUntraced(function* (store: Store, proxy: string, say: (line: string) => void) {
  say(`${keys} keys`)
  yield* fillKeys(store)
  say(`a request of each of ${usedKeys} keys`)
  yield* Effect.forEach(
    Array.from({ length: usedKeys }, (_, n) => n + 1),
    (n) => use(proxy, n),
    { concurrency: 16, discard: true }
  )
  say(`${deadLetters} dead letters`)
  yield* fillDeadLetters(store)
  say(`${tasks} tasks`)
  yield* fillTasks(store)
})

export const contents =
  `${number(keys, 0)} keys in ${number(projects, 0)} projects and ${number(teams, 0)} teams, of which ${number(usedKeys, 0)} were just used; ` +
  `${number(deadLetters, 0)} dead letters; ${number(tasks, 0)} tasks.`

const questionsOf = (projectId: string, keyId: string): ReadonlyArray<readonly [name: string, path: string]> => [
  ["keys, first page", "/admin/keys"],
  ["keys by a part of the name and the owner", "/admin/keys?q=laptop%20person171"],
  ["keys by a word that no key has", "/admin/keys?q=nobody"],
  ["keys by tag", "/admin/keys?tag=tag7"],
  ["keys by team", "/admin/keys?team_id=team%203"],
  ["keys by project", `/admin/keys?project_id=${projectId}`],
  ["disabled keys", "/admin/keys?state=disabled"],
  ["keys by spend", "/admin/keys?sort_by=spend"],
  ["keys by last use", "/admin/keys?sort_by=last_used_at"],
  ["keys near a limit", "/admin/keys?near_limit=true"],
  ["projects by a part of the name", "/admin/projects?q=project%209"],
  ["limits now, of all keys", "/admin/limits/state?scope=all"],
  ["limits now, of a team", "/admin/limits/state?scope=team&id=team%203"],
  ["limits now, of a project", `/admin/limits/state?scope=project&id=${projectId}`],
  ["limits now, of a key", `/admin/limits/state?scope=key&id=${keyId}`],
  ["whatever has an id", `/find?q=${rawKey(1).slice(0, 16)}`],
  ["dead letters, first page", "/tasks/dlq/messages?limit=100"],
  ["dead letters by exception", "/tasks/dlq/messages?exception_type=Error3&limit=100"],
  ["dead letters by queue and state", "/tasks/dlq/messages?queue_name=queue-3.dlq&state=dead_lettered&limit=100"],
  ["dead letters in a state that none has", "/tasks/dlq/messages?state=replayed&exception_type=Error3&limit=100"],
  ["groups of dead letters", "/tasks/dlq/groups"],
  ["tasks, first page", "/tasks/tasks?limit=100"],
  ["tasks by status and type", "/tasks/tasks?status=failed&type=type-3&limit=100"],
  ["tasks by a text that no task has", "/tasks/tasks?q=whale&limit=100"],
  ["counts of tasks by status", "/tasks/tasks/counts"],
  ["counts of tasks by status, of one type", "/tasks/tasks/counts?type=type-3"]
]

const rawKey = (n: number): string => `rk_live_${String(n).padStart(8, "0")}_of_the_bench`

const use = (gateway: string, n: number) =>
  Effect.tryPromise({
    try: async () => {
      const response = await fetch(gateway + path, {
        method: "POST",
        headers: { authorization: `Bearer ${rawKey(n)}`, "content-type": "application/json" },
        body: JSON.stringify({ model: models.instant, messages: [{ role: "user", content: "Hello" }] })
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`${response.status} ${text}`)
    },
    catch: (cause) => new BenchFailed({ message: `a request of key ${n}: ${String(cause)}` })
  })

const policy = JSON.stringify({
  rpm_limit: 600,
  tpm_limit: 1_000_000,
  daily_budget_usd: 5,
  monthly_budget_usd: 100,
  unpriced_models: "flat"
})

const fillKeys = Effect.fnUntraced(function* ({ run }: Store) {
  yield* run(
    `INSERT INTO projects (name, tags) SELECT 'project ' || i, ARRAY['tag ' || i % 50] FROM generate_series(1, ${projects}) AS i`
  )
  yield* run(`
    INSERT INTO api_keys (name, owner_email, tags, owner_type, project_id, team_id, key_prefix, key_hash, policy, created_at,
      last_used_at, expires_at, disabled)
    SELECT 'laptop ' || i, 'person' || i % 5000 || '@example.com', ARRAY['tag' || i % 50], 'project', p.id, 'team ' || i % ${teams},
      left(raw, 16), sha256(convert_to(raw, 'UTF8')), '${policy}', now() - i * interval '1 minute',
      CASE WHEN i % 3 > 0 THEN now() - i * interval '1 second' END, CASE WHEN i % 4 = 0 THEN now() + i * interval '1 hour' END, i % 100 = 99
    FROM (SELECT i, 'rk_live_' || lpad(i::text, 8, '0') || '_of_the_bench' AS raw FROM generate_series(1, ${keys}) AS i) AS given
    JOIN (SELECT id, row_number() OVER () AS n FROM projects) AS p ON p.n = i % ${projects} + 1`)
  yield* run("UPDATE key_spend SET month = date_trunc('month', now()), cost_nanos = random() * 1e12")
  yield* run("UPDATE api_keys SET disabled = false WHERE key_prefix <= 'rk_live_00001000'")
  yield* run("ANALYZE")
})

const fillDeadLetters = ({ redisPrefix, redisUrl }: Store) =>
  Effect.gen(function* () {
    const letters = yield* DeadLetterStore.DeadLetterStore
    yield* Effect.forEach(
      Array.from({ length: deadLetters }, (_, n) => n),
      (n) =>
        letters.record(
          deadLetter(n, {
            queue_name: `queue-${n % 20}.dlq`,
            exception_type: `Error${n % 50}`,
            dead_lettered_at: new Date(Date.now() - n * 1_000).toISOString()
          })
        ),
      { concurrency: 64, discard: true }
    )
  }).pipe(
    Effect.provide(
      RedisDLQStore.layer().pipe(
        Layer.provide(RedisIoredis.layer({ url: Redacted.make(redisUrl), prefix: redisPrefix }))
      )
    ),
    Effect.mapError((error) => new BenchFailed({ message: String(error) }))
  )

const fillTasks = Effect.fnUntraced(function* ({ run }: Store) {
  const step = 100_000
  for (let from = 0; from < tasks; from += step) {
    yield* run(`INSERT INTO task_index
      SELECT 'task-' || md5(n::text), 'type-' || n % 20,
        CASE WHEN n % 50 = 0 THEN 'failed' WHEN n % 997 = 0 THEN 'processing' ELSE 'completed' END,
        at, at + n % 7 * 100000, n % 3, 'queue-' || n % 10, 'host-' || n % 40 || ':1',
        CASE WHEN n % 10 = 0 THEN 'parent-' || n / 1000 END, CASE WHEN n % 50 = 0 THEN 'Error' || n % 7 END,
        'Page ' || n || ' of the book is read', '{}', true, true
      FROM (SELECT n, (extract(epoch FROM now()) * 1000000)::bigint - (${tasks} - n) * 1000000 AS at
        FROM generate_series(${from}::bigint, ${from + step - 1}::bigint) AS n) AS given`)
  }
  yield* run("VACUUM (ANALYZE) task_index")
})

export const report = ({ answered, memory }: Lists, machine: string): string =>
  [
    machine,
    "",
    contents,
    "",
    ...Questions.table(answered),
    "",
    `Medians of ${Questions.tries}, in brackets the least and the most. Resident memory of the process: ${number(memory.before, 0)} MiB ` +
      `before, at most ${number(memory.peak, 0)} MiB.`
  ].join("\n")
