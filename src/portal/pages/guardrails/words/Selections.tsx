import type { ResponseOf } from "../../../api/Endpoints.ts"

interface Props {
  readonly of: Pick<ResponseOf<"GET", "/admin-ui/admin/guardrails/:name/coverage/keys">[number], "selections">
}

/** Shows the ways in which a policy selects the guardrail, in the words of the API. */
export const Selections = ({ of: { selections } }: Props) =>
  selections.length === 0 ? "–" : <code>{selections.join(", ")}</code>
