import { Effect, type Stream } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import { ControlApi } from "../api/ControlApi.ts"
import type { ExportQuery } from "../api/usage/UsageApi.ts"
import { Usage } from "../usage/Usage.ts"
import { UsageEvents } from "../usage/UsageEvents.ts"
import * as UsageExport from "../usage/UsageExport.ts"
import { UsageSeries } from "../usage/UsageSeries.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "usage",
  Effect.fn(function* (handlers) {
    const usage = yield* Usage
    const events = yield* UsageEvents
    const series = yield* UsageSeries

    const exportJson = Effect.fnUntraced(function* (query: ExportQuery) {
      const { all: _, limit: __, offset: ___, ...filter } = query
      const summary = yield* usage.summary(filter)
      return asAttachment("svc-usage.json", UsageExport.json(summary, yield* events.batches(query)))
    })

    return handlers.handleAll({
      summary: ({ query }) => usage.summary(query),
      ofTask: ({ params, query }) => usage.summary({ ...query, task_id: params.task_id }),
      ofKey: ({ params, query }) => usage.ofKey(params.id, query),
      ofProject: ({ params, query }) => usage.ofProject(params.id, query),
      dashboard: ({ query }) => usage.dashboard(query),
      timeseries: ({ query }) => series.read(query),
      histogram: ({ query }) => series.histogram(query),
      byKey: ({ query }) => usage.breakdown("keys", query),
      byProject: ({ query }) => usage.breakdown("projects", query),
      byTeam: ({ query }) => usage.breakdown("teams", query),
      byModel: ({ query }) => usage.breakdown("models", query),
      byProvider: ({ query }) => usage.breakdown("providers", query),
      byService: ({ query }) => usage.breakdown("services", query),
      byEndpoint: ({ query }) => usage.breakdown("endpoints", query),
      byTask: ({ query }) => usage.breakdown("tasks", query),
      byTaskType: ({ query }) => usage.breakdownByTaskType(query),
      byClient: ({ query }) => usage.breakdown("clients", query),
      bySubject: ({ query }) => usage.breakdown("subjects", query),
      bySession: ({ query }) => usage.breakdownByLabel("sessions", query),
      byEndUser: ({ query }) => usage.breakdownByLabel("endUsers", query),
      filterValues: ({ query }) => usage.values(query.field, query.q ?? "", query.limit),
      unusedKeys: ({ query }) => usage.unusedKeys(query),
      events: ({ query }) => events.page(query),
      exportJson: ({ query }) => exportJson(query),
      exportCsv: ({ query }) =>
        Effect.map(events.batches(query), (batches) => asAttachment("svc-usage.csv", UsageExport.csv(batches)))
    })
  })
)

const asAttachment = (name: string, body: Stream.Stream<Uint8Array>) =>
  HttpApiSchema.withHeaders({ body, headers: { "content-disposition": `attachment; filename="${name}"` } })
