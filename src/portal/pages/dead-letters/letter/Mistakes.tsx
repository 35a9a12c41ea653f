import type { ApiError, FieldError } from "../../../api/ApiError.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./Letter.module.css"

/** What the server finds wrong, at the members that it names. */
export const Mistakes = ({ error }: { readonly error: ApiError }) =>
  error.fields.length === 0 ? (
    <ErrorNote error={error} />
  ) : (
    <div role="alert">
      <MistakeList fields={error.fields} />
    </div>
  )

export const MistakeList = ({ fields }: { readonly fields: ReadonlyArray<FieldError> }) => (
  <ul className={styles.mistakes}>
    {fields.map(({ field, message }) => (
      <li key={`${field} ${message}`}>
        <StatusWord meaning="bad">
          <code>
            <ForeignText>{field}</ForeignText>
          </code>
        </StatusWord>{" "}
        <ForeignText>{message}</ForeignText>
      </li>
    ))}
  </ul>
)
