import { installation } from "../../api/installation.ts"
import { curlParts } from "./commands.ts"

/** The model of the first request where no price names another one. The simulator answers for any name. */
export const usualModel = "gpt-5"

/** With the key of somebody who has one. */
export const firstCommand = curlParts({
  gatewayUrl: installation.gateway_url ?? "http://127.0.0.1:8080",
  model: usualModel
})
  .map(({ text }) => text)
  .join("\n")
