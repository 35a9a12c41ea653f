import { installation } from "../../../api/installation.ts"
import { curlParts } from "../../../shared/snippets/commands.ts"

/** The model of the first request. The simulator answers for any name. */
export const firstModel = "gpt-5"

/** With the key of somebody who has one. */
export const firstCommand = curlParts({
  gatewayUrl: installation.gateway_url ?? "http://127.0.0.1:8080",
  model: firstModel
})
  .map(({ text }) => text)
  .join("\n")
