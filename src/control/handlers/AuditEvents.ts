import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { AuditChain } from "../AuditChain.ts"
import { AuditEvents } from "../AuditEvents.ts"
import { ControlApi } from "../api/ControlApi.ts"
import { paged } from "./Paged.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "audit-events",
  Effect.fn(function* (handlers) {
    const events = yield* AuditEvents
    const chain = yield* AuditChain
    return handlers.handleAll({
      list: ({ query }) => Effect.map(events.list(query), paged),
      verification: ({ query }) => chain.verify(query)
    })
  })
)
