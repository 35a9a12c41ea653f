import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { fieldText, restrictingOf } from "../../../shared/policy/fields.ts"
import { usePolicyFields } from "../../../shared/policy/usePolicyFields.ts"
import type { Key } from "./key.ts"

interface Props {
  readonly of: Key
}

/** A key of a project may call the services of its project. */
export const KeyServiceNames = ({ of: { owner_type, service_names } }: Props) =>
  owner_type === "project" ? (
    "those of its project"
  ) : service_names.length === 0 ? (
    "–"
  ) : (
    <ForeignText>{service_names.join(", ")}</ForeignText>
  )

const mostFields = 3

/** Lists the restrictions of the key's own policy. The layers above it may restrict more. */
export const PolicySummary = ({ of: { policy } }: Props) => {
  const fields = usePolicyFields().data?.fields ?? []
  const restricting = restrictingOf(fields, policy)
  const texts = fields.flatMap((field) =>
    field.field in restricting ? [`${field.field} ${fieldText(field, restricting[field.field])}`] : []
  )
  if (texts.length === 0) return "–"
  const more = texts.length - mostFields
  return <ForeignText>{texts.slice(0, mostFields).join("; ") + (more > 0 ? `; ${more} more` : "")}</ForeignText>
}
