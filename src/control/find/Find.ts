import { Context, Effect, Layer } from "effect"
import { Database } from "../../services/Database.ts"
import { keyPrefix, operatorTokenPrefix } from "../../state/Secret.ts"
import { FindableKind, type FindResult, type Found, type Searched } from "../api/FindApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { allows, Operator, type Scope } from "../api/schema/Security.ts"
import { type FindSource, TaskSources } from "./FindSource.ts"
import * as StoredSources from "./StoredSources.ts"

/** Finds things of any kind by their exact ids, and says which stores were searched. */
export class Find extends Context.Service<
  Find,
  { readonly find: (id: string) => Effect.Effect<FindResult, Refused<"invalid_request">, Operator> }
>()("svc/control/Find") {
  static readonly layer = Layer.suspend(() => Layer.effect(Find, make))
}

interface Answer {
  readonly found: ReadonlyArray<Found>
  readonly searched: Searched
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const sources = [...StoredSources.make(sql), ...(yield* TaskSources)]
  const missing = FindableKind.literals.filter((kind) => !sources.some((source) => source.kind === kind))
  const notHere = missing.map((kind): Answer => notSearched(kind, "not_here", noTasks))
  return Find.of({
    find: Effect.fn("Find.find")(function* (id) {
      const { scopes } = yield* Operator
      if (isWholeSecret(id)) return yield* wholeSecret
      const answers = yield* Effect.forEach(sources, (source) => search(source, id, scopes), { concurrency: 4 })
      return {
        found: answers.flatMap(({ found }) => found),
        searched: [...answers, ...notHere].map(({ searched }) => searched)
      }
    })
  })
})

/** A store that fails does not hide what the others have. */
const search = (source: FindSource, id: string, scopes: ReadonlyArray<Scope>): Effect.Effect<Answer> => {
  const { kind } = source
  if (!allows(scopes, source.scopes)) {
    return Effect.succeed(notSearched(kind, "not_allowed", `The token lacks the scope ${source.scopes.join(" or ")}.`))
  }
  return Effect.all([source.find(id), source.since]).pipe(
    Effect.timeout("2 seconds"),
    Effect.map(
      ([found, since]): Answer => ({
        found: found.map((one) => ({ kind, ...one })),
        searched: { kind, state: "searched", since, detail: null }
      })
    ),
    Effect.catch((error) =>
      Effect.as(
        Effect.logWarning(`A search for a ${kind} failed`, error),
        notSearched(kind, "failed", "Its store did not respond. Try again in a moment.")
      )
    )
  )
}

const notSearched = (kind: FindableKind, state: Exclude<Searched["state"], "searched">, detail: string): Answer => ({
  found: [],
  searched: { kind, state, since: null, detail }
})

const noTasks = "This process has no tasks: start it with --tasks or --example."

/** Addresses are written to logs of proxies and histories of browsers, so secrets do not belong there. */
const isWholeSecret = (id: string): boolean =>
  [keyPrefix, operatorTokenPrefix].some((prefix) => id.startsWith(prefix)) && id.length > shownLength

const shownLength = 16

const wholeSecret = new ControlError(
  "invalid_request",
  `q contains a whole secret. Send only its first ${shownLength} characters, which lists show as its prefix.`,
  { param: "q" }
)
