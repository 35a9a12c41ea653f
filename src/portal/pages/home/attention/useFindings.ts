import { useShownNow } from "../../../address/shownTime.ts"
import type { ApiError } from "../../../api/ApiError.ts"
import { useApi, useTasksApi } from "../../../api/queries.ts"
import { useAllowed, useSeesTasks } from "../../../api/session.ts"
import type { DeadLetterQueues, Queues } from "../../../api/TaskTypes.ts"
import { countedText, relativeText } from "../../../shared/words/format.ts"
import { type Finding, ofAsked, ofKeys, ofLimits, sorted } from "./findings.ts"
import { ofGuardrails } from "./guardrailFindings.ts"
import { ofHealth, ofHub, ofLetters, ofQueues, ofSystem, ofTraffic } from "./serverFindings.ts"
import { useAuditFault } from "./useAuditFault.ts"

const minuteMs = 60_000
const dayMs = 1_440 * minuteMs
const mostKeys = 50
const mostLimits = 100
const mostModels = 20
const mostAsked = 20
const often = { refreshMs: minuteMs }

interface Source {
  readonly isPending: boolean
  readonly isEnabled: boolean
  readonly error: ApiError | null
}

interface Counts {
  readonly index: { readonly caught_up: boolean; readonly failure: string | null }
}

