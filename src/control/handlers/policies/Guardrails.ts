import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { GuardrailBench } from "../../policies/GuardrailBench.ts"
import { GuardrailCoverages } from "../../policies/GuardrailCoverages.ts"
import { GuardrailExecutions } from "../../policies/GuardrailExecutions.ts"
import { Guardrails } from "../../policies/Guardrails.ts"
import { toPageResponse } from "../PageResponse.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "guardrails",
  Effect.fn(function* (handlers) {
    const guardrails = yield* Guardrails
    const executions = yield* GuardrailExecutions
    const bench = yield* GuardrailBench
    const coverages = yield* GuardrailCoverages
    return handlers.handleAll({
      list: () => Effect.map(guardrails.list, (all) => ({ guardrails: all })),
      get: ({ params }) => guardrails.get(params.name),
      create: ({ payload }) => guardrails.create(payload),
      update: ({ params, payload }) => guardrails.update(params.name, payload),
      remove: ({ params }) => guardrails.remove(params.name),
      test: ({ params, payload }) => bench.test(params.name, payload),
      coverage: ({ params }) => coverages.of(params.name),
      coveredKeys: ({ params, query }) => Effect.map(coverages.keys(params.name, query), toPageResponse),
      series: ({ query: { interval = "hour", ...filter } }) =>
        Effect.map(executions.series(filter, interval), (buckets) => ({ interval, buckets })),
      executions: ({ query }) =>
        Effect.map(executions.list(query), ({ next, rows }) => ({ executions: rows, next_cursor: next ?? null })),
      summary: ({ query }) => Effect.map(executions.summary(query), (summary) => ({ summary }))
    })
  })
)
