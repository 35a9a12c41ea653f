import type { ResponseOf } from "../../../api/Endpoints.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Money } from "../../../shared/words/Amounts.tsx"
import { countedText, durationText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { PlainWords } from "../common/PlainWords.tsx"
import styles from "./KeyTest.module.css"

type Sent = NonNullable<ResponseOf<"POST", "/admin-ui/v1/me/test">["sent"]>

const words: Readonly<Record<Sent["outcome"], string>> = {
  works: "The model answered",
  refused_by_gateway: "The gateway refused it",
  refused_by_provider: "The model provider refused it",
  unreadable: "That was no model",
  unreachable: "The gateway was not reached",
  timeout: "No answer in time"
}

/** Tells the outcome of the request that the test sent. */
export const SentOutcome = ({ sent }: { readonly sent: Sent }) => {
  const { cost_usd, input_tokens, latency_ms, outcome, output_tokens, provider_message, sentence, what_to_do } = sent
  const isWorking = outcome === "works"
  return (
    <div className={styles.outcome}>
      <StatusWord meaning={isWorking ? "good" : "bad"}>{words[outcome]}</StatusWord>
      <p>
        {sentence} <PlainWords text={what_to_do} />
      </p>
      {provider_message !== null && (
        <p>
          Its words: <ForeignText>{provider_message}</ForeignText>
        </p>
      )}
      <p className={styles.measured}>
        {input_tokens !== null && output_tokens !== null && (
          <>
            {countedText(input_tokens, "token")} sent, {countedText(output_tokens, "token")} answered,{" "}
          </>
        )}
        {cost_usd !== null && (
          <>
            <Money usd={cost_usd} />,{" "}
          </>
        )}
        {durationText(latency_ms)}.{outcome !== "unreachable" && " It appears below as one of your requests."}
      </p>
    </div>
  )
}