/** Looks for what needs a person: each kind with one call, and what cannot be looked at is named. */
export const useFindings = () => {
  const now = useShownNow()
  const at = (iso: string) => relativeText(Date.parse(iso), now)
  const mayGovern = useAllowed("operators:manage")
  const seesTasks = useSeesTasks()
  const day = { from: new Date(Math.floor(now / minuteMs) * minuteMs - dayMs).toISOString() }

  const limits = useApi("/admin-ui/admin/limits/state", { query: { scope: "all", limit: mostLimits } }, often)
  const [expiring, rotating] = useKeysInOrder(mayGovern)
  const lists = [expiring.data ?? [], rotating.data ?? []]
  const models = useApi("/admin-ui/admin/models", {
    query: { priced: "false", sort_by: "requests", limit: mostModels }
  })
  const guardrails = useApi("/admin-ui/admin/usage/summary", { query: { ...day, error_code: "guardrail_unavailable" } })
  const executions = useApi("/admin-ui/admin/guardrails/summary", { query: day }, { enabled: mayGovern })
  const traffic = useApi("/admin-ui/admin/provider-health", {})
  const health = useApi("/admin-ui/admin/provider-health/state", {}, often)
  const queues = useTasksApi<Queues>("/queues", {}, { ...often, enabled: seesTasks })
  const letters = useTasksApi<DeadLetterQueues>("/dlq/queues", {}, { ...often, enabled: seesTasks })
  const counts = useTasksApi<Counts>("/tasks/counts", { since: "15m" }, { ...often, enabled: seesTasks })
  const asked = useApi("/admin-ui/admin/limits/raise-requests", { query: { state: "open", limit: mostAsked } }, often)
  const system = useApi("/admin-ui/admin/system", {}, often)
  const audit = useAuditFault()

  const unpriced = (models.data?.models ?? []).filter(
    ({ refused_for_price_count, summary }) => refused_for_price_count > 0 || summary.unpriced_request_count > 0
  )
  const executed = executions.data?.summary ?? []
  // a guardrail that is gone has no executions, though requests are refused for it
  const isNamed = executed.some(
    ({ failed_count, failure_policy }) => failure_policy === "fail_closed" && failed_count > 0
  )
  const failing = isNamed ? 0 : (guardrails.data?.request_count ?? 0)
  const index = counts.data?.index
  const findings: ReadonlyArray<Finding> = [
    ...ofLimits(limits.data?.limits ?? [], at),
    ...ofAsked(asked.data ?? []),
    ...ofKeys([...new Map(lists.flat().map((key) => [key.id, key])).values()], now, at),
    ...unpriced.map(({ model, refused_for_price_count: refused, summary }) => ({
      id: `unpriced ${model}`,
      weight: 2 as const,
      name: model,
      sentence:
        refused > 0
          ? `has no price, and ${countedText(refused, "request")} refused for it in 30 days`
          : `has no price, and ${countedText(summary.unpriced_request_count, "request")} in 30 days`,
      path: "/models"
    })),
    ...ofGuardrails(executed),
    ...(failing > 0
      ? [
          {
            id: "guardrails",
            weight: 3 as const,
            sentence: `A guardrail could not be asked for ${countedText(failing, "request")} of a day`,
            path: "/requests",
            search: { error_code: "guardrail_unavailable" }
          }
        ]
      : []),
    ...ofTraffic(traffic.data ?? []),
    ...ofHealth(health.data ?? [], at),
    ...ofQueues(queues.data?.queues ?? []),
    ...(queues.data?.hub === undefined ? [] : ofHub(queues.data.hub)),
    ...ofLetters(letters.data?.queues ?? []),
    ...(index !== undefined && (!index.caught_up || index.failure !== null)
      ? [
          {
            id: "index",
            weight: 2 as const,
            sentence: `The index of tasks is behind${index.failure === null ? "" : `: ${index.failure}`}`,
            path: "/tasks"
          }
        ]
      : []),
    ...(system.data === undefined ? [] : ofSystem(system.data, at)),
    ...audit.findings
  ]
  const sources: ReadonlyArray<readonly [name: string, source: Source]> = [
    ["limits", limits],
    ["keys that expire", { ...expiring, isEnabled: mayGovern }],
    ["keys to rotate", { ...rotating, isEnabled: mayGovern }],
    ["models", models],
    ["guardrails", guardrails],
    ["executions of guardrails", { ...executions, isEnabled: mayGovern }],
    ["traffic", traffic],
    ["health of upstreams", health],
    ["queues", { ...queues, isEnabled: seesTasks }],
    ["dead letters", { ...letters, isEnabled: seesTasks }],
    ["the index of tasks", { ...counts, isEnabled: seesTasks }],
    ["what holders ask for", asked],
    ["the servers", system],
    ["the audit log", audit]
  ]
  const bounds: ReadonlyArray<readonly [isReached: boolean, part: string]> = [
    [(limits.data?.left_out ?? 0) > 0, `the ${mostLimits} fullest limits`],
    [
      lists.some((list) => list.length === mostKeys && ofKeys(list.slice(-1), now, at).length > 0),
      `${mostKeys} keys each to expire or rotate next`
    ],
    [models.data?.models.length === mostModels, `the ${mostModels} busiest models without a price`],
    [asked.data?.length === mostAsked, `${mostAsked} requests for a raise`]
  ]
  return {
    /** Whether the process that answers is ready, as its own checks say. */
    status: system.error === null ? system.data?.status : undefined,
    findings: sorted(findings),
    isPending: sources.some(([, { isEnabled, isPending }]) => isEnabled && isPending),
    /** These parts alone of their sources were looked at, such as `the 100 fullest limits`: there may be more. */
    partial: bounds.flatMap(([isReached, part]) => (isReached ? [part] : [])),
    failed: sources.filter(([, { error }]) => error !== null).map(([name]) => name),
    retry: () => {
      const all = [
        limits,
        expiring,
        rotating,
        models,
        guardrails,
        executions,
        traffic,
        health,
        queues,
        letters,
        counts,
        asked,
        system
      ]
      for (const query of all) if (query.error !== null) void query.refetch()
      audit.retry()
    }
  }
}

/** The keys that expire first, and those that are to be rotated first. */
const useKeysInOrder = (enabled: boolean) => {
  const shared = { state: "active" as const, limit: mostKeys }
  const options = { ...often, enabled }
  return [
    useApi("/admin-ui/admin/keys", { query: { ...shared, sort_by: "expires_at" } }, options),
    useApi("/admin-ui/admin/keys", { query: { ...shared, sort_by: "rotation_due_at" } }, options)
  ] as const
}
