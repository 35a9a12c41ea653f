import { installation } from "../../../api/installation.ts"

const gateway = installation.gateway_url ?? "http://127.0.0.1:8080"

/** The model of the first request. The simulator answers for any name. */
export const firstModel = "gpt-5"

export const firstCommand = [
  `curl -s ${gateway}/v1/chat/completions`,
  '-H "authorization: Bearer $KEY"',
  "-H 'content-type: application/json'",
  `-d '{"model":"${firstModel}","messages":[{"role":"user","content":"Hello"}]}'`
].join(" \\\n  ")
