import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { durationText } from "../../../shared/words/format.ts"
import { type Meaning, StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./RequestDetail.module.css"
import type { Bundle } from "./useRequest.ts"

const meanings: Readonly<Record<string, Meaning>> = { allow: "good", modify: "working", warn: "warning", block: "bad" }

export const RequestGuardrails = ({ bundle: { guardrails } }: { readonly bundle: Bundle }) =>
  guardrails.length === 0 ? (
    <p className={styles.muted}>No guardrail looked at this request.</p>
  ) : (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached with the keyboard
    <div className={styles.table} tabIndex={0}>
      <table aria-label="Executions of guardrails">
        <thead>
          <tr>
            <th scope="col">Guardrail</th>
            <th scope="col">When</th>
            <th scope="col">Action</th>
            <th scope="col">Reason</th>
            <th scope="col" data-numeric>
              Took
            </th>
          </tr>
        </thead>
        <tbody>
          {guardrails.map(({ action, latency_ms, mode, name, reason }, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the list of one request never changes its order
            <tr key={place}>
              <td>
                <ForeignText>{name}</ForeignText>
              </td>
              <td>
                <code>{mode}</code>
              </td>
              <td>
                <StatusWord meaning={meanings[action] ?? "idle"}>{action}</StatusWord>
              </td>
              <td>{reason === null ? "–" : <ForeignText>{reason}</ForeignText>}</td>
              <td data-numeric>{durationText(latency_ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
