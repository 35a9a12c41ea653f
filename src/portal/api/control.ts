import type { BodyOf, Method, ParameterOf, PathOf, QueryOf, ResponseOf } from "./Endpoints.ts"
import { type QueryValue, send, withParameters, withQuery } from "./http.ts"

/** Parameters are required where the path has some. */
type WithParameters<P extends string> = [ParameterOf<P>] extends [never]
  ? { readonly params?: undefined }
  : { readonly params: Readonly<Record<ParameterOf<P>, string>> }

/** `undefined` leaves a parameter out. */
type Optional<Query> = { readonly [Name in keyof Query]?: Query[Name] | undefined }

export type Request<M extends Method, P extends PathOf<M>> = WithParameters<P> & {
  readonly query?: Optional<QueryOf<M, P>>
  readonly body?: BodyOf<M, P>
}

interface Options {
  readonly signal?: AbortSignal
  readonly headers?: Readonly<Record<string, string>>
}

/** A page of a list, and the cursor of the next one. */
export interface Page<Rows> {
  readonly rows: Rows
  readonly next: string | undefined
}

/** Returns the address of a request, which `Copy as curl` shows too. */
export const addressOf = <M extends Method, P extends PathOf<M>>(path: P, request: Request<M, P>): string => {
  const query: Readonly<Record<string, QueryValue>> = { ...request.query }
  return withQuery(withParameters(path, request.params), query)
}

const respond = async <M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  request: Request<M, P>,
  options: Options
): Promise<Response> =>
  send(method, addressOf(path, request), {
    ...options,
    ...(request.body !== undefined && { body: request.body })
  })

const bodyOf = async (response: Response) =>
  response.status === 204 || response.headers.get("content-length") === "0" ? undefined : response.json()

/** Calls an endpoint of the control API. */
export const call = async <M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  request: Request<M, P>,
  options: Options = {}
): Promise<ResponseOf<M, P>> => bodyOf(await respond(method, path, request, options))

/** Calls an endpoint with a body that a person wrote or the server suggests. The server says what is wrong with it. */
export const callWith = async <M extends Method, P extends PathOf<M>>(
  method: M,
  path: P,
  body: Readonly<Record<string, unknown>>
): Promise<ResponseOf<M, P>> => bodyOf(await send(method, path, { body }))

/** Reads the page of a list that begins at a cursor, or the first one. */
export const page = async <P extends PathOf<"GET">>(
  path: P,
  request: Request<"GET", P>,
  cursor: string | undefined,
  options: Options = {}
): Promise<Page<ResponseOf<"GET", P>>> => {
  const query: Readonly<Record<string, QueryValue>> = { ...request.query, cursor }
  const response = await send("GET", withQuery(withParameters(path, request.params), query), options)
  return { rows: await bodyOf(response), next: response.headers.get("x-next-cursor") ?? undefined }
}
