import type { PayloadFit } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { countedText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { MistakeList } from "./Mistakes.tsx"

interface Props {
  readonly fit: PayloadFit
}

/** Says with which schema the payload was compared and what does not fit, or why it was not compared. */
export const PayloadFitNote = ({ fit }: Props) => {
  const { fields, more_fields, not_checked, not_compared, schema } = fit
  if (schema === null)
    return (
      <p>
        <StatusWord meaning="idle">payload not compared</StatusWord> <ForeignText>{not_compared}</ForeignText>
      </p>
    )
  return (
    <>
      {fields.length === 0 ? (
        <p>
          <StatusWord meaning="good">payload checked</StatusWord> It fits <Schema schema={schema} />.
        </p>
      ) : (
        <>
          <p>
            <StatusWord meaning="bad">payload does not fit</StatusWord> It was checked against{" "}
            <Schema schema={schema} />
            {more_fields && `, and has more mistakes than these ${fields.length}`}:
          </p>
          <MistakeList fields={fields} />
        </>
      )}
      {not_checked.length > 0 && (
        <p>
          Not checked: <ForeignText>{not_checked.join("; ")}</ForeignText>.
        </p>
      )}
    </>
  )
}

/** Says in one sentence what does not fit. Nothing, where all that was checked fits. */
export const PayloadMisfit = ({ fit: { fields, more_fields, schema } }: Props) => {
  if (schema === null || fields.length === 0) return null
  const others = fields.length - mostNamed
  return (
    <p>
      <StatusWord meaning="bad">schema</StatusWord> The payload does not fit <Schema schema={schema} />:{" "}
      {fields.slice(0, mostNamed).map(({ field, message }, place) => (
        <span key={`${field} ${message}`}>
          {place > 0 && "; "}
          <code>
            <ForeignText>{field.replace(/^payload\./, "")}</ForeignText>
          </code>{" "}
          <ForeignText>{message}</ForeignText>
        </span>
      ))}
      {others > 0 && `; and ${more_fields ? "more than " : ""}${countedText(others, "other mistake")}`}.
    </p>
  )
}

const mostNamed = 3

const Schema = ({ schema }: { readonly schema: NonNullable<PayloadFit["schema"]> }) => {
  const type = schema.task_type ?? schema.action
  return (
    <>
      the schema {type === null ? "" : "of "}
      {type !== null && (
        <code>
          <ForeignText>{type}</ForeignText>
        </code>
      )}{" "}
      that a worker of version <ForeignText>{schema.worker_version}</ForeignText> reported{" "}
      <When at={schema.reported_at} />
    </>
  )
}
