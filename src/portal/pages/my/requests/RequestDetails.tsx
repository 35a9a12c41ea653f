import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Count, Money } from "../../../shared/words/Amounts.tsx"
import { CopyButton } from "../../../shared/words/CopyButton.tsx"
import { Facts } from "../../../shared/words/Facts.tsx"
import { durationText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { PlainWords } from "../common/PlainWords.tsx"
import { RaiseButton } from "../raise/RaiseButton.tsx"
import styles from "./RequestDetails.module.css"
import type { OwnRequest } from "./useOwnRequests.ts"

/** What people who decide can change: limits, and what the key may do. */
const mayBeRaised = new Set([402, 403, 429])

/** One request: what became of it, why, and what to do. */
export const RequestDetails = ({ request }: { readonly request: OwnRequest }) => {
  const { meter, refusal, refused_model, status, status_code } = request
  return (
    <div className={styles.details}>
      <div>
        <StatusWord meaning={status === "success" ? "good" : "bad"}>
          {status === "success" ? "succeeded" : `${refusal === null ? "failed" : "refused"} · ${status_code}`}
        </StatusWord>
      </div>
      {refusal !== null && (
        <section className={styles.why} aria-label="Why">
          <p className={styles.sentence}>{refusal.sentence}</p>
          <p>
            <PlainWords text={refusal.what_to_do} />
          </p>
          {mayBeRaised.has(status_code) && (
            <RaiseButton meter={meter ?? undefined} model={refused_model ?? undefined} />
          )}
        </section>
      )}
      <Facts
        facts={[
          ["When", <When key="when" at={request.created_at} />],
          ["Model", request.model === null ? null : <ForeignText key="model">{request.model}</ForeignText>],
          ["Path", <code key="path">{request.route}</code>],
          ["Tokens in", <TokensIn key="in" request={request} />],
          ["Tokens out", <Count key="out" of={request.output_tokens} />],
          ["Cost", <Money key="cost" usd={request.estimated_cost_usd} />],
          ["Took", durationText(request.latency_ms)],
          ["First part after", request.first_byte_ms === null ? null : durationText(request.first_byte_ms)],
          ["Streamed", request.streamed ? "yes" : "no"],
          ["Program", request.client],
          ["Session", request.session_id],
          ["Task", request.task_id],
          ["Code", request.error_code === null ? null : <code key="code">{request.error_code}</code>],
          [
            "Request id",
            <span key="id">
              <code>{request.request_id}</code> <CopyButton text={request.request_id} label="Copy the request id" />
            </span>
          ]
        ]}
      />
    </div>
  )
}

const TokensIn = ({ request: { cached_input_tokens, input_tokens } }: { readonly request: OwnRequest }) => (
  <>
    <Count of={input_tokens} />
    {cached_input_tokens !== null && cached_input_tokens > 0 && (
      <>
        , of which <Count of={cached_input_tokens} /> from the cache
      </>
    )}
  </>
)
