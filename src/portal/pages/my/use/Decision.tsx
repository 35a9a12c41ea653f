import type { ResponseOf } from "../../../api/Endpoints.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { PlainWords } from "../common/PlainWords.tsx"
import { RaiseButton } from "../raise/RaiseButton.tsx"
import styles from "./KeyTest.module.css"

interface Props {
  readonly result: ResponseOf<"POST", "/admin-ui/v1/me/test">
  /** A request was to be sent, and not only asked about. */
  readonly wasToBeSent: boolean
}

/** Says what the gateway would do with the example, and why nothing was sent. */
export const Decision = ({ result, wasToBeSent }: Props) => {
  const { allowed, guardrails, meter, not_sent, refused_model, resets_at, sentence, what_to_do } = result
  return (
    <div className={styles.outcome}>
      <StatusWord meaning={allowed ? "good" : "bad"}>
        {allowed ? "It would get through" : wasToBeSent ? "Not sent: it would be refused" : "It would be refused"}
      </StatusWord>
      <p>
        {sentence} {allowed ? "Now run it: it appears below." : <PlainWords text={what_to_do} />}
        {resets_at !== null && (
          <>
            {" "}
            The limit begins anew <When at={resets_at} />.
          </>
        )}
      </p>
      {not_sent !== null && (
        <p>
          {not_sent.sentence} {not_sent.what_to_do}
        </p>
      )}
      {guardrails.length > 0 && (
        <p>
          Checked on the way: <ForeignText>{guardrails.join(", ")}</ForeignText>.
        </p>
      )}
      {!allowed && <RaiseButton meter={meter ?? undefined} model={refused_model ?? undefined} />}
    </div>
  )
}
