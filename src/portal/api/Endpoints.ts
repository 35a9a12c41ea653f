import type { HttpApi, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import type { ControlApi } from "../../control/api/ControlApi.ts"

/**
 * The types of requests and responses on the wire, taken from the definition of the control API. Only types are
 * imported: the definition itself, with all of its schemas, would be a third of what a browser loads.
 */

type Groups = typeof ControlApi extends HttpApi.HttpApi<string, infer Found> ? Found : never
type Endpoint = HttpApiGroup.Endpoints<Groups>

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE"

/** The paths that have an endpoint for the method, such as `/admin-ui/admin/keys/:key_id`. */
export type PathOf<M extends Method> = WithoutSlash<Extract<Endpoint, { readonly method: M }>["path"]>

/** An endpoint at the root of its group has a path that ends with a slash, which the server also serves without it. */
type WithoutSlash<Path extends string> = Path extends `${infer Start}/` ? Start : Path

type At<M extends Method, P extends string> = Extract<Endpoint, { readonly method: M; readonly path: P | `${P}/` }>

/** What a schema describes on the wire. The codecs of Effect know only `Json`; the schema that they wrap knows more. */
type Wire<S> =
  S extends HttpApiSchema.WithHeaders<infer Inner, infer _Headers>
    ? Wire<Inner>
    : S extends { readonly schema: infer Inner extends { readonly Encoded: unknown } }
      ? Inner["Encoded"]
      : S extends { readonly Encoded: infer Encoded }
        ? Encoded
        : never

export type ResponseOf<M extends Method, P extends PathOf<M>> = Wire<At<M, P>["~Success"]>
export type QueryOf<M extends Method, P extends PathOf<M>> = Written<Wire<At<M, P>["~Query"]>>
export type BodyOf<M extends Method, P extends PathOf<M>> = Wire<At<M, P>["~Payload"]>

/** Parameters are text in an address, so that numbers and booleans may be given as they are. */
type Written<Query> = { readonly [Name in keyof Query]: Query[Name] | number | boolean }

/** The names after a colon in a path. */
export type ParameterOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParameterOf<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never
