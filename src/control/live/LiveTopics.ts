import { Effect } from "effect"
import { type Topic, topics } from "../../live/Topics.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { allows, type Scope } from "../api/schema/Security.ts"

const ofTasks: ReadonlyArray<Scope> = ["tasks:read", "tasks:operate"]

/** One of the scopes is enough to see a topic. */
const scopesOf: Readonly<Record<Topic, ReadonlyArray<Scope>>> = {
  requests: ["usage:read"],
  limits: ["usage:read"],
  configuration: ["audit:read"],
  tasks: ofTasks,
  dead_letters: ofTasks,
  queues: ofTasks,
  workers: ofTasks
}

export const mayFollow = (scopes: ReadonlyArray<Scope>, topic: Topic): boolean => allows(scopes, scopesOf[topic])

/** Returns the topics of a list such as `requests,tasks`. Without a list, these are all that the scopes show. */
export const read = (
  list: string | undefined,
  scopes: ReadonlyArray<Scope>
): Effect.Effect<ReadonlyArray<Topic>, Refused<"invalid_request" | "insufficient_operator_scope">> => {
  if (list === undefined) return Effect.succeed(topics.filter((topic) => mayFollow(scopes, topic)))
  const names = new Set(list.split(",").map((name) => name.trim()))
  const wanted = topics.filter((topic) => names.delete(topic))
  if (names.size > 0) return Effect.fail(unknownTopic)
  const refused = wanted.find((topic) => !mayFollow(scopes, topic))
  return refused === undefined ? Effect.succeed(wanted) : Effect.fail(scopeMissing(refused))
}

export const maxListLength = 256

const unknownTopic = new ControlError(
  "invalid_request",
  `topics: must be a list such as "requests,tasks". The topics are ${topics.join(", ")}.`,
  { param: "topics" }
)

const scopeMissing = (topic: Topic): Refused<"insufficient_operator_scope"> =>
  new ControlError(
    "insufficient_operator_scope",
    `The topic ${topic} needs the scope ${scopesOf[topic].join(" or ")}, which the operator token lacks. Leave the topic out, or use a token with that scope.`,
    { param: "topics" }
  )
