import { Effect, Schema } from "effect"
import { type RouteConfig, RouteId, RouteMode } from "../policy/routes/CanonicalRoute.ts"
import { Ownership } from "../policy/routes/Ownership.ts"
import { Database } from "../services/Database.ts"
import type { RowColumns, RowReader, TableReader } from "./StoredRows.ts"

const RouteRow = Schema.Struct({
  route_id: RouteId,
  enabled: Schema.Boolean,
  mode: RouteMode,
  timeout_ms: Schema.Int,
  max_request_body_bytes: Schema.Int,
  max_response_body_bytes: Schema.Int,
  limits_streams: Schema.Boolean,
  ownership: Ownership
})
const decodeRow = Schema.decodeUnknownSync(RouteRow)
const isRouteId = Schema.is(RouteId)

/** Decodes the rows of route settings. A route whose row cannot be decoded is disabled. */
export const table: TableReader<readonly [RouteId, RouteConfig]> = {
  name: "canonical_routes",
  key: ["route_id"],
  decode: (columns) => {
    const row = decodeRow(columns)
    return [
      row.route_id,
      {
        enabled: row.enabled,
        mode: row.mode,
        timeoutMs: row.timeout_ms,
        maxRequestBodyBytes: row.max_request_body_bytes,
        maxResponseBodyBytes: row.max_response_body_bytes,
        limitsStreams: row.limits_streams,
        limitsSetBy: "the route",
        ownership: row.ownership
      }
    ]
  },
  substitute: ({ route_id }) => (isRouteId(route_id) ? [route_id, disabled] : undefined)
}

const disabled: RouteConfig = {
  enabled: false,
  mode: "managed_by_gateway",
  timeoutMs: 1,
  maxRequestBodyBytes: 0,
  maxResponseBodyBytes: 0,
  limitsStreams: true,
  limitsSetBy: "the route",
  ownership: "key"
}

export const load = Effect.fnUntraced(function* (reader: RowReader) {
  const { sql } = yield* Database
  const rows =
    yield* sql<RowColumns>`SELECT route_id, enabled, mode, timeout_ms, max_request_body_bytes, max_response_body_bytes,
      limits_streams, ownership FROM canonical_routes`
  return new Map(reader.read(table, rows))
})
