import type { BodyOf } from "../../../api/Endpoints.ts"
import { changedValues } from "../../../shared/policy/fields.ts"
import type { GuardrailValues } from "../../../shared/policy/GuardrailForm.tsx"

export type Simulation = BodyOf<"POST", "/admin-ui/admin/policy/simulate">
type Method = NonNullable<Simulation["method"]>
type Preset = NonNullable<Simulation["preset"]>
type Provider = NonNullable<Simulation["provider"]>

export const methods: ReadonlyArray<Method> = ["POST", "GET", "PUT", "PATCH", "DELETE"]
export const providers: ReadonlyArray<Provider> = ["upstream", "internal-service", "compat"]
export const amounts = ["request_body_bytes", "response_body_bytes", "estimated_cost_usd"] as const

/** The request as the form has it. */
export interface RequestDraft {
  readonly method: Method
  readonly path: string
  readonly body: string
  readonly key_id: string | undefined
  readonly more: More
}

/** Inputs of the simulation beside the request, or in place of what the key, the path and the body say. */
export interface More extends Readonly<Partial<Record<(typeof amounts)[number], number>>> {
  readonly team_id?: string
  readonly preset?: Preset
  readonly provider?: Provider
  readonly service_name?: string
  readonly guardrails?: GuardrailValues
}

interface FirstRequest {
  readonly key: string | undefined
  readonly path: string | undefined
  readonly model: string | undefined
}

/** The form begins with the request of the address, as far as it is known. */
export const firstRequest = ({ key, model = "gpt-5", path = "/v1/chat/completions" }: FirstRequest): RequestDraft => ({
  method: "POST",
  path,
  body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }] }, null, 2),
  key_id: key,
  more: {}
})

export const methodOf = (text: string): Method => methods.find((method) => method === text) ?? "POST"

/** What is asked of the simulator, or why it cannot be asked yet. */
export const bodyOf = ({ body, key_id, method, more, path }: RequestDraft): Simulation | string => {
  if (!path.startsWith("/")) return "The path begins with /."
  const json = body.trim() === "" ? undefined : parsed(body)
  if (json === notJson) return "The body is not JSON."
  const { guardrails, ...rest } = more
  // a list without guardrails leaves that of the key
  const guardrail_policy = changedValues({ ...noGuardrails }, { ...guardrails })
  return {
    method,
    path,
    ...(json !== undefined && { body: json }),
    ...(key_id !== undefined && { key_id }),
    ...rest,
    ...(Object.keys(guardrail_policy).length > 0 && { guardrail_policy })
  }
}

export const noGuardrails: GuardrailValues = {
  mandatory_guardrails: [],
  optional_guardrails: [],
  forbidden_guardrails: [],
  guardrail_config_overrides: {}
}

const notJson = Symbol("not JSON")

const parsed = (text: string) => {
  try {
    return JSON.parse(text)
  } catch {
    return notJson
  }
}
