import { Exit, Result } from "effect"
import type { RoutedRequest } from "../../../policy/Routing.ts"
import {
  type CreationRequest,
  filteredList,
  listedIds,
  maxReferences,
  type ObjectUse,
  objectSearchOf,
  type UpstreamObject
} from "../../../policy/routes/UpstreamObjects.ts"
import { GatewayError } from "../../GatewayError.ts"
import type { KeyRecord } from "../../snapshot/KeyRecord.ts"
import { CreatedObjects } from "./CreatedObjects.ts"
import type { ObjectOwners } from "./ObjectOwners.ts"

export interface ObjectAccess {
  readonly owners: ObjectOwners["Service"]
  readonly target: Pick<RoutedRequest, "config" | "objects" | "provider">
  readonly key: KeyRecord
}

/**
 * Calls `done` with the error, or with `undefined` if the key may use the object of the path and all objects that the
 * body refers to.
 */
export const checkAccess = (
  { key, owners, target: { config, objects: use, provider } }: ObjectAccess,
  references: ReadonlyArray<UpstreamObject>,
  done: (refusal: GatewayError | undefined) => void
) => {
  if (config.ownership === "shared") return done(undefined)
  if (use._tag === "Unclear") return done(ambiguousPath)
  const objects = use._tag === "Use" ? [{ kind: use.kind, id: use.id }, ...references] : references
  if (objects.length > maxReferences) return done(tooManyReferences)
  if (objects.length === 0) return done(undefined)
  owners.usableUnsafe(provider, objects, key, config.ownership, (exit) => {
    if (Exit.isFailure(exit)) return done(ownersUnavailable)
    const foreign = objects.find((_, index) => exit.value[index] !== true)
    done(foreign && notFound(foreign))
  })
}

/** Returns a function that removes objects that the key may not use from a list response. */
export const listFilter = ({ key, owners, target: { config, objects: use, provider } }: ObjectAccess) => {
  if (use._tag !== "List" || config.ownership === "shared") return undefined
  const { kind } = use
  const { ownership } = config
  return (text: string, done: (filtered: Result.Result<string, GatewayError>) => void) => {
    const ids = listedIds(text)
    if (ids === undefined) return done(isError(text) ? Result.succeed(text) : Result.fail(unreadableList))
    const objects = ids.map((id) => ({ kind, id }))
    owners.usableUnsafe(provider, objects, key, ownership, (exit) =>
      done(Exit.isFailure(exit) ? Result.fail(ownersUnavailable) : Result.succeed(filteredList(text, exit.value)))
    )
  }
}

/** If the request body was not parsed, the response is searched for all objects that it may have created. */
export const observerFor = (
  use: ObjectUse,
  method: string,
  found: (objects: ReadonlyArray<UpstreamObject>) => void,
  creation: CreationRequest = unknownCreation
): CreatedObjects | undefined => {
  const sought = objectSearchOf(use, method, creation)
  return sought && new CreatedObjects(sought, found)
}

const unknownCreation: CreationRequest = { stored: undefined, tools: true, audio: true, itemIds: undefined }

const isError = (text: string): boolean => {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === "object" && json !== null && "error" in json && !("data" in json)
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
  message: "This path is ambiguous: it could name another object. Write it without escapes and use a method of its API."
})

const tooManyReferences = new GatewayError({
  code: "invalid_request_body",
  message: `The body refers to more than ${maxReferences} upstream objects, which is the limit. Split the request.`
})

const ownersUnavailable = new GatewayError({
  code: "control_state_unavailable",
  message: "The gateway cannot look up the owner of the object at the moment. Try again shortly.",
  retryAfterSeconds: 1
})

export const unreadableList = new GatewayError({
  code: "upstream_connection",
  message:
    "The upstream's response is not a JSON list, so the gateway cannot remove objects of other projects and withholds it. Ask an operator to check the upstream."
})
