import { hash } from "node:crypto"
import { Context, Effect, Layer, Result } from "effect"
import { Database } from "../../services/Database.ts"
import { Egress, type EgressError } from "../../services/Egress.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { OpenApiPreview, OpenApiSync as Request } from "../api/services/ServiceOpenApiApi.ts"
import type { Service } from "../api/services/ServicesApi.ts"
import { type Actor, Audit } from "../audit/Audit.ts"
import { type StoreFailure, storedRows } from "../store/Rows.ts"
import { validateOrigin } from "../store/Validation.ts"
import * as OpenApiDocument from "./OpenApiDocument.ts"
import { ServiceRow, Services, serviceColumns, snapshots, toService } from "./Services.ts"

type DocumentFailure = Refused<
  | "missing_service"
  | "incomplete_service"
  | "invalid_service_upstream"
  | "invalid_service_openapi"
  | "service_openapi_unavailable"
>

/** Imports the endpoints of a service from its OpenAPI document, so that each endpoint can have its own price. */
export class OpenApiSync extends Context.Service<
  OpenApiSync,
  {
    readonly preview: (
      name: string,
      sourcePath?: string
    ) => Effect.Effect<OpenApiPreview, DocumentFailure | StoreFailure>
    /** Stores the previewed document. Fails if the hash of the document has changed since the preview. */
    readonly sync: (
      name: string,
      request: Request
    ) => Effect.Effect<Service, DocumentFailure | Refused<"service_openapi_changed"> | StoreFailure, Actor>
  }
>()("svc/control/OpenApiSync") {
  static readonly layer = Layer.suspend(() => Layer.effect(OpenApiSync, make))
}

const defaultPath = "/openapi.json"
const withinMs = 8_000
const maxBytes = 1_048_576

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const egress = yield* Egress
  const services = yield* Services
  const columns = sql.literal(serviceColumns)

  /** Requests the document from the service without the service's credential. */
  const fetchDocument = Effect.fnUntraced(function* (service: Service, sourcePath: string) {
    yield* validatePath(sourcePath)
    const { body, headers, status } = yield* Effect.mapError(
      egress.fetch({
        method: "GET",
        url: (yield* originOf(service)) + sourcePath,
        headers: { accept: "application/json" },
        withinMs,
        maxBytes
      }),
      fetchError
    )
    if (status < 200 || status > 299)
      return yield* unavailable(
        `The service responded with status ${status} instead of its OpenAPI document. Check source_path.`
      )
    if (!/json/i.test(headers["content-type"] ?? "")) {
      return yield* unavailable("The service responded with a content type that is not JSON. Check source_path.")
    }
    const document = OpenApiDocument.parse(Buffer.from(body).toString())
    if (Result.isFailure(document)) {
      return yield* new ControlError(
        "invalid_service_openapi",
        `The OpenAPI document of the service ${document.failure}.`
      )
    }
    return { document: document.success, hash: `sha256:${hash("sha256", body)}` }
  })

  const sourcePathOf = (service: Service, requested: string | undefined) =>
    requested ?? service.openapi_source_path ?? defaultPath

  return OpenApiSync.of({
    preview: Effect.fn("OpenApiSync.preview")(function* (name, requestedPath) {
      const service = yield* services.get(name)
      const source_path = sourcePathOf(service, requestedPath)
      const { document, hash: schema_hash } = yield* fetchDocument(service, source_path)
      return {
        source_path,
        schema_hash,
        ...document,
        added: OpenApiDocument.without(document.endpoints, service.openapi_endpoints),
        removed: OpenApiDocument.without(service.openapi_endpoints, document.endpoints)
      }
    }),

    sync: Effect.fn("OpenApiSync.sync")(function* (name, { expected_schema_hash, source_path: requestedPath }) {
      const current = yield* services.get(name)
      const source_path = sourcePathOf(current, requestedPath)
      // The request is made before the transaction, so that a slow service holds no locks.
      const { document, hash: schema_hash } = yield* fetchDocument(current, source_path)
      if (schema_hash !== expected_schema_hash) {
        return yield* documentChanged("The document has changed since the preview; request a new preview.")
      }
      return yield* audit.mutate(function* ({ write }) {
        const row = yield* serviceRows.first(
          sql`SELECT ${columns} FROM service_registrations WHERE name = ${name} FOR UPDATE`
        )
        if (row === undefined) return yield* new ControlError("missing_service", "There is no service of this name.")
        const before = toService(row)
        if (before.upstream_base_url !== current.upstream_base_url) {
          return yield* documentChanged(
            "The service's upstream_base_url has changed since the preview; request a new preview."
          )
        }
        const prices = OpenApiDocument.pricingAfterSync(
          before.endpoint_pricing_rules,
          before.openapi_endpoints,
          document.endpoints
        )
        if (prices.length > OpenApiDocument.maxEndpoints) {
          return yield* new ControlError(
            "invalid_service_openapi",
            `The service would have more than ${OpenApiDocument.maxEndpoints} endpoint prices; remove the prices of endpoints that no longer exist.`,
            { param: "endpoint_pricing_rules" }
          )
        }
        const after = toService(
          yield* serviceRows.only(write`
            UPDATE service_registrations SET ${sql.update({
              openapi_source_path: source_path,
              openapi_schema_hash: schema_hash,
              openapi_endpoints: JSON.stringify(document.endpoints),
              endpoint_pricing_rules: JSON.stringify(prices)
            })}, openapi_synced_at = now(), updated_at = now()
            WHERE name = ${name} RETURNING ${columns}`)
        )
        return {
          result: after,
          auditAction: { target: "service", action: "services:openapi_sync" },
          targetId: name,
          snapshots: yield* snapshots(before, after),
          changes: [{ _tag: "Configuration" }]
        }
      })
    })
  })
})

const serviceRows = storedRows(ServiceRow, { table: "service_registrations", key: ["name"] })

const maxPathLength = 512

/** Dot segments and `//` could lead to another resource or another host. */
const validatePath = (path: string): Effect.Effect<void, Refused<"invalid_service_openapi">> =>
  path.length <= maxPathLength && /^\/[\x21-\x7e]*$/.test(path) && !/\/\/|[?#\\]|\/\.{1,2}(?:\/|$)/.test(path)
    ? Effect.void
    : Effect.fail(
        new ControlError(
          "invalid_service_openapi",
          `source_path must be a path of at most ${maxPathLength} visible ASCII characters that begins with /, without //, dot segments, ?, # or backslash.`,
          { param: "source_path" }
        )
      )

const originOf = ({ upstream_base_url }: Service) => {
  if (upstream_base_url === null) {
    return Effect.fail(
      new ControlError(
        "incomplete_service",
        "The service has no upstream_base_url to fetch the document from; set it first.",
        {
          param: "upstream_base_url"
        }
      )
    )
  }
  const refusal = validateOrigin(upstream_base_url)
  return refusal === undefined
    ? Effect.succeed(new URL(upstream_base_url).origin)
    : Effect.fail(invalidUpstream(`The service's upstream_base_url ${refusal}.`))
}

const invalidUpstream = (message: string) =>
  new ControlError("invalid_service_upstream", message, { param: "upstream_base_url" })
const unavailable = (message: string) => new ControlError("service_openapi_unavailable", message)
const documentChanged = (message: string) =>
  new ControlError("service_openapi_changed", message, { param: "expected_schema_hash" })

const fetchError = ({ message, reason }: EgressError) =>
  reason === "refused_address"
    ? invalidUpstream(message)
    : unavailable(`The OpenAPI document could not be fetched from the service. ${message}`)
