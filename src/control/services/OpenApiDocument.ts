import { Predicate, Result } from "effect"
import { type Endpoint, EndpointMethod, type EndpointPricingRule } from "../../policy/routes/Service.ts"

interface OpenApiDocument {
  readonly title: string | null
  readonly version: string | null
  /** In the order of the paths in the document, then by method. */
  readonly endpoints: ReadonlyArray<Endpoint>
}

/** The maximum number of endpoints of a service, and of its endpoint prices. */
export const maxEndpoints = 500

const maxPathLength = 512
const maxTextLength = 256
const maxSummaryLength = 1_024

/** Parses an OpenAPI 3 document. The failure completes a sentence that begins with "The document". */
export const parse = (text: string): Result.Result<OpenApiDocument, string> => {
  const document = Result.getOrUndefined(Result.try((): unknown => JSON.parse(text)))
  if (!Predicate.isObject(document)) return Result.fail("is not a JSON object")
  const openapi = field(document, "openapi")
  if (typeof openapi !== "string" || !/^3\.\d/.test(openapi)) {
    return Result.fail("is not OpenAPI 3: its field openapi must be a version such as 3.1.0")
  }
  const paths = field(document, "paths") ?? {}
  if (!Predicate.isObject(paths)) return Result.fail("has paths that are not an object")
  const endpoints: Array<Endpoint> = []
  for (const [path, item] of Object.entries(paths)) {
    if (path.startsWith("x-")) continue
    if (!isPath(path)) return Result.fail(`has the invalid path ${quoted(path)}`)
    const methods = resolvedPathItem(document, item)
    if (!Predicate.isObject(methods)) return Result.fail(`has an unreadable path item for ${quoted(path)}`)
    endpoints.push(...operationsOf(path, methods))
    if (endpoints.length > maxEndpoints) return Result.fail(`has more than ${maxEndpoints} endpoints`)
  }
  const shapes = endpoints.map(endpointShape)
  const duplicate = endpoints.find((endpoint, at) => shapes.indexOf(endpointShape(endpoint)) !== at)
  if (duplicate !== undefined)
    return Result.fail(
      `has ${duplicate.method} ${quoted(duplicate.path_template)} twice; parameter names do not make paths differ`
    )
  const info = field(document, "info")
  return Result.succeed({ title: textOf(field(info, "title")), version: textOf(field(info, "version")), endpoints })
}

const operationsOf = (path: string, methods: object): ReadonlyArray<Endpoint> =>
  EndpointMethod.literals.flatMap((method) => {
    const operation = field(methods, method.toLowerCase())
    return Predicate.isObject(operation)
      ? [
          {
            method,
            path_template: path,
            operation_id: textOf(field(operation, "operationId")),
            summary: textOf(field(operation, "summary"), maxSummaryLength),
            svc_default: isOperational(path)
          }
        ]
      : []
  })

/** A path item may be a `$ref` to `components.pathItems`. */
const resolvedPathItem = (document: object, item: unknown): unknown => {
  const reference = field(item, "$ref")
  if (reference === undefined) return item
  const name = typeof reference === "string" ? /^#\/components\/pathItems\/([^/]+)$/.exec(reference)?.[1] : undefined
  return name === undefined ? undefined : field(field(field(document, "components"), "pathItems"), name)
}

const field = (value: unknown, name: string): unknown =>
  Predicate.hasProperty(value, name) && Object.hasOwn(value, name) ? value[name] : undefined

const isPath = (path: string): boolean =>
  path.length <= maxPathLength && /^\/[\x21-\x7e]*$/.test(path) && !/\/\/|[?#\\]/.test(path)

/** Returns the text as one line of at most `most` characters, or `null` if it is empty. */
const textOf = (value: unknown, most = maxTextLength): string | null => {
  const line = typeof value === "string" ? value.replace(/[\s\p{Cc}]+/gu, " ").trim() : ""
  return line === "" ? null : [...line].slice(0, most).join("").trim()
}

const quoted = (path: string): string => JSON.stringify(path.slice(0, 64))

const operationalPaths = new Set(["/health", "/history"])
const operationalPrefixes = ["/events", "/status", "/dlq", "/broker/dlq", "/failed-tasks", "/svc", "/executions"]

/** These endpoints of a service belong to task messaging and operations. Requests to them are free. */
export const isOperational = (path: string): boolean =>
  operationalPaths.has(path) || operationalPrefixes.some((prefix) => path === prefix || path.startsWith(`${prefix}/`))

interface EndpointKey {
  readonly method: string
  readonly path_template: string
}

/** Two endpoints that differ only in parameter names have the same shape. */
const endpointShape = ({ method, path_template }: EndpointKey): string =>
  `${method} ${path_template.replace(/\{[^{}]*\}/g, "{}")}`

export const without = <A extends EndpointKey>(
  these: ReadonlyArray<A>,
  those: ReadonlyArray<EndpointKey>
): ReadonlyArray<A> => {
  const known = new Set(those.map(endpointShape))
  return these.filter((endpoint) => !known.has(endpointShape(endpoint)))
}

/**
 * Returns the endpoint prices after an import of the document. Existing prices stay, even those of removed endpoints.
 * New operational endpoints become free. Other new endpoints have the price of the service.
 */
export const pricingAfterSync = (
  rules: ReadonlyArray<EndpointPricingRule>,
  before: ReadonlyArray<Endpoint>,
  after: ReadonlyArray<Endpoint>
): ReadonlyArray<EndpointPricingRule> => [
  ...rules,
  ...without(without(after, before), rules).flatMap(({ method, operation_id, path_template, svc_default }) =>
    svc_default ? [{ method, path_template, operation_id, cost_mode: "none" as const, estimated_cost_usd: null }] : []
  )
]
