import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApi } from "../../../api/queries.ts"
import { fieldWords } from "../../../shared/fields/fieldWords.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { countText } from "../../../shared/words/format.ts"
import { type Meaning, StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { amountText, type MeterName, type OwnLimit } from "../common/limits.ts"
import styles from "./RaiseAnswers.module.css"
import { RaiseButton } from "./RaiseButton.tsx"

type Asked = ResponseOf<"GET", "/admin-ui/v1/me/raise-requests">[number]

const words: Readonly<Record<Asked["state"], readonly [Meaning, string]>> = {
  open: ["waiting", "waits for an answer"],
  granted: ["good", "granted"],
  refused: ["bad", "refused"]
}

/** The limits as people name them. */
const meters: Readonly<Record<MeterName, readonly [name: string, unit: OwnLimit["unit"]]>> = {
  rpm_limit: [fieldWords.rpm_limit, "requests"],
  tpm_limit: [fieldWords.tpm_limit, "tokens"],
  max_requests_per_day: [fieldWords.max_requests_per_day, "requests"],
  max_tokens_per_day: [fieldWords.max_tokens_per_day, "tokens"],
  daily_budget_usd: ["a day", "usd"],
  monthly_budget_usd: ["a month", "usd"]
}

const isMeter = (name: string): name is keyof typeof meters => Object.hasOwn(meters, name)

const limitText = (name: string, amount: number): string => {
  if (!isMeter(name)) return `${countText(amount)} ${name}`
  const [per, unit] = meters[name]
  return `${amountText(unit, amount)} ${per}`
}

const limitName = (meter: MeterName): string => {
  const [per, unit] = meters[meter]
  return unit === "usd" ? `money ${per}` : per
}

/** What was asked for, and what the operators answered. */
export const RaiseAnswers = ({ most = 5 }: { readonly most?: number }) => {
  const asked = useApi(
    "/admin-ui/v1/me/raise-requests",
    {},
    { refreshAfter: (rows) => (rows.some(({ state }) => state === "open") ? 5_000 : 30_000) }
  )
  const requests = asked.data ?? []
  return (
    <Panel
      title="Raises you asked for"
      query={asked}
      height={56}
      actions={<RaiseButton />}
      {...(asked.data !== undefined && requests.length === 0 && { empty: <p className={styles.none}>{none}</p> })}
    >
      <ul className={styles.list}>
        {requests.slice(0, most).map((request) => (
          <Answer key={request.id} request={request} />
        ))}
      </ul>
    </Panel>
  )
}

const none = "If a limit is too low, ask for a higher one. The answer appears here."

const Answer = ({ request }: { readonly request: Asked }) => {
  const { amount, answer, answered_at, created_at, granted, meter, model, reason, state } = request
  const [meaning, word] = words[state]
  return (
    <li>
      <p className={styles.head}>
        <StatusWord meaning={meaning}>{word}</StatusWord>
        {meter !== null && <span>{amount === null ? limitName(meter) : limitText(meter, amount)}</span>}
        {model !== null && (
          <span>
            the model <ForeignText>{model}</ForeignText>
          </span>
        )}
        <span className={styles.when}>
          <When at={answered_at ?? created_at} />
        </span>
      </p>
      <p>
        You: <ForeignText>{reason}</ForeignText>
      </p>
      {answer !== null && (
        <p>
          Answer: <ForeignText>{answer}</ForeignText>
        </p>
      )}
      {model !== null && state === "granted" && granted === null && (
        <p>
          <ForeignText>{model}</ForeignText> was allowed.
        </p>
      )}
      {granted !== null && (
        <p>
          You have{" "}
          {Object.entries(granted.limits)
            .map(([name, limit]) => limitText(name, Number(limit)))
            .join(", ")}{" "}
          (ends <When at={granted.until} />
          ).
        </p>
      )}
    </li>
  )
}
