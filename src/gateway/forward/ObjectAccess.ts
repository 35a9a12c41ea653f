import { Exit, Result } from "effect"
import type { RoutedRequest } from "../../policy/Routing.ts"
import {
  type CreationRequest,
  filteredList,
  listedIds,
  maxReferences,
  type ObjectUse,
  objectSearchOf,
  type UpstreamObject
} from "../../policy/routes/UpstreamObjects.ts"
import { GatewayError } from "../GatewayError.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import { CreatedObjects } from "./CreatedObjects.ts"
import type { ObjectOwners } from "./ObjectOwners.ts"

/** Whose objects are asked for, and by whom. */
export interface ObjectAccess {
  readonly owners: ObjectOwners["Service"]
  readonly target: Pick<RoutedRequest, "config" | "objects" | "provider">
  readonly key: KeyRecord
}

/** The objects that a request uses: the one of its path, and those that its body refers to. */
export const objectsUsed = (
  use: ObjectUse,
  references: ReadonlyArray<UpstreamObject>
): ReadonlyArray<UpstreamObject> => (use._tag === "Use" ? [{ kind: use.kind, id: use.id }, ...references] : references)

/** Why the key may not use all of `objects`, told to `done` once. */
export const checkAccess = (
  { key, owners, target: { config, objects: use, provider } }: ObjectAccess,
  objects: ReadonlyArray<UpstreamObject>,
  done: (refusal: GatewayError | undefined) => void
) => {
  if (config.ownership === "shared") return done(undefined)
  if (use._tag === "Unclear") return done(ambiguousPath)
  if (objects.length > maxReferences) return done(tooManyReferences)
  if (objects.length === 0) return done(undefined)
  owners.usableUnsafe(provider, objects, key, config.ownership, (exit) => {
    if (Exit.isFailure(exit)) return done(ownersUnavailable)
    const foreign = objects.find((_, index) => exit.value[index] !== true)
    done(foreign && notFound(foreign))
  })
}

/** Leaves of a list what the key may use. `undefined`: the answer is no list, or every key may see all of it. */
export const listFilter = ({ key, owners, target: { config, objects: use, provider } }: ObjectAccess) => {
  if (use._tag !== "List" || config.ownership === "shared") return undefined
  const { kind } = use
  const { ownership } = config
  return (text: string, done: (judged: Result.Result<string, GatewayError>) => void) => {
    const ids = listedIds(text)
    if (ids === undefined) return done(isError(text) ? Result.succeed(text) : Result.fail(unreadableList))
    const objects = ids.map((id) => ({ kind, id }))
    owners.usableUnsafe(provider, objects, key, ownership, (exit) =>
      done(Exit.isFailure(exit) ? Result.fail(ownersUnavailable) : Result.succeed(filteredList(text, exit.value)))
    )
  }
}

/**
 * Reads of the answer what it makes known; `undefined` where it makes nothing known. Of a request whose body nobody
 * read, `making` is what most say.
 */
export const observerFor = (
  use: ObjectUse,
  method: string,
  found: (objects: ReadonlyArray<UpstreamObject>) => void,
  making: CreationRequest = unknownCreation
): CreatedObjects | undefined => {
  const sought = objectSearchOf(use, method, making)
  return sought && new CreatedObjects(sought, found)
}

const unknownCreation: CreationRequest = { stored: undefined, tools: true, audio: true, itemIds: undefined }

/** An upstream's refusal in JSON. */
const isError = (text: string): boolean => {
  try {
    const answer: unknown = JSON.parse(text)
    return typeof answer === "object" && answer !== null && "error" in answer && !("data" in answer)
  } catch {
    return false
  }
}

const notFound = ({ id, kind }: UpstreamObject): GatewayError =>
  new GatewayError({
    code: "object_not_found",
    message: `There is no ${kind.replaceAll("_", " ")} "${id.slice(0, 128).replace(/[^\x20-\x7e]/g, "?")}" that this key may use.`
  })

const ambiguousPath = new GatewayError({
  code: "unsupported_route",
  message:
    "This path cannot be told from that of another object. Write it without escapes, and with one of the methods of its API."
})

const tooManyReferences = new GatewayError({
  code: "invalid_request_body",
  message: `The body refers to more than ${maxReferences} objects of the upstream. Send several requests.`
})

const ownersUnavailable = new GatewayError({
  code: "control_state_unavailable",
  message: "The gateway cannot look up whose the object is at the moment. Try again shortly.",
  retryAfterSeconds: 1
})

/** A list that cannot be filtered is shown to nobody. */
export const unreadableList = new GatewayError({
  code: "upstream_connection",
  message:
    "The upstream's answer is no list in JSON, so the gateway cannot leave out what belongs to other projects, and it does not pass."
})
