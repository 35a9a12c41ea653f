import { Effect } from "effect"
import { eventually } from "../Eventually.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { call, codeOf } from "./Calls.ts"

const marker = "/family-b-routes/models"

/**
 * Changes a route's configuration, and waits until this process goes by it. Notices come in order: when it has heard
 * that another route was disabled after the change, and enabled again, it has heard of the change. No upstream is
 * asked.
 */
export const configure = Effect.fnUntraced(function* (
  gateway: RunningGateway.RunningGateway,
  route: string,
  config: Readonly<Record<string, unknown>>
) {
  const operate = (method: string, path: string, body?: unknown) =>
    Effect.promise(() => gateway.operate(method, path, body))
  const denied = yield* Effect.promise(() => RunningGateway.createKey(gateway, { policy: { deny: true } }))
  const refusal = Effect.map(call(gateway, "/v1/models", denied.raw), codeOf)
  yield* operate("PATCH", `${route}/config`, config)
  yield* operate("POST", `${marker}/disable`)
  yield* eventually(refusal, (code) => code === "disabled_route")
  yield* operate("POST", `${marker}/enable`)
  yield* eventually(refusal, (code) => code === "policy_denied")
})
