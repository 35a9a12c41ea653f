import { request } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as TemporaryData from "../TemporaryData.ts"
import { hello } from "./Calls.ts"

/** With `SVC_TEST_KILL_ROUNDS` there are more. */
const rounds = Number(process.env["SVC_TEST_KILL_ROUNDS"] ?? 3)

const clients = 8

/** What clients of the process were told, over all rounds. */
interface Told {
  /** Requests whose answers were whole. */
  readonly requests: Set<string>
  readonly projects: Set<string>
  /** Letters that were listed as dead letters. */
  readonly letters: Set<string>
  /** Pages of books that were published: the first waits in a retry queue, the second goes to another worker. */
  readonly pages: Set<string>
}

/** One chat. `true`: the end of the answer has arrived. */
const chat = (gateway: RunningGateway.RunningGateway, key: string, id: string, stream: boolean) =>
  new Promise<boolean>((resolve) => {
    const asked = request(`${gateway.proxy}/v1/chat/completions`, {
      method: "POST",
      agent: false,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "x-request-id": id }
    })
    asked.on("error", () => resolve(false))
    asked.on("response", (response) => {
      response.on("error", () => resolve(false))
      response.on("close", () => resolve(false))
      response.on("end", () => resolve(response.complete && response.statusCode === 200))
      response.resume()
    })
    asked.end(JSON.stringify({ model: "m", messages: hello, stream }))
  })

const Named = Schema.Struct({ id: Schema.String, name: Schema.String })
const named = Schema.decodeUnknownPromise(Named)

/** Chats and changes until the process is killed, at a moment that nobody chose. */
const loadUntilKilled = async (
  gateway: RunningGateway.RunningGateway,
  keys: ReadonlyArray<{ readonly raw: string }>,
  told: Told,
  round: number
) => {
  let killed = false
  let [answers, changes] = [0, 0]
  const killSoon = () => {
    if (killed || answers < 2 * clients || changes < 3) return
    killed = true
    setTimeout(() => gateway.signal("SIGKILL"), Math.random() * 300)
  }
  const gone = () => gateway.exited.then(() => true)
  const chatting = Array.from({ length: clients }, async (_, client) => {
    for (let number = 0; ; number++) {
      const id = `${round}-${client}-${number}`
      if (!(await chat(gateway, keys[client % keys.length]?.raw ?? "", id, client % 4 > 1))) break
      told.requests.add(id)
      answers++
      killSoon()
    }
    return gone()
  })
  const changing = async () => {
    for (let number = 0; ; number++) {
      const created = gateway.operate("POST", "/projects", { name: `${round}-${number}` }).then(named)
      const project = await created.catch(() => undefined)
      if (project === undefined) break
      told.projects.add(project.id)
      changes++
      killSoon()
    }
    return gone()
  }
  await Promise.all([...chatting, changing()])
}

const decode =
  <A>(schema: Schema.ConstraintDecoder<A>) =>
  (value: unknown) =>
    Effect.orDie(Schema.decodeUnknownEffect(schema)(value))

const operate = <A>(gateway: RunningGateway.RunningGateway, path: string, schema: Schema.ConstraintDecoder<A>) =>
  Effect.flatMap(
    Effect.promise(() => gateway.operate("GET", path)),
    decode(schema)
  )

const ask = <A>(url: string, schema: Schema.ConstraintDecoder<A>) =>
  Effect.flatMap(
    Effect.promise(async (): Promise<unknown> => (await fetch(url)).json()),
    decode(schema)
  )

const UsagePage = Schema.Struct({
  rows: Schema.Array(Schema.Struct({ request_id: Schema.String })),
  has_more: Schema.Boolean
})

/** The request ids of all records of usage. */
const recorded = Effect.fnUntraced(function* (gateway: RunningGateway.RunningGateway) {
  const ids: Array<string> = []
  for (;;) {
    const page = yield* operate(gateway, `/usage/events?limit=500&offset=${ids.length}`, UsagePage)
    ids.push(...page.rows.map(({ request_id }) => request_id))
    if (!page.has_more) return ids
  }
})

const Keys = Schema.Array(
  Schema.Struct({ id: Schema.String, policy: Schema.Struct({ daily_budget_usd: Schema.NullOr(Schema.Finite) }) })
)
const Targets = Schema.Array(Schema.Struct({ target_id: Schema.String }))
const DeadLetters = Schema.Struct({ items: Schema.Array(Schema.Struct({ dlq_id: Schema.String })) })
/** Without an event, no status of the task is known yet. */
const Latest = Schema.Struct({ event: Schema.optionalKey(Schema.Struct({ status: Schema.String })) })
const Queues = Schema.Struct({ queues: Schema.Array(Schema.Struct({ message_count: Schema.NullOr(Schema.Int) })) })

