import Anthropic from "@anthropic-ai/sdk"
import { Context, Effect, Layer } from "effect"
import OpenAI from "openai"
import * as GatewayOnPostgres from "../../GatewayOnPostgres.ts"
import * as RunningGateway from "../../RunningGateway.ts"
import * as GuardrailServer from "./GuardrailServer.ts"
import * as StreamingVendor from "./StreamingVendor.ts"
import type { Json } from "./VendorAnswers.ts"

export interface Clients {
  readonly apiKey: string
  readonly origin: string
  readonly openai: OpenAI
  readonly anthropic: Anthropic
}

/** A gateway in a process of its own before a vendor of both families, and the official clients. */
export class GuardedBench extends Context.Service<
  GuardedBench,
  {
    readonly vendor: StreamingVendor.StreamingVendor
    /** Clients with a key that demands `pii-redact` with this configuration. */
    readonly clients: (config?: Json) => Promise<Clients>
    /** The server of the HTTP guardrails `collects` and `windows`, which differ in their stream mode. */
    readonly guardrail: GuardrailServer.GuardrailServer
    /** Clients with a key that demands these guardrails, in this order. */
    readonly clientsOf: (...guardrails: ReadonlyArray<string>) => Promise<Clients>
  }
>()("test/e2e/streams/GuardedBench") {
  static readonly layer = Layer.effect(
    GuardedBench,
    Effect.gen(function* () {
      const vendor = yield* StreamingVendor.serve
      const gateway = yield* GatewayOnPostgres.start({
        environment: { UPSTREAM_BASE_URL: vendor.origin, UPSTREAM_SERVICE_KEY: "k", LOG_LEVEL: "warn" }
      })
      const guardrail = yield* GuardrailServer.serve
      const register = (name: string, stream: Json) =>
        gateway.operate("POST", "/guardrails", {
          name,
          endpoint_url: guardrail.url,
          failure_policy: "fail_closed",
          modes: ["post_call"],
          timeout_ms: 10_000,
          ...stream
        })
      yield* Effect.promise(() => register("collects", { stream_mode: "buffer" }))
      yield* Effect.promise(() => register("windows", { stream_mode: "window", window_chars: 64 }))
      const clientsWith = async (guardrail_policy: Json): Promise<Clients> => {
        const { raw: apiKey } = await RunningGateway.createKey(gateway, { guardrail_policy })
        return {
          apiKey,
          origin: gateway.proxy,
          openai: new OpenAI({ apiKey, baseURL: `${gateway.proxy}/v1`, maxRetries: 0 }),
          anthropic: new Anthropic({ apiKey, baseURL: gateway.proxy, maxRetries: 0 })
        }
      }
      return GuardedBench.of({
        vendor,
        guardrail,
        clients: (config = {}) =>
          clientsWith({
            mandatory_guardrails: ["pii-redact"],
            guardrail_config_overrides: { "pii-redact": config }
          }),
        clientsOf: (...mandatory_guardrails) => clientsWith({ mandatory_guardrails })
      })
    })
  )
}
