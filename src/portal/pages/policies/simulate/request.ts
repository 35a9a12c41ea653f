import type { BodyOf } from "../../../api/Endpoints.ts"

export type Simulation = BodyOf<"POST", "/admin-ui/admin/policy/simulate">
type Method = NonNullable<Simulation["method"]>

export const methods: ReadonlyArray<Method> = ["POST", "GET", "PUT", "PATCH", "DELETE"]

/** The request as the form has it. */
export interface RequestDraft {
  readonly method: Method
  readonly path: string
  readonly body: string
  readonly key_id: string | undefined
  readonly team_id: string
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
  team_id: ""
})

export const methodOf = (text: string): Method => methods.find((method) => method === text) ?? "POST"

/** What is asked of the simulator, or why it cannot be asked yet. */
export const bodyOf = ({ body, key_id, method, path, team_id }: RequestDraft): Simulation | string => {
  if (!path.startsWith("/")) return "The path begins with /."
  const json = body.trim() === "" ? undefined : parsed(body)
  if (json === notJson) return "The body is not JSON."
  return {
    method,
    path,
    ...(json !== undefined && { body: json }),
    ...(key_id !== undefined && { key_id }),
    ...(team_id !== "" && { team_id })
  }
}

const notJson = Symbol("not JSON")

const parsed = (text: string) => {
  try {
    return JSON.parse(text)
  } catch {
    return notJson
  }
}
