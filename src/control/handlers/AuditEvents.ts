import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import { auditActions } from "../audit/Audit.ts"
import { AuditChain } from "../audit/AuditChain.ts"
import { AuditEvents } from "../audit/AuditEvents.ts"
import { toPageResponse } from "./PageResponse.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "audit-events",
  Effect.fn(function* (handlers) {
    const events = yield* AuditEvents
    const chain = yield* AuditChain
    return handlers.handleAll({
      list: ({ query }) => Effect.map(events.list(query), toPageResponse),
      actions: () =>
        Effect.succeed(Object.entries(auditActions).map(([target_type, actions]) => ({ target_type, actions }))),
      verification: ({ query }) => chain.verify(query)
    })
  })
)
