import type { BodyRoute } from "../routes/CanonicalRoute.ts"
import { isObject, type Json, type JsonObject } from "./Json.ts"
import { outputMembers } from "./OutputBounds.ts"

/** Checks the types of members that policy reads. `"stream":"true"` must not bypass a ban on streaming. */
export const find = (
  json: JsonObject,
  requests: ReadonlyArray<Json>,
  routeId: BodyRoute
): { readonly path: string; readonly type: string } | undefined => {
  for (let index = 0; index < requests.length; index++) {
    const request = requests[index]!
    const mistake = mistakeOf(routeId, request) ?? extraMistakeOf(routeId, request)
    if (mistake === undefined) continue
    const [type, ...member] = mistake
    const path = (request === json ? member : ["requests", index, "params", ...member]).join(".")
    return { path, type }
  }
  return undefined
}

type TypeMistake = readonly [type: string, ...path: ReadonlyArray<string>]

const mistakeOf = (routeId: BodyRoute, request: Json): TypeMistake | undefined =>
  mistakeIn(request) ??
  (routeId === "service" ? undefined : countMistakeIn(request)) ??
  (routeId === "responses" ? backgroundMistakeIn(request) : undefined)

const extraMistakeOf = (routeId: BodyRoute, request: Json): TypeMistake | undefined => {
  const extra = isObject(request) && routeId !== "service" ? request["extra_body"] : undefined
  const mistake = isObject(extra) ? mistakeOf(routeId, extra) : undefined
  return mistake && [mistake[0], "extra_body", ...mistake.slice(1)]
}

const mistakeIn = (request: Json): TypeMistake | undefined => {
  if (!isObject(request)) return ["an object"]
  const { model, stream, tools } = request
  if (model !== undefined && typeof model !== "string") return ["a string", "model"]
  if (stream !== undefined && stream !== null && typeof stream !== "boolean") return ["true or false", "stream"]
  if (tools !== undefined && tools !== null && !Array.isArray(tools)) return ["an array", "tools"]
  return undefined
}

const countMistakeIn = (request: Json): TypeMistake | undefined => {
  if (!isObject(request)) return undefined
  const list = ["functions", "mcp_servers", "plugins"].find(
    (name) => request[name] != null && !Array.isArray(request[name])
  )
  if (list !== undefined) return ["an array", list]
  const count = countMembers.find((name) => request[name] != null && typeof request[name] !== "number")
  return count === undefined ? undefined : ["a number", count]
}

/** Checked only on `/v1/responses`, because elsewhere `background` may mean the background of an image. */
const backgroundMistakeIn = (request: Json): TypeMistake | undefined =>
  isObject(request) && request["background"] != null && typeof request["background"] !== "boolean"
    ? ["true or false", "background"]
    : undefined

/** Members that must be numbers. Some upstreams would also accept numeric strings. */
export const countMembers = [...outputMembers, "n", "best_of"]
