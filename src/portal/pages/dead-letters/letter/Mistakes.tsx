import type { ApiError } from "../../../api/ApiError.ts"
import { ErrorNote } from "../../../shared/page/ErrorNote.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./Letter.module.css"

/** What the server finds wrong, at the members that it names. */
export const Mistakes = ({ error }: { readonly error: ApiError }) =>
  error.fields.length === 0 ? (
    <ErrorNote error={error} />
  ) : (
    <ul className={styles.mistakes} role="alert">
      {error.fields.map(({ field, message }) => (
        <li key={`${field} ${message}`}>
          <StatusWord meaning="bad">
            <code>{field}</code>
          </StatusWord>{" "}
          {message}
        </li>
      ))}
    </ul>
  )
