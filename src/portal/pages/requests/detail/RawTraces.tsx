import { JsonTree } from "../../../shared/tasks/JsonTree.tsx"
import type { Bundle } from "./useRequest.ts"

/** The lines that the gateway wrote down, for whoever compares them with a log. */
export const RawTraces = ({
  bundle: { guardrail_trace, policy_trace, selection_trace }
}: {
  readonly bundle: Bundle
}) => (
  <details>
    <summary>Raw traces</summary>
    <JsonTree label="Raw traces" value={{ policy_trace, guardrail_trace, selection_trace }} />
  </details>
)
