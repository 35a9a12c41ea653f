import { assert } from "@effect/vitest"
import { createKey } from "../RunningGateway.ts"
import { eventuallyTrue } from "./EventuallyTrue.ts"
import type { Portal } from "./PortalBrowser.ts"

/** An installation after its first days: the ids that the addresses of its pages contain. */
export interface TypicalInstallation extends Filled, Repaired {}

export interface Filled {
  readonly projectId: string
  readonly keyId: string
  readonly holderKey: string
  /** The id of a change of many keys. */
  readonly changeId: string
  readonly requestId: string
  readonly taskId: string
  readonly letterId: string
  /** The query of the page of its group. */
  readonly group: string
}

export interface Repaired {
  readonly replayId: string
  /** The id of a cancellation of tasks. */
  readonly cancellationId: string
}

interface Letter {
  readonly dlq_id: string
  readonly task_id: string
  readonly queue_name: string
  readonly reason: string
  readonly exception_type: string | null
}

/** Fills the installation by the API: projects, keys, limits, layers, guardrails, a service, requests, tasks. */
export const fill = async (
  portal: Portal,
  { longestName = "w".repeat(120), longestModel = "m".repeat(120) } = {}
): Promise<Filled> => {
  const { gateway } = portal
  const project = await gateway.operate("POST", "/projects", { name: "checkout", tags: ["shop"] })
  await gateway.operate("POST", "/projects", { name: "search" })
  const projectId = textAt(project, "id")
  const policy = { rpm_limit: 600, daily_budget_usd: 5, max_requests_per_day: 200 }
  const [laptop, longest, agent, narrow] = await Promise.all([
    createKey(gateway, { name: "ada's laptop", owner_email: "ada@example.org", tags: ["laptop"], policy }),
    createKey(gateway, { name: longestName, owner_email: `${longestName.slice(0, 60)}@example.org`, policy }),
    createKey(gateway, {
      name: "checkout agent",
      owner_type: "project",
      project_id: projectId,
      team_id: "shop",
      guardrail_policy: { mandatory_guardrails: ["pii-redact"] },
      policy
    }),
    createKey(gateway, { name: "narrow", policy: { allowed_models: ["gpt-5"], max_requests_per_day: 3 } })
  ])
  await gateway.operate("POST", "/policy-layers", {
    kind: "team",
    scope_id: "shop",
    policy: { monthly_budget_usd: 500 }
  })
  await gateway.operate("POST", "/guardrails", {
    name: "no-secrets",
    endpoint_url: "https://guard.example/check",
    failure_policy: "fail_open"
  })
  await gateway.operate("PUT", "/model-prices/gpt-5", {
    input_usd_per_million: 1.25,
    output_usd_per_million: 10
  })
  await gateway.operate("POST", "/services", {
    name: "summaries",
    upstream_base_url: "https://summaries.example",
    project_id: projectId,
    openapi_endpoints: [{ method: "POST", path_template: "/jobs/{id}" }],
    endpoint_pricing_rules: [
      { method: "POST", path_template: "/jobs/{id}", cost_mode: "fixed", estimated_cost_usd: 0.02 }
    ]
  })
  for (const [key, model, times] of [
    [laptop, "gpt-5", 6],
    [longest, longestModel, 2],
    [agent, "claude-sonnet-5", 4],
    [narrow, "gpt-5", 5],
    [narrow, "forbidden-model", 2]
  ] as const)
    for (let n = 0; n < times; n++) await send(portal, key.raw, model)
  const change = await gateway.operate("POST", "/bulk-key-changes", {
    action: "tag",
    filter: { q: "ada" },
    add_tags: ["first day"]
  })
  const requestId = await send(portal, laptop.raw, "gpt-5")
  const letter = await letterOf(portal)
  return {
    projectId,
    keyId: laptop.id,
    holderKey: longest.raw,
    changeId: textAt(change, "id"),
    requestId,
    taskId: letter.task_id,
    letterId: letter.dlq_id,
    group: new URLSearchParams({
      queue_name: letter.queue_name,
      reason: letter.reason,
      ...(letter.exception_type !== null && { exception_type: letter.exception_type })
    }).toString()
  }
}

/** Replays another dead letter than that of the installation, and cancels the task of the latter, which has ended. */
export const repair = async (portal: Portal, { letterId, taskId }: Filled): Promise<Repaired> => {
  const { dlq_id } = await letterOf(portal, letterId)
  const replay = await ask(portal, "/dlq/replays", { ids: [dlq_id], plan: { steps: [1], rate: 20, stop_after: 3 } })
  const cancellation = await ask(portal, "/tasks/cancellations", { task_ids: [taskId], reason: "not needed" })
  return {
    replayId: textAt(JSON.parse(replay), "replay_id"),
    cancellationId: textAt(JSON.parse(cancellation), "cancellation_id")
  }
}

/** Waits for a dead letter other than `known`. */
const letterOf = async (portal: Portal, known?: string): Promise<Letter> => {
  let letter: Letter | undefined
  await eventuallyTrue(async () => {
    const letters: ReadonlyArray<Letter> = JSON.parse(await ask(portal, "/dlq/messages?limit=2")).items
    letter = letters.find(({ dlq_id }) => dlq_id !== known)
    return letter !== undefined
  })
  assert(letter !== undefined)
  return letter
}

const send = async ({ gateway }: Portal, key: string, model: string): Promise<string> => {
  const response = await fetch(`${gateway.proxy}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, max_tokens: 50, messages: [{ role: "user", content: "What is on the list?" }] })
  })
  await response.arrayBuffer()
  return response.headers.get("x-request-id") ?? ""
}

/** Asks the API of tasks. */
const ask = async ({ adminToken, gateway }: Portal, path: string, body?: object): Promise<string> => {
  const response = await fetch(`${gateway.control}/admin-ui/tasks${path}`, {
    headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) })
  })
  return response.text()
}

const textAt = (value: unknown, name: string): string => {
  assert(typeof value === "object" && value !== null)
  return String(Object.entries(value).find(([key]) => key === name)?.[1])
}
