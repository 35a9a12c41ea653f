import { Fragment } from "react"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { changesOf } from "../../shared/policy/auditedFields.ts"
import type { AuditEvent } from "./event.ts"
import { madeText, outcomeOf } from "./outcome.ts"

/** "rpm_limit 60 → 100, and 2 more": what an event changed, in a line. */
export const Changes = ({ event }: { readonly event: AuditEvent }) => {
  const { after, before } = event
  const outcome = outcomeOf(event)
  if (outcome !== undefined) return <ForeignText>{outcome}</ForeignText>
  if (before === null && after !== null) return <ForeignText>{madeText(event)}</ForeignText>
  if (before !== null && after === null) return "removed"
  const { others, told } = changesOf(before, after)
  if (told.length === 0) return "–"
  return (
    <>
      {told.map((changed, place) => (
        <Fragment key={changed.name}>
          {place > 0 && ", "}
          <ForeignText>{changed.name}</ForeignText> <ForeignText>{changed.before}</ForeignText> →{" "}
          <ForeignText>{changed.after}</ForeignText>
        </Fragment>
      ))}
      {others > 0 && `, and ${others} more`}
    </>
  )
}
