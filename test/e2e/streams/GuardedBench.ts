import Anthropic from "@anthropic-ai/sdk"
import { Context, Effect, Layer } from "effect"
import OpenAI from "openai"
import * as RunningGateway from "../../RunningGateway.ts"
import * as StreamingVendor from "./StreamingVendor.ts"
import type { Json } from "./VendorAnswers.ts"

export interface Clients {
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
  }
>()("test/e2e/streams/GuardedBench") {
  static readonly layer = Layer.effect(
    GuardedBench,
    Effect.gen(function* () {
      const vendor = yield* StreamingVendor.serve
      const gateway = yield* RunningGateway.start({
        environment: { UPSTREAM_BASE_URL: vendor.origin, UPSTREAM_SERVICE_KEY: "k", LOG_LEVEL: "warn" }
      })
      const clients = async (config: Json = {}) => {
        const guardrail_policy = {
          mandatory_guardrails: ["pii-redact"],
          guardrail_config_overrides: { "pii-redact": config }
        }
        const { raw: apiKey } = await RunningGateway.createKey(gateway, { guardrail_policy })
        return {
          openai: new OpenAI({ apiKey, baseURL: `${gateway.proxy}/v1`, maxRetries: 0 }),
          anthropic: new Anthropic({ apiKey, baseURL: gateway.proxy, maxRetries: 0 })
        }
      }
      return GuardedBench.of({ vendor, clients })
    })
  )
}
