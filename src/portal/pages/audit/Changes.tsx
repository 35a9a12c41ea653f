import { Fragment } from "react"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { changesOf } from "../../shared/policy/auditedFields.ts"

interface Props {
  readonly before: unknown
  readonly after: unknown
}

/** "rpm_limit 60 → 100, and 2 more": what an event changed, in a line. */
export const Changes = ({ after, before }: Props) => {
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