const deadLettersOf = (gateway: RunningGateway.RunningGateway, letter: string) =>
  Effect.map(ask(`${gateway.status}/dlq/messages?task_id=${letter}.1`, DeadLetters), ({ items }) => items.length)

const missing = (told: ReadonlySet<string>, found: ReadonlyArray<string>): ReadonlyArray<string> => {
  const present = new Set(found)
  return Array.from(told).filter((one) => !present.has(one))
}

/** Everything that was told in earlier rounds is there, once. */
const check = Effect.fnUntraced(function* (
  gateway: RunningGateway.RunningGateway,
  keys: ReadonlyArray<{ readonly id: string }>,
  told: Told
) {
  const found = yield* operate(gateway, "/keys", Keys)
  const budgets = keys.map((key) => found.find(({ id }) => id === key.id)?.policy.daily_budget_usd)
  assert.deepStrictEqual(budgets, keys.length === 0 ? [] : [null, 5])
  const ids = yield* eventually(recorded(gateway), (ids) => missing(told.requests, ids).length === 0, "20 seconds")
  assert.strictEqual(new Set(ids).size, ids.length)

  const projects = yield* operate(gateway, "/projects", Schema.Array(Named))
  assert.deepStrictEqual(
    missing(
      told.projects,
      projects.map(({ id }) => id)
    ),
    []
  )
  const audited = yield* operate(gateway, "/audit-events?limit=500", Targets)
  const latest = new Set(Array.from(told.projects).slice(-400))
  assert.deepStrictEqual(
    missing(
      latest,
      audited.map(({ target_id }) => target_id)
    ),
    []
  )
  const verified = yield* operate(gateway, "/audit-events/verification", Schema.Struct({ intact: Schema.Boolean }))
  assert.isTrue(verified.intact)

  for (const letter of told.letters) assert.strictEqual(yield* deadLettersOf(gateway, letter), 1)
  const { queues } = yield* ask(`${gateway.status}/broker/dlq/queues`, Queues)
  assert.isAtLeast(queues[0]?.message_count ?? 0, told.letters.size)
  // The example collects the pages of a book in memory only, so the book itself may stay unfinished.
  for (const page of told.pages) {
    yield* eventually(ask(`${gateway.status}/status/${page}`, Latest), ({ event }) => event?.status === "completed")
  }
})

/** The letter and the book that the example publishes at its start. The letter has become a dead letter. */
const exampleTasks = Effect.fnUntraced(function* (gateway: RunningGateway.RunningGateway, told: Told) {
  const output = yield* eventually(
    Effect.sync(() => gateway.output()),
    (output) => /publishes letter-\d+/.test(output) && /publishes book-\d+/.test(output)
  )
  const [letter = ""] = /letter-\d+/.exec(output) ?? []
  yield* eventually(deadLettersOf(gateway, letter), (count) => count === 1)
  told.letters.add(letter)
  const [book = ""] = /book-\d+/.exec(output) ?? []
  for (const page of [1, 2, 3]) told.pages.add(`${book}.${page}`)
})

describe("kill -9 with a data directory", () => {
  it.live(
    "loses nothing that anybody was told, round after round",
    () =>
      Effect.gen(function* () {
        const path = yield* TemporaryData.path
        const options = { adminToken: RunningGateway.newAdminToken(), flags: ["--data", path], example: true }
        const told: Told = { requests: new Set(), projects: new Set(), letters: new Set(), pages: new Set() }
        let keys: ReadonlyArray<{ readonly raw: string; readonly id: string }> = []
        for (let round = 0; round < rounds; round++) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const gateway = yield* RunningGateway.start(options)
              if (round === 0) {
                keys = yield* Effect.promise(() =>
                  Promise.all(
                    [{}, { policy: { daily_budget_usd: 5 } }].map((body) => RunningGateway.createKey(gateway, body))
                  )
                )
              }
              yield* check(gateway, keys, told)
              yield* exampleTasks(gateway, told)
              yield* Effect.promise(() => loadUntilKilled(gateway, keys, told, round))
              assert.strictEqual(yield* Effect.promise(() => gateway.exited), "SIGKILL", gateway.output())
            })
          )
        }
        yield* check(yield* RunningGateway.start(options), keys, told)
        const { letters, pages, projects, requests } = told
        yield* Effect.logInfo(
          `${rounds} kills: ${requests.size} requests, ${projects.size} changes, ${letters.size} dead letters and ${pages.size} tasks were all there`
        )
      }),
    90_000 + rounds * 60_000
  )
})
